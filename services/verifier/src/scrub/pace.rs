//! Limits the read rate of the store, in bytes per second.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A rate that several readers share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Pace(Option<Arc<Rate>>);

#[derive(Debug)]
struct Rate {
    bytes_per_second: NonZeroU64,
    /// When the next bytes may be read.
    free: Mutex<Instant>,
}

impl Pace {
    /// No limit for `None`.
    pub(crate) fn new(bytes_per_second: Option<NonZeroU64>) -> Self {
        let rate = |bytes_per_second| Rate { bytes_per_second, free: Mutex::new(Instant::now()) };
        Self(bytes_per_second.map(|rate_| Arc::new(rate(rate_))))
    }

    /// Waits until `bytes` may be read. Unused time is not made up for.
    pub(crate) async fn take(&self, bytes: u64) {
        let Some(rate) = &self.0 else { return };
        let begin = {
            let mut free = rate.free.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = (*free).max(Instant::now());
            *free = begin + rate.time_of(bytes);
            begin
        };
        sleep_until(begin).await;
    }
}

impl Rate {
    fn time_of(&self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_share_one_rate_and_nothing_is_made_up_for() {
        let pace = Pace::new(NonZeroU64::new(1_000));
        let began = Instant::now();
        let other = pace.clone();
        let one = async {
            for _ in 0..5 {
                pace.take(500).await
            }
        };
        let two = async {
            for _ in 0..5 {
                other.take(500).await
            }
        };
        tokio::join!(one, two);
        // The last 500 are being read.
        assert_eq!(began.elapsed().as_millis() / 10, 450);
        tokio::time::sleep(Duration::from_secs(100)).await;
        let began = Instant::now();
        pace.take(2_000).await;
        pace.take(1).await;
        assert_eq!(began.elapsed().as_millis() / 10, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_nobody_waits() {
        let pace = Pace::new(None);
        let began = Instant::now();
        pace.take(u64::MAX).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
