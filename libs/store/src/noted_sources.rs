//! The markers of Sources that this process wrote. Each run writes one, and nearly all are the same as before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::SourceId;
use tokio::time::Instant;

/// How long a marker that this process wrote need not be written again. Another process may have written another one.
pub(crate) const NOTED_FOR: Duration = Duration::from_secs(3600);
/// The most markers that are remembered.
const MOST_NOTED: usize = 10_000;

/// The markers that this process wrote, as they are stored.
#[derive(Debug, Default)]
pub(crate) struct NotedSources(Mutex<HashMap<SourceId, (Instant, Vec<u8>)>>);

impl NotedSources {
    /// Whether this process wrote this very marker lately.
    pub(crate) fn has(&self, source: &SourceId, marker: &[u8]) -> bool {
        let noted = self.lock();
        noted.get(source).is_some_and(|(at, noted)| noted == marker && at.elapsed() < NOTED_FOR)
    }

    /// Records that a marker was written.
    pub(crate) fn add(&self, source: &SourceId, marker: Vec<u8>) {
        let mut noted = self.lock();
        if noted.len() >= MOST_NOTED {
            noted.clear();
        }
        noted.insert(source.clone(), (Instant::now(), marker));
    }

    /// Forgets the marker of a Source: it is removed, or written by others.
    pub(crate) fn forget(&self, source: &SourceId) {
        self.lock().remove(source);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, (Instant, Vec<u8>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
