//! Receives the outcomes of outstanding jobs, in batches.

use std::time::Duration;

use bus::{Bus, BusError, Delivery, Filter};
use model::SourceId;
use tokio::time::Instant;

/// Outcome messages settled per batch.
const MOST: usize = 8;
/// Minimum time between two batches. Jobs of small resources end sooner than that, and each commit is a write to the
/// store. The spare jobs in the queue last longer than this.
const EVERY: Duration = Duration::from_millis(4);
/// How long to wait for outcomes before other checks.
const WAIT: Duration = Duration::from_millis(500);

/// Receiver for the outcomes of a Source's jobs.
#[derive(Debug)]
pub(crate) struct Incoming {
    filter: Filter,
    /// When the last batch arrived.
    came_at: Instant,
}

impl Incoming {
    pub(crate) fn of(source: SourceId) -> Self {
        Self { filter: Filter::Outcomes(source), came_at: Instant::now() }
    }

    /// The next batch; empty if nothing arrived for a while. Outcomes that arrive right after the last batch wait for
    /// more, to share a commit.
    pub(crate) async fn next(&mut self, bus: &dyn Bus) -> Result<Vec<Delivery>, BusError> {
        tokio::time::sleep_until(self.came_at + EVERY).await;
        let deliveries = bus.pull(&self.filter, MOST, WAIT).await?;
        self.came_at = Instant::now();
        Ok(deliveries)
    }
}

#[cfg(test)]
mod tests {
    use bus::{ConsumerSpec, MemoryBus, MessageId, Queue};

    use super::*;

    async fn bus(source: &SourceId) -> MemoryBus {
        let bus = MemoryBus::new(100);
        let filter = Filter::Outcomes(source.clone());
        bus.open(ConsumerSpec::new(filter, 64, Duration::from_secs(60), 5)).await.unwrap();
        bus
    }

    async fn ended(bus: &MemoryBus, source: &SourceId, job: usize) {
        let queue = Queue::Outcomes { source: source.clone() };
        bus.publish(queue, MessageId::new(format!("job {job}")), "{}".into()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_that_end_one_right_after_the_other_are_settled_together() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        let mut incoming = Incoming::of(source.clone());
        let mut batches = Vec::new();
        let ending = async {
            for job in 0..16 {
                ended(&bus, &source, job).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let settling = async {
            while batches.iter().sum::<usize>() < 16 {
                batches.push(incoming.next(&bus).await.unwrap().len());
            }
        };
        tokio::join!(ending, settling);
        assert!(batches.len() <= 5, "{batches:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_a_while_waits_for_nothing() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        let mut incoming = Incoming::of(source.clone());
        tokio::time::sleep(EVERY).await;
        ended(&bus, &source, 0).await;
        let asked_at = Instant::now();
        assert_eq!(incoming.next(&bus).await.unwrap().len(), 1);
        assert_eq!(asked_at.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn where_nothing_comes_back_it_is_said_after_a_while() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        assert!(Incoming::of(source).next(&bus).await.unwrap().is_empty());
    }
}
