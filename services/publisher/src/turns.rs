//! Turns of publications. One that takes long goes on in a turn of its own kind, so that it holds up no other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// For each so many turns there is one more, for publications that take long.
const SLOW_PART: usize = 4;
/// How many times as long as a quick turn the first turn of a slow publication is. Each further one is twice as long.
const SLOW_TIMES: u32 = 8;

/// The turns of the publications of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    quick: Semaphore,
    slow: Semaphore,
    quick_time: Duration,
}

impl Turns {
    /// So many at a time, and a quarter more of those that take longer than `quick_time`.
    pub(crate) fn new(turns: usize, quick_time: Duration) -> Self {
        let turns = turns.max(1);
        Self(Arc::new(Shared {
            quick: Semaphore::new(turns),
            slow: Semaphore::new((turns / SLOW_PART).max(1)),
            quick_time,
        }))
    }

    /// Whether a quick turn is longer than this.
    pub(crate) fn are_longer_than(&self, time: Duration) -> bool {
        time < self.0.quick_time
    }

    /// Does `work` in its turn. It is told how long the turn is, and returns nothing if that was not enough. Then it is
    /// called again in a later turn, which is longer: so it must continue what it did before. `began_slow`: the last time
    /// took long, too. Returns also whether this time did.
    pub(crate) async fn run<T, F>(&self, began_slow: bool, work: impl Fn(Duration) -> F) -> (T, bool)
    where
        F: Future<Output = Option<T>>,
    {
        let Shared { quick, slow, quick_time } = &*self.0;
        if !began_slow {
            // The semaphores are never closed.
            let _turn = quick.acquire().await;
            if let Some(done) = work(*quick_time).await {
                return (done, false);
            }
        }
        let mut time = *quick_time * SLOW_TIMES;
        let mut is_slow = !began_slow;
        loop {
            let _turn = slow.acquire().await;
            let began = Instant::now();
            if let Some(done) = work(time).await {
                return (done, is_slow || began.elapsed() > *quick_time);
            }
            tracing::info!(seconds = time.as_secs(), "a publication takes long: it goes on in its next turn");
            is_slow = true;
            time = time.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::{sleep, timeout};

    use super::*;

    const QUICK: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn those_that_take_long_hold_up_others_for_one_turn_and_come_to_an_end() {
        let turns = Turns::new(2, QUICK);
        let mut slow = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let turns = turns.clone();
            // Each has 500 steps of a second, and continues after each turn.
            let steps = Arc::new(AtomicU64::new(0));
            slow.spawn(async move {
                let work = |time| {
                    let steps = Arc::clone(&steps);
                    let all = async move {
                        while steps.fetch_add(1, Ordering::Relaxed) < 500 {
                            sleep(Duration::from_secs(1)).await;
                        }
                    };
                    async move { timeout(time, all).await.ok() }
                };
                turns.run(false, work).await
            });
        }
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        let quick = |time| async move { timeout(time, sleep(Duration::from_millis(100))).await.ok() };
        let ((), is_slow) = turns.run(false, quick).await;
        assert!(!is_slow && began.elapsed() < QUICK * 6, "{:?}", began.elapsed());
        let began = Instant::now();
        turns.run(false, quick).await;
        assert!(began.elapsed() < Duration::from_secs(1), "they have left the quick turns");
        while let Some(done) = slow.join_next().await {
            assert!(done.unwrap().1);
        }
    }
}
