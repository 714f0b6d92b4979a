//! Turns of polls. A poll that takes long goes on in a turn of its own kind, so that slow Sources do not keep the polls
//! of others waiting.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::SourceId;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Of each so many turns, one more is for slow Sources.
const SLOW_PART: usize = 4;

/// The turns of a scheduler's polls. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PollTurns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    quick: Semaphore,
    slow: Semaphore,
    /// How long a quick poll takes at most.
    quick_time: Duration,
    /// Sources of this scheduler whose last poll took longer.
    slow_sources: Mutex<HashSet<SourceId>>,
}

impl PollTurns {
    /// This many polls at a time, and a quarter more for slow Sources. A poll is slow if it takes longer than
    /// `quick_time`.
    pub(crate) fn new(turns: usize, quick_time: Duration) -> Self {
        let turns = turns.max(1);
        Self(Arc::new(Shared {
            quick: Semaphore::new(turns),
            slow: Semaphore::new((turns / SLOW_PART).max(1)),
            quick_time,
            slow_sources: Mutex::default(),
        }))
    }

    /// Polls a Source in its turn. If that takes longer than a quick poll may, `poll` is dropped and called again, in a
    /// turn of the slow ones. So is the next poll of the Source, until one is quick.
    pub(crate) async fn poll<T, F>(&self, source: &SourceId, poll: impl Fn() -> F) -> T
    where
        F: Future<Output = T>,
    {
        let Shared { quick, slow, quick_time, .. } = &*self.0;
        if !self.slow_sources().contains(source) {
            // The semaphores are never closed.
            let _turn = quick.acquire().await;
            if let Ok(polled) = timeout(*quick_time, poll()).await {
                return polled;
            }
        }
        let _turn = slow.acquire().await;
        let began = Instant::now();
        let polled = poll().await;
        if began.elapsed() > *quick_time {
            self.slow_sources().insert(source.clone());
        } else {
            self.forget(source);
        }
        polled
    }

    /// Another scheduler polls the Source.
    pub(crate) fn forget(&self, source: &SourceId) {
        self.slow_sources().remove(source);
    }

    fn slow_sources(&self) -> MutexGuard<'_, HashSet<SourceId>> {
        self.0.slow_sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    const QUICK: Duration = Duration::from_secs(10);
    const DRIP: Duration = Duration::from_secs(60);

    fn source(n: usize) -> SourceId {
        format!("source-{n}").parse().unwrap()
    }

    /// Polls these Sources at once; each poll takes as long. Returns how many were polled, twice or more included.
    async fn poll_all(turns: &PollTurns, sources: std::ops::Range<usize>, takes: Duration) -> usize {
        let calls = Arc::new(AtomicUsize::new(0));
        let mut polls = JoinSet::new();
        for n in sources {
            let (turns, calls) = (turns.clone(), Arc::clone(&calls));
            polls.spawn(async move {
                turns
                    .poll(&source(n), || {
                        calls.fetch_add(1, Ordering::Relaxed);
                        sleep(takes)
                    })
                    .await;
            });
        }
        polls.join_all().await;
        calls.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn hundreds_of_dripping_sources_keep_others_waiting_for_seconds_and_once() {
        let turns = PollTurns::new(256, QUICK);
        let slow = turns.clone();
        let dripping = tokio::spawn(async move { poll_all(&slow, 0..300, DRIP).await });
        sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        assert_eq!(poll_all(&turns, 1_000..1_100, Duration::from_millis(100)).await, 100);
        let waited = start.elapsed();
        assert!(waited < QUICK * 2, "{waited:?}");
        assert_eq!(dripping.await.unwrap(), 600, "each was begun twice");

        // They are known now, and take no turn of others.
        let slow = turns.clone();
        let dripping = tokio::spawn(async move { poll_all(&slow, 0..300, DRIP).await });
        sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        poll_all(&turns, 1_000..1_100, Duration::from_millis(100)).await;
        assert_eq!(start.elapsed(), Duration::from_millis(100));
        let start = Instant::now();
        assert_eq!(dripping.await.unwrap(), 300);
        assert!(start.elapsed() <= DRIP * 5, "64 at a time: {:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_source_that_is_quick_again_or_gone_is_forgotten() {
        let turns = PollTurns::new(1, QUICK);
        poll_all(&turns, 0..2, DRIP).await;
        assert_eq!(turns.slow_sources().len(), 2);
        assert_eq!(poll_all(&turns, 0..1, Duration::from_secs(1)).await, 1);
        turns.forget(&source(1));
        assert!(turns.slow_sources().is_empty());
    }
}
