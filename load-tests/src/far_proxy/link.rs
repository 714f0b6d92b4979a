//! The link to a far server: its distance, its bandwidth, and how often it stalls.

use std::time::Duration;

use tokio::time::Instant;

use super::window::{INITIAL, SEGMENT};

/// A link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Link {
    /// There and back.
    pub(crate) round_trip: Duration,
    /// Bytes per second, of all connections together.
    pub(crate) bytes_per_second: u64,
    /// The largest window of a connection, in bytes: what the receiving system allows.
    pub(crate) most_window: u64,
    /// The share of pieces that arrive a round trip later, as if they were sent once more.
    pub(crate) stalls: f64,
}

/// The bytes that wait before the link.
#[derive(Debug)]
pub(super) struct Queue {
    free_at: Instant,
    bytes_per_second: u64,
}

impl Link {
    /// Half of a round trip.
    pub(super) fn one_way(&self) -> Duration {
        self.round_trip / 2
    }

    /// The shortest possible time of `bytes` over new connections, of which at most `asked` are requested at a time:
    /// from the moment when the first request is sent.
    pub(crate) fn least(&self, bytes: u64, asked: u64, connections: u64) -> Duration {
        let per_trip = (self.bytes_per_second as f64 * self.round_trip.as_secs_f64()) as u64;
        let most = per_trip.min(asked).min(self.most_window * connections).max(SEGMENT);
        let mut window = INITIAL * connections;
        let mut left = bytes;
        let mut trips = 0.0;
        while window < most && left > window {
            left -= window;
            window *= 2;
            trips += 1.0;
        }
        // The last bytes are half a round trip on their way, as was their request.
        trips += (left as f64 / most as f64).max(1.0);
        self.round_trip.mul_f64(trips)
    }
}

impl Queue {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { free_at: Instant::now(), bytes_per_second }
    }

    /// Sends bytes that arrive before the link now, and returns when the last one has left.
    pub(super) fn send(&mut self, now: Instant, bytes: u64) -> Instant {
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second.max(1) as f64);
        self.free_at = self.free_at.max(now) + takes;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link {
        round_trip: Duration::from_millis(100),
        bytes_per_second: 10_000_000,
        most_window: 1 << 30,
        stalls: 0.0,
    };

    #[tokio::test(start_paused = true)]
    async fn bytes_leave_one_after_another_at_the_rate_of_the_link() {
        let mut queue = Queue::new(1000);
        let now = Instant::now();
        assert_eq!(queue.send(now, 100) - now, Duration::from_millis(100));
        assert_eq!(queue.send(now, 100) - now, Duration::from_millis(200));
        tokio::time::advance(Duration::from_secs(1)).await;
        let later = Instant::now();
        assert_eq!(queue.send(later, 100) - later, Duration::from_millis(100), "nothing is saved up");
    }

    #[test]
    fn the_least_time_counts_the_trips_of_slow_start_and_then_the_rate() {
        // What fits into the first windows takes one trip.
        assert_eq!(LINK.least(1000, u64::MAX, 1), LINK.round_trip);
        assert_eq!(LINK.least(INITIAL * 2, u64::MAX, 2), LINK.round_trip);
        // A first window, then twice as much.
        assert_eq!(LINK.least(INITIAL * 3, u64::MAX, 1), LINK.round_trip * 2);
        // 100 MB at 10 MB/s: slow start adds less than a second.
        let long = LINK.least(100_000_000, u64::MAX, 1);
        assert!(long > Duration::from_secs(10) && long < Duration::from_secs(11), "{long:?}");
        let asked = LINK.least(100_000_000, 100_000, 1);
        assert!(asked > Duration::from_secs(99), "what is not requested does not come: {asked:?}");
        let narrow = Link { most_window: 200_000, ..LINK };
        assert!(narrow.least(100_000_000, u64::MAX, 1) > Duration::from_secs(49));
        assert!(narrow.least(100_000_000, u64::MAX, 4) < Duration::from_secs(14));
    }
}
