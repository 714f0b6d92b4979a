//! Receives the outcomes of outstanding jobs, in batches.

use std::time::Duration;

use bus::{Bus, BusError, Delivery, Filter};
use model::SourceId;
use tokio::time::Instant;

/// Outcome messages settled per batch.
const MOST: usize = 8;
/// Shortest minimum time between two batches. Jobs of small resources end sooner than that, and each commit is a write
/// to the store. The spare jobs in the queue last longer than this.
const EVERY: Duration = Duration::from_millis(4);
/// Longest minimum time between two batches.
const LONGEST: Duration = Duration::from_millis(500);
/// The minimum time is this part of what a job takes. An origin has a spare job for each four of its slots, so the spare
/// jobs last a quarter of what a job takes.
const PART_OF_A_JOB: u32 = 8;
/// How long the outcomes of the last jobs of a run are gathered: no slot waits for what is settled then.
const LAST: Duration = Duration::from_millis(50);
/// How long to wait for outcomes before other checks.
const WAIT: Duration = Duration::from_millis(500);

/// Receiver for the outcomes of a Source's jobs.
#[derive(Debug)]
pub(crate) struct Incoming {
    filter: Filter,
    /// When the last batch arrived.
    came_at: Instant,
    /// Minimum time between two batches.
    every: Duration,
    /// Whether the last batch was full, so that others may lie ready.
    was_full: bool,
}

impl Incoming {
    pub(crate) fn of(source: SourceId) -> Self {
        Self { filter: Filter::Outcomes(source), came_at: Instant::now(), every: EVERY, was_full: false }
    }

    /// Records how long the jobs of a batch took. Jobs that take long leave time to gather more outcomes for a commit:
    /// the time grows from batch to batch, and falls at once if an origin is quick.
    pub(crate) fn note_jobs(&mut self, elapsed: impl Iterator<Item = Duration>) {
        let Some(shortest) = elapsed.filter(|elapsed| !elapsed.is_zero()).min() else { return };
        let longest = LONGEST.min(2 * self.every);
        self.every = (shortest / PART_OF_A_JOB).clamp(EVERY, longest);
    }

    /// The next batch; empty if nothing arrived for a while. Outcomes that arrive right after the last batch wait for
    /// more, to share a commit. What did not fit into a full batch waits no longer. If only `last` jobs are left, the
    /// first ones wait a while for all of them.
    pub(crate) async fn next(&mut self, bus: &dyn Bus, last: usize) -> Result<Vec<Delivery>, BusError> {
        if !self.was_full {
            tokio::time::sleep_until(self.came_at + self.every).await;
        }
        let mut deliveries = bus.pull(&self.filter, MOST, WAIT).await?;
        let until = Instant::now() + LAST;
        while (1..last.min(MOST)).contains(&deliveries.len()) && Instant::now() < until {
            let wait = until.duration_since(Instant::now());
            // What came is settled in any case, and the next batch tells of a failure again.
            let Ok(more) = bus.pull(&self.filter, MOST - deliveries.len(), wait).await else { break };
            deliveries.extend(more);
        }
        self.came_at = Instant::now();
        self.was_full = deliveries.len() == MOST;
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
                batches.push(incoming.next(&bus, 0).await.unwrap().len());
            }
        };
        tokio::join!(ending, settling);
        assert!(batches.len() <= 5, "{batches:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_jobs_of_a_run_are_settled_together_if_they_end_within_a_while() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        let mut incoming = Incoming::of(source.clone());
        let began = Instant::now();
        let ending = async {
            for job in 0..5 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                ended(&bus, &source, job).await;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            ended(&bus, &source, 5).await;
        };
        let settling = async {
            let mut batches = Vec::new();
            for last in [4, 2, 1] {
                let came = incoming.next(&bus, last).await.unwrap();
                batches.push((came.len(), began.elapsed().as_millis()));
                for delivery in came {
                    delivery.ack().await.unwrap();
                }
            }
            batches
        };
        let ((), batches) = tokio::join!(ending, settling);
        // The last one of the first four; the fifth, which waited in vain; the sixth, which waits for none.
        assert_eq!(batches, [(4, 40), (1, 100), (1, 350)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_did_not_fit_into_a_batch_waits_no_longer() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        let mut incoming = Incoming { every: LONGEST, ..Incoming::of(source.clone()) };
        for job in 0..2 * MOST + 1 {
            ended(&bus, &source, job).await;
        }
        let began = Instant::now();
        let mut batches = Vec::new();
        for _ in 0..3 {
            batches.push(incoming.next(&bus, 0).await.unwrap());
        }
        let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!((sizes, began.elapsed()), (vec![MOST, MOST, 1], LONGEST));
    }

    #[test]
    fn outcomes_of_long_jobs_gather_longer_and_those_of_short_jobs_are_not_kept_waiting() {
        let mut incoming = Incoming::of("s".parse().unwrap());
        let long = Duration::from_secs(10);
        let mut note = |jobs: &[Duration]| {
            incoming.note_jobs(jobs.iter().copied());
            incoming.every.as_millis()
        };
        let grows: Vec<u128> = (0..8).map(|_| note(&[long, long])).collect();
        assert_eq!(grows, [8, 16, 32, 64, 128, 256, 500, 500]);
        assert_eq!(
            note(&[long, Duration::from_millis(80)]),
            10,
            "the quickest origin must not run out of jobs"
        );
        assert_eq!(note(&[]), 10);
        assert_eq!(note(&[Duration::ZERO]), 10, "a job without a request says nothing");
        assert_eq!(note(&[Duration::from_millis(1)]), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_a_while_waits_for_nothing() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        let mut incoming = Incoming::of(source.clone());
        tokio::time::sleep(EVERY).await;
        ended(&bus, &source, 0).await;
        let asked_at = Instant::now();
        assert_eq!(incoming.next(&bus, 0).await.unwrap().len(), 1);
        assert_eq!(asked_at.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn where_nothing_comes_back_it_is_said_after_a_while() {
        let source: SourceId = "s".parse().unwrap();
        let bus = bus(&source).await;
        assert!(Incoming::of(source).next(&bus, 8).await.unwrap().is_empty());
    }
}
