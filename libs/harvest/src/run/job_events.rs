//! What comes back from the jobs of a run: outcomes, dead letters, or nothing any more. One loop for jobs on resources
//! and jobs on packages.
//!
//! A bus whose server lost its disk has lost jobs, and no outcome will arrive for them. So after a long silence the
//! bus is asked whether it still has messages of this Source. As long as one is in progress, an outcome or a dead
//! letter will arrive: a large resource takes its time. If a forgotten job is answered after all, its outcomes settle
//! the plans whose numbers they carry. Those of its successor then settle nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, DeadLetter, Delivery, Filter, OneOf};
use model::{Origin, Outcomes, PackageOutcome, WireError};
use tokio::time::Instant;

use crate::error::HarvestError;
use crate::run::incoming::Incoming;
use crate::run::{RunContext, store_health};

/// Dead letters taken at a time.
const LETTERS: usize = 8;
/// How often dead letters are polled while outcomes come. If no outcomes come, they are polled every time.
const LETTERS_EVERY: Duration = Duration::from_secs(5);
/// Silence after which the bus is asked whether it still has the jobs. It is as long as the redelivery of a dead
/// worker's jobs takes, so an ordinary restart causes no resend.
const SILENCE: Duration = Duration::from_secs(60);
/// Consecutive times that all jobs may vanish. A bus that keeps nothing must not be refilled for ever.
const MAX_VANISHED: u32 = 5;

/// Receiver of everything that comes back from the jobs of a run.
pub(crate) struct JobEvents {
    incoming: Incoming,
    /// When dead letters were last polled.
    letters_at: Instant,
    /// When a job was last sent or an outcome last received.
    heard_at: Instant,
    /// Consecutive times that all outstanding jobs vanished from the bus.
    vanished: u32,
}

/// What came back. Each delivery is acknowledged when its effect is durable.
#[derive(Default)]
pub(crate) struct Event {
    /// Outcomes of jobs on resources.
    pub(crate) resources: Vec<(Delivery, Outcomes)>,
    /// Outcomes of jobs on packages.
    pub(crate) packages: Vec<(Delivery, PackageOutcome)>,
    /// Messages that no service could process.
    pub(crate) dead_letters: Vec<Delivery>,
}

impl Event {
    /// Whether nothing came.
    pub(crate) fn is_quiet(&self) -> bool {
        self.resources.is_empty() && self.packages.is_empty() && self.dead_letters.is_empty()
    }
}

impl JobEvents {
    /// A receiver for the jobs of a run.
    pub(crate) fn of(ctx: &RunContext) -> Self {
        let now = Instant::now();
        Self { incoming: Incoming::of(ctx.source.clone()), letters_at: now, heard_at: now, vanished: 0 }
    }

    /// Records that a job was sent.
    pub(crate) fn note_sent(&mut self) {
        self.heard_at = Instant::now();
    }

    /// What comes next; nothing after a while without messages. If all jobs of a run are out, `last` is their number:
    /// their outcomes share commits.
    ///
    /// # Errors
    /// When the bus fails, the store has a failure that the operator must fix, or the harvest is stopped.
    pub(crate) async fn next(&mut self, ctx: &RunContext, last: usize) -> Result<Event, HarvestError> {
        let deliveries = tokio::select! {
            deliveries = self.incoming.next(&*ctx.bus, last) => deliveries?,
            failure = store_health::lasting(&ctx.store) => return Err(HarvestError::StoreFailed(failure)),
            () = ctx.stop.cancelled() => return Err(HarvestError::Stopped),
        };
        let is_quiet = deliveries.is_empty();
        let mut event = Event::default();
        for delivery in deliveries {
            // A payload from the network has one owner and is moved; one that a bus keeps for redelivery is copied.
            match delivery.payload.read_one_of::<Outcomes, PackageOutcome>() {
                Ok(OneOf::First(outcomes)) => {
                    event.resources.push((delivery, Arc::unwrap_or_clone(outcomes)))
                }
                Ok(OneOf::Second(outcome)) => event.packages.push((delivery, Arc::unwrap_or_clone(outcome))),
                Err(error) => bury(&*ctx.bus, &delivery, &error).await?,
            }
        }
        let elapsed = event.resources.iter().map(|(_, outcomes)| Duration::from_millis(outcomes.elapsed_ms));
        self.incoming.note_jobs(elapsed);
        if is_quiet || self.letters_at.elapsed() >= LETTERS_EVERY {
            self.letters_at = Instant::now();
            event.dead_letters = take_dead_letters(ctx).await?;
        }
        if !event.is_quiet() {
            (self.heard_at, self.vanished) = (Instant::now(), 0);
        }
        Ok(event)
    }

