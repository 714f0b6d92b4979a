//! Sources that fail for a while, and then work.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long such a Source fails, from its first connection.
const FAILS_FOR: Duration = Duration::from_secs(20);

/// The Sources of this kind that had a connection.
#[derive(Debug, Default)]
pub(super) struct Flapping {
    seen: Mutex<HashMap<u32, Seen>>,
}

#[derive(Debug)]
struct Seen {
    since: Instant,
    connections: u64,
}

impl Flapping {
    /// Notes a connection; returns whether the Source closes it at once. Every other one while it fails is closed.
    pub(super) fn closes(&self, number: u32, now: Instant) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(number).or_insert(Seen { since: now, connections: 0 });
        seen.connections += 1;
        seen.fails(now) && seen.connections % 2 == 1
    }

    /// Whether the Source fails now.
    pub(super) fn fails(&self, number: u32, now: Instant) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&number).is_none_or(|seen| seen.fails(now))
    }
}

impl Seen {
    fn fails(&self, now: Instant) -> bool {
        now.duration_since(self.since) < FAILS_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_fails_from_its_first_connection_and_works_later() {
        let flapping = Flapping::default();
        let first = Instant::now();
        assert_eq!([(); 3].map(|()| flapping.closes(1, first)), [true, false, true]);
        assert!(flapping.fails(1, first));
        let later = first + FAILS_FOR;
        assert!(!flapping.fails(1, later));
        assert_eq!([(); 2].map(|()| flapping.closes(1, later)), [false, false]);
        assert!(flapping.closes(2, later), "each Source has a time of its own");
    }
}
