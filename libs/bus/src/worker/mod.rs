//! The work loop: pull only what can be started, and acknowledge last.
//!
//! A handler gets a [`Message`], does its work, publishes the results and waits until they are queued. Only then it
//! returns [`HandlerResult::Done`], and the message is acknowledged. If the worker dies in between, the message is
//! redelivered.

mod handle;
mod origin_shares;
mod origins;
mod shares;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use origin_shares::{OriginShares, RequestTimer};
pub use shares::Shares;

use crate::backoff::Backoff;
use crate::{Bus, BusError, ConsumerSpec, Delivery, Filter, Message, MessageId};

/// How long one pull waits for a message. Both buses end it at once when a message comes, or when the consumer is
/// closed. It is long so that a fleet with a thousand idle origin queues sends few requests.
const PULL_WAIT: Duration = Duration::from_secs(20);
/// The first wait after a pull or a message failed. It doubles with every failure in a row.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The result of a handler, which decides how the message is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerResult {
    /// Done, and the results are queued: acknowledge.
    Done,
    /// A dependency does not work now: redeliver.
    Later {
        /// The least delay. Without it, the delay doubles with each attempt, up to a minute.
        after: Option<Duration>,
        /// What does not work.
        why: String,
    },
    /// Another attempt would fail in the same way: dead-letter the message.
    Poison {
        /// What is wrong with the message.
        why: String,
    },
    /// Nothing works until an operator acts: put the message back and stop the worker.
    Halt {
        /// What the operator must do.
        why: String,
    },
}

impl HandlerResult {
    /// A dependency does not work now: redeliver after the usual delay.
    pub fn later(why: impl fmt::Display) -> Self {
        Self::Later { after: None, why: why.to_string() }
    }

    /// Another attempt would fail in the same way.
    pub fn poison(why: impl fmt::Display) -> Self {
        Self::Poison { why: why.to_string() }
    }

    /// The result of a handler whose errors are results; `Ok` is done.
    pub fn from_result(worked: Result<(), Self>) -> Self {
        worked.err().unwrap_or(Self::Done)
    }
}

/// A failure that kept a message from being handled, reported to an observer: a full disk, a store that is down, a
/// panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerError {
    /// The filter that the worker pulled from.
    pub filter: Filter,
    /// The ID of the message.
    pub id: MessageId,
    /// The number of the delivery, from 1.
    pub attempt: u32,
    /// What happened.
    pub why: String,
    /// Whether the message was given up and is now a dead letter.
    pub given_up: bool,
}

type Observer = Arc<dyn Fn(HandlerError) + Send + Sync>;

/// A handler and its bus. Cheap to clone: all clones share the handler.
pub struct Worker<H> {
    bus: Arc<dyn Bus>,
    handler: Arc<H>,
    observer: Option<Observer>,
    capacity: Option<Arc<Semaphore>>,
    shares: Option<Shares>,
    origin_shares: Option<OriginShares>,
    at_most: usize,
}

/// Handles the messages of one consumer, which must be open, until `stop`; see [`Worker::run`].
///
/// # Errors
/// See [`Worker::run`].
pub async fn run<H, F>(
    bus: Arc<dyn Bus>,
    spec: ConsumerSpec,
    stop: CancellationToken,
    handler: H,
) -> Result<(), BusError>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    Worker::new(bus, handler).run(spec, stop).await
}

/// Handles the fetch jobs of every open origin queue until `stop`; see [`Worker::run_origins`].
///
/// # Errors
/// See [`Worker::run_origins`].
pub async fn run_origins<H, F>(bus: Arc<dyn Bus>, stop: CancellationToken, handler: H) -> Result<(), BusError>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    Worker::new(bus, handler).run_origins(stop).await
}