    /// After a long silence: whether the outstanding jobs have vanished from the bus, so that their work must be sent
    /// again. `origins` are those with outstanding jobs.
    ///
    /// # Errors
    /// When that happened too often, or the bus fails.
    pub(crate) async fn are_lost(
        &mut self,
        ctx: &RunContext,
        origins: &HashSet<Origin>,
        jobs: usize,
    ) -> Result<bool, HarvestError> {
        if jobs == 0 || self.heard_at.elapsed() < SILENCE {
            return Ok(false);
        }
        self.heard_at = Instant::now();
        if ctx.bus.under_way(&ctx.source).await? > 0 {
            // If the list of origin queues was lost, no fetcher would find them.
            for origin in origins {
                ctx.open_origin(origin).await?;
            }
            return Ok(false);
        }
        // A dead letter is written before its message is removed.
        let dead = ctx.bus.depth(&Filter::Dead(ctx.source.clone())).await?;
        if dead.waiting + dead.in_flight > 0 {
            return Ok(false);
        }
        self.vanished += 1;
        if self.vanished >= MAX_VANISHED {
            return Err(HarvestError::Vanishing { jobs, times: self.vanished });
        }
        tracing::warn!(jobs, "jobs have vanished from the bus: their work is sent again");
        Ok(true)
    }
}

/// The next dead letters of the Source.
pub(crate) async fn take_dead_letters(ctx: &RunContext) -> Result<Vec<Delivery>, HarvestError> {
    Ok(ctx.bus.pull(&Filter::Dead(ctx.source.clone()), LETTERS, Duration::ZERO).await?)
}

/// Moves an unreadable message to the dead letters of its Source, because it would be redelivered for ever. Its
/// resources are still pending, and the dead letter names it.
async fn bury(bus: &dyn Bus, delivery: &Delivery, error: &WireError) -> Result<(), HarvestError> {
    DeadLetter::bury(bus, delivery, &format!("these are no outcomes: {error}")).await?;
    Ok(delivery.term().await?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bus::{ConsumerSpec, Depth, MemoryBus, MessageId, Queue};

    use super::*;

    #[tokio::test]
    async fn unreadable_outcomes_become_dead_letters() {
        let bus = MemoryBus::new(10);
        let source = || "s".parse().expect("a source id");
        let open = |filter: Filter| bus.open(ConsumerSpec::new(filter, 1, Duration::from_secs(60), 5));
        let outcomes = Filter::Outcomes(source());
        let dead = Filter::Dead(source());
        open(outcomes.clone()).await.unwrap();
        open(dead.clone()).await.unwrap();
        let queue = Queue::Outcomes { source: source() };
        bus.publish(queue, MessageId::new("a"), "gibberish".into()).await.unwrap();
        let delivery = bus.pull(&outcomes, 1, Duration::ZERO).await.unwrap().pop().unwrap();
        let error = delivery.payload.read_one_of::<Outcomes, PackageOutcome>().unwrap_err();
        bury(&bus, &delivery, &error).await.unwrap();
        assert_eq!(bus.depth(&outcomes).await.unwrap(), Depth::default());
        let buried = bus.pull(&dead, 1, Duration::ZERO).await.unwrap().pop().expect("a dead letter");
        let letter = buried.payload.read::<DeadLetter>().unwrap();
        assert_eq!(letter.id.as_str(), "a");
        assert!(letter.why.starts_with("these are no outcomes: "), "{}", letter.why);
    }
}
