//! The origins that have a queue at the bus. Their number is bounded, whatever a list contains.

use std::collections::{HashSet, VecDeque};

use model::Origin;

/// Queues that could not be closed and are retried at a time.
const AGAIN: usize = 64;

/// The origins whose queues are open.
#[derive(Debug)]
pub(super) struct OpenOrigins {
    most: usize,
    open: HashSet<Origin>,
    /// Queues that this run no longer needs, but could not close: others had messages there, or a last one was not
    /// acknowledged yet.
    kept: VecDeque<Origin>,
}

impl OpenOrigins {
    /// No queue yet, and at most `most`.
    pub(super) fn at_most(most: usize) -> Self {
        Self { most: most.max(1), open: HashSet::new(), kept: VecDeque::new() }
    }

    /// Whether no further origin may have a queue until one is closed.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= self.most
    }

    /// Whether an origin has a queue.
    pub(super) fn holds(&self, origin: &Origin) -> bool {
        self.open.contains(origin)
    }

    /// Whether a job may go out for an origin.
    pub(super) fn admits(&self, origin: &Origin) -> bool {
        !self.is_full() || self.holds(origin)
    }

    /// Registers the queue of an origin, when a job goes out for it.
    pub(super) fn insert(&mut self, origin: &Origin) {
        if !self.open.contains(origin) {
            self.open.insert(origin.clone());
        }
    }

    /// Removes and returns the idle ones, with some that could not be closed before: their queues must be closed.
    pub(super) fn take_idle(&mut self, is_idle: impl Fn(&Origin) -> bool) -> Vec<Origin> {
        let mut idle: Vec<Origin> = self.open.extract_if(is_idle).collect();
        if !idle.is_empty() {
            let again = self.kept.drain(..AGAIN.min(self.kept.len())).collect::<Vec<_>>();
            idle.extend(again.into_iter().filter(|origin| !self.open.contains(origin)));
        }
        idle
    }

    /// Keeps a queue that could not be closed.
    pub(super) fn keep(&mut self, origin: Origin) {
        if !self.kept.contains(&origin) {
            self.kept.push_back(origin);
        }
    }

    /// All origins whose queues may still be open.
    pub(super) fn into_all(self) -> HashSet<Origin> {
        let mut all = self.open;
        all.extend(self.kept);
        all
    }
}
