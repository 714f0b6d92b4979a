//! The origins that have a queue at the bus. Their number is bounded, whatever a list contains.

use std::collections::{HashSet, VecDeque};

use model::Lane;

/// Queues that could not be closed and are retried at a time.
const AGAIN: usize = 64;

/// The origins whose queues are open.
#[derive(Debug)]
pub(super) struct OpenLanes {
    most: usize,
    open: HashSet<Lane>,
    /// Queues that this run no longer needs, but could not close: others had messages there, or a last one was not
    /// acknowledged yet.
    kept: VecDeque<Lane>,
}

impl OpenLanes {
    /// No queue yet, and at most `most`.
    pub(super) fn at_most(most: usize) -> Self {
        Self { most: most.max(1), open: HashSet::new(), kept: VecDeque::new() }
    }

    /// Whether no further origin may have a queue until one is closed.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= self.most
    }

    /// Whether an origin has a queue.
    pub(super) fn holds(&self, lane: &Lane) -> bool {
        self.open.contains(lane)
    }

    /// Whether a job may go out for an origin.
    pub(super) fn admits(&self, lane: &Lane) -> bool {
        !self.is_full() || self.holds(lane)
    }

    /// Registers the queue of an origin, when a job goes out for it.
    pub(super) fn insert(&mut self, lane: &Lane) {
        if !self.open.contains(lane) {
            self.open.insert(lane.clone());
        }
    }

    /// Removes and returns the idle ones, with some that could not be closed before: their queues must be closed.
    pub(super) fn take_idle(&mut self, is_idle: impl Fn(&Lane) -> bool) -> Vec<Lane> {
        let mut idle: Vec<Lane> = self.open.extract_if(is_idle).collect();
        if !idle.is_empty() {
            let again = self.kept.drain(..AGAIN.min(self.kept.len())).collect::<Vec<_>>();
            idle.extend(again.into_iter().filter(|lane| !self.open.contains(lane)));
        }
        idle
    }

    /// Keeps a queue that could not be closed.
    pub(super) fn keep(&mut self, lane: Lane) {
        if !self.kept.contains(&lane) {
            self.kept.push_back(lane);
        }
    }

    /// All origins whose queues may still be open.
    pub(super) fn into_all(self) -> HashSet<Lane> {
        let mut all = self.open;
        all.extend(self.kept);
        all
    }
}
