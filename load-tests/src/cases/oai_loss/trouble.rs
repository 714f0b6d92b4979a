//! Records that change while they are harvested.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use simulated_source::{Changes, SimulatedRepository};

/// The pause between two changes.
const PAUSE: Duration = Duration::from_millis(200);

/// The changes so far.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    is_over: AtomicBool,
    changes: AtomicU64,
}

impl Trouble {
    /// Updates, creates and deletes records until it is over.
    pub(super) fn change(&self, repository: &SimulatedRepository) {
        for number in 0_u64.. {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let changes = match number % 10 {
                0 => Changes { create: 1, ..Changes::default() },
                5 => Changes { delete: 1, ..Changes::default() },
                _ => Changes { update: 1, ..Changes::default() },
            };
            self.changes.fetch_add(repository.change(changes).len() as u64, Ordering::SeqCst);
            std::thread::park_timeout(PAUSE);
        }
    }

    /// Ends them.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// How many there were.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}
