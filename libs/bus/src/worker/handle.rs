//! Handles one message and settles it.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{HandlerError, HandlerResult, Worker, redelivery_wait};
use crate::{BusError, ConsumerSpec, DeadLetter, Delivery, Message, Queue};

/// Progress reports within one `ack_wait`: two of them may get lost.
const SIGNS_OF_LIFE: u32 = 3;
/// The attempt whose panic makes a message poison. Its fault will not pass, and no other work should wait long for it.
const LAST_PANIC: u32 = 3;

impl<H, F> Worker<H>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    /// Handles one message and settles it. An error is a reason to stop the worker.
    pub(super) async fn work(
        self,
        spec: ConsumerSpec,
        delivery: Delivery,
        slot: OwnedSemaphorePermit,
        halt: CancellationToken,
    ) -> Result<(), BusError> {
        let span = tracing::info_span!(
            "work",
            message.id = %delivery.id, source.id = %delivery.queue.source(), attempt = delivery.attempt
        );
        async {
            let work = self.handle(&spec, &delivery).await;
            let ended = match &work {
                HandlerResult::Halt { why } => {
                    halt.cancel();
                    Err(BusError::Halted { filter: spec.filter().clone(), why: why.clone() })
                }
                _ => Ok(()),
            };
            if let Err(error) = self.answer(&spec, &delivery, work).await {
                tracing::warn!(%error, "cannot answer for a message: it will be handed out again");
            }
            // The slot is free only now that the bus knows.
            drop(slot);
            ended
        }
        .instrument(span)
        .await
    }

    /// Runs the handler, and reports its progress to the bus. A panic counts as an answer too.
    async fn handle(&self, spec: &ConsumerSpec, delivery: &Delivery) -> HandlerResult {
        let message = Message::clone(delivery);
        let mut handler = std::pin::pin!(
            AssertUnwindSafe(async {
                let _share = match &self.shares {
                    Some(shares) => match shares.take(delivery.queue.source()).await {
                        Some(share) => Some(share),
                        None => return shares.give_back(message).await,
                    },
                    None => None,
                };
                let _of_origin = match (&self.origin_shares, &delivery.queue) {
                    (Some(shares), Queue::Fetch { origin, .. }) => Some(shares.take(origin).await),
                    _ => None,
                };
                let _room = match &self.capacity {
                    // The semaphore is never closed.
                    Some(capacity) => capacity.acquire().await.ok(),
                    None => None,
                };
                // Boxed, because a handler's future has some kilobytes, and each layer around it would move them.
                Box::pin((self.handler)(message)).await
            })
            .catch_unwind()
        );
        let alive = tell_life(delivery, spec.ack_wait() / SIGNS_OF_LIFE);
        tokio::select! {
            biased;
            work = &mut handler => {
                work.unwrap_or_else(|panic| match panic_message(&*panic) {
                    why if delivery.attempt >= LAST_PANIC => HandlerResult::Poison { why },
                    why => HandlerResult::Later { after: None, why },
                })
            }
            never = alive => match never {},
        }
    }

    async fn answer(
        &self,
        spec: &ConsumerSpec,
        delivery: &Delivery,
        work: HandlerResult,
    ) -> Result<(), BusError> {
        match work {
            HandlerResult::Done => delivery.ack().await,
            HandlerResult::Poison { why } => self.give_up(spec, delivery, &why).await,
            HandlerResult::Later { why, .. } if delivery.attempt >= spec.max_deliver() => {
                let why = format!("{why} (the last of {} attempts)", delivery.attempt);
                self.give_up(spec, delivery, &why).await
            }
            HandlerResult::Later { after, why } => {
                let wait = after.unwrap_or_else(|| redelivery_wait(delivery.attempt.saturating_sub(1)));
                tracing::warn!(why, retry_in_ms = wait.as_millis(), "a message cannot be worked on now");
                self.tell(spec, delivery, why, false);
                delivery.nak(wait).await
            }
            HandlerResult::Halt { why } => {
                self.tell(spec, delivery, why, false);
                delivery.nak(Duration::ZERO).await
            }
        }
    }

    async fn give_up(&self, spec: &ConsumerSpec, delivery: &Delivery, why: &str) -> Result<(), BusError> {
        DeadLetter::bury(self.bus.as_ref(), delivery, why).await?;
        self.tell(spec, delivery, why.to_owned(), true);
        delivery.term().await
    }

    fn tell(&self, spec: &ConsumerSpec, delivery: &Delivery, why: String, given_up: bool) {
        if let Some(observer) = &self.observer {
            let filter = spec.filter().clone();
            let id = delivery.id.clone();
            observer(HandlerError { filter, id, attempt: delivery.attempt, why, given_up });
        }
    }
}

/// Reports progress to the bus periodically. The handler runs concurrently, even while the bus is slow.
async fn tell_life(delivery: &Delivery, period: Duration) -> Infallible {
    let period = period.max(Duration::from_millis(1));
    let mut life = interval_at(Instant::now() + period, period);
    life.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        life.tick().await;
        if let Err(error) = delivery.progress().await {
            tracing::warn!(%error, "cannot tell the bus that a message is being worked on");
        }
    }
}

/// The result of a message's task for its worker. A task that died outside the handler dropped its message, which is
/// redelivered.
pub(super) fn ending(done: Result<Result<(), BusError>, JoinError>) -> Result<(), BusError> {
    done.unwrap_or_else(|error| {
        tracing::error!(%error, "the task of a message died: the message will be handed out again");
        Ok(())
    })
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the handler panicked: {}", said.unwrap_or("without a message"))
}
