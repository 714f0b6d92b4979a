//! Memory and places in use, in all and by host or label.

use std::collections::HashMap;

/// Runs in places, and their memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) runs: usize,
    pub(super) bytes: u64,
}

impl Usage {
    /// With one more run.
    pub(super) fn with(self, bytes: u64) -> Self {
        Self { runs: self.runs + 1, bytes: self.bytes + bytes }
    }

    /// With one run less.
    pub(super) fn without(self, bytes: u64) -> Self {
        Self { runs: self.runs.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }

    /// One of `parts` equal parts, of one run at least.
    pub(super) fn part(self, parts: usize) -> Self {
        Self { runs: (self.runs / parts).max(1), bytes: self.bytes / parts as u64 }
    }

    pub(super) fn is_within(self, limit: Self) -> bool {
        self.runs <= limit.runs && self.bytes <= limit.bytes
    }
}

/// The usage of each host, or of each value of a label.
#[derive(Debug, Default)]
pub(super) struct UsageBy(HashMap<String, Usage>);

impl UsageBy {
    pub(super) fn of(&self, name: &str) -> Usage {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// How many names have any.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, name: &str, bytes: u64) {
        let used = self.0.entry(name.to_owned()).or_default();
        *used = used.with(bytes);
    }

    /// Adds memory to a run that is counted already.
    pub(super) fn grow(&mut self, name: &str, bytes: u64) {
        self.0.entry(name.to_owned()).or_default().bytes += bytes;
    }

    pub(super) fn remove(&mut self, name: &str, bytes: u64) {
        let Some(used) = self.0.get_mut(name) else { return };
        *used = used.without(bytes);
        if used.runs == 0 {
            self.0.remove(name);
        }
    }
}
