//! What a hub counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct HubCounts {
    delivered: AtomicU64,
    failed: AtomicU64,
    verified: AtomicU64,
    unverified: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

impl HubCounts {
    pub(super) fn delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn verified(&self, is_good: bool) {
        let count = if is_good { &self.verified } else { &self.unverified };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// Each count by its name.
    pub(crate) fn all(&self) -> [(&'static str, u64); 6] {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("delivered", read(&self.delivered)),
            ("failed", read(&self.failed)),
            ("verified", read(&self.verified)),
            ("unverified", read(&self.unverified)),
            ("refused", read(&self.refused)),
            ("given_up", read(&self.given_up)),
        ]
    }
}