impl<H, F> Worker<H>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    /// A worker that gives every message to `handler`, each in a task of its own.
    pub fn new(bus: Arc<dyn Bus>, handler: H) -> Self {
        Self {
            bus,
            handler: Arc::new(handler),
            observer: None,
            capacity: None,
            shares: None,
            origin_shares: None,
            at_most: Semaphore::MAX_PERMITS,
        }
    }

    /// Calls `observer` whenever a message could not be handled, so that a run on a laptop can stop instead of retrying
    /// for ever. The call comes from the message's task and must not block.
    #[must_use]
    pub fn observed(mut self, observer: impl Fn(HandlerError) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Limits the messages in work at a time to the permits of `capacity`, over all consumers, all clones and all other
    /// holders of permits. This bounds the memory of a process. Where many origins are busy, each of them may have one
    /// message that waits for its permit.
    #[must_use]
    pub fn within(mut self, capacity: Arc<Semaphore>) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Limits the messages of one Source in work at a time, over all consumers of all clones. A message that waits for
    /// its share takes no permit of the capacity.
    #[must_use]
    pub fn sharing(mut self, shares: Shares) -> Self {
        self.shares = Some(shares);
        self
    }

    /// Limits the fetch jobs of slow origins in work at a time, over all consumers of all clones. A job that would
    /// exceed the limit stays in the queue, or waits without a permit of the capacity.
    #[must_use]
    pub fn sharing_by_origin(mut self, shares: OriginShares) -> Self {
        self.origin_shares = Some(shares);
        self
    }

    /// Takes at most `at_most` messages of one consumer at a time. Messages that this worker cannot start stay in the
    /// queue for others, however long the current ones take.
    #[must_use]
    pub fn at_most(self, at_most: usize) -> Self {
        Self { at_most: at_most.clamp(1, Semaphore::MAX_PERMITS), ..self }
    }

    /// Handles the messages of one consumer, which must be open, up to `max_in_flight` at a time. When `stop` is
    /// cancelled, it pulls no more, completes the running messages and returns.
    ///
    /// While a handler works, the worker reports progress to the bus well within `ack_wait`. A message with the result
    /// [`HandlerResult::Later`] is redelivered until `max_deliver` is reached; then it becomes a dead letter. A message
    /// whose handler panics is delivered at most three times. If the worker is dropped, its messages are redelivered.
    ///
    /// # Errors
    /// [`BusError::NotOpen`] when the consumer was closed, [`BusError::Halted`] when a handler said so: both after the
    /// running messages were finished. An unavailable bus is no error: the worker retries.
    pub async fn run(&self, spec: ConsumerSpec, stop: CancellationToken) -> Result<(), BusError> {
        let slots = Arc::new(Semaphore::new(spec.max_in_flight().min(self.at_most)));
        let halt = CancellationToken::new();
        let mut running = JoinSet::new();
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut ended = Ok(());
        while ended.is_ok() {
            let pulled = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = halt.cancelled() => break,
                pulled = self.pull(&spec, &slots) => pulled,
            };
            match pulled {
                Ok(pulled) => {
                    backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
                    for (delivery, slot) in pulled {
                        running.spawn(self.clone().work(spec.clone(), delivery, slot, halt.clone()));
                    }
                }
                Err(error) if error.is_temporary() => {
                    let wait = backoff.next_wait();
                    tracing::warn!(%error, retry_in_ms = wait.as_millis(), "cannot pull messages");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = stop.cancelled() => {}
                        () = halt.cancelled() => {}
                    }
                }
                Err(error) => ended = Err(error),
            }
            while let Some(done) = running.try_join_next() {
                ended = ended.and(handle::ending(done));
            }
        }
        while let Some(done) = running.join_next().await {
            ended = ended.and(handle::ending(done));
        }
        ended
    }

    /// Waits for a free slot, then pulls as many messages as there are free slots.
    async fn pull(
        &self,
        spec: &ConsumerSpec,
        slots: &Arc<Semaphore>,
    ) -> Result<Vec<(Delivery, OwnedSemaphorePermit)>, BusError> {
        // The semaphore is never closed.
        let Ok(first) = Arc::clone(slots).acquire_owned().await else { return Ok(Vec::new()) };
        let mut free = vec![first];
        // Messages that this worker could not start stay in the queue for others.
        let of_origin = match (&self.origin_shares, spec.filter()) {
            (Some(shares), Filter::Fetch(origin)) => shares.room(origin).await,
            _ => usize::MAX,
        };
        let most = match &self.capacity {
            Some(capacity) => match capacity.acquire().await {
                Ok(_room) => capacity.available_permits() + 1,
                Err(_closed) => return Ok(Vec::new()),
            },
            None => usize::MAX,
        };
        while free.len() < most.min(of_origin)
            && let Ok(more) = Arc::clone(slots).try_acquire_owned()
        {
            free.push(more);
        }
        let deliveries = self.bus.pull(spec.filter(), free.len(), PULL_WAIT).await?;
        Ok(deliveries.into_iter().zip(free).collect())
    }
}

impl<H> Clone for Worker<H> {
    fn clone(&self) -> Self {
        Self {
            bus: Arc::clone(&self.bus),
            handler: Arc::clone(&self.handler),
            observer: self.observer.clone(),
            capacity: self.capacity.clone(),
            shares: self.shares.clone(),
            origin_shares: self.origin_shares.clone(),
            at_most: self.at_most,
        }
    }
}

impl<H> fmt::Debug for Worker<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("bus", &self.bus).finish_non_exhaustive()
    }
}

/// The wait before a message is redelivered that failed `failures` times before. It has no jitter: a limited number
/// of messages is in flight.
fn redelivery_wait(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << failures.min(16)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests;
