//! Counts of requests, by kind of Source.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, What};
use super::population::Kind;

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// By the kind of the Source.
    pub(crate) kinds: BTreeMap<Kind, KindCounts>,
    /// The most requests that were open at one Source at a time.
    pub(crate) most_open_at_one: u64,
}

/// Counts of all Sources of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KindCounts {
    /// Connections.
    pub(crate) connections: u64,
    /// Requests.
    pub(crate) requests: u64,
    /// Responses with a body: 200.
    pub(crate) full: u64,
    /// Responses that nothing has changed: 304.
    pub(crate) not_modified: u64,
    /// Those of them that were about a Resource List or a Change List: polls.
    pub(crate) looks: u64,
    /// Bodies of resources: 200.
    pub(crate) bodies: u64,
}

/// The counters of a server.
#[derive(Debug)]
pub(super) struct Counters {
    counts: Mutex<Counts>,
    /// Open requests of each Source.
    open: Mutex<Vec<u16>>,
    /// The first request of each Source since it was last asked for: milliseconds since 1970.
    first: Mutex<Vec<Option<i64>>>,
}

/// An open request; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Open<'a> {
    counters: &'a Counters,
    number: u32,
}

impl Counts {
    /// The sum over all kinds.
    pub(crate) fn all(&self) -> KindCounts {
        self.kinds.values().fold(KindCounts::default(), |sum, kind| sum.combine(*kind, |a, b| a + b))
    }
}

impl KindCounts {
    /// What was counted since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        self.combine(before, u64::saturating_sub)
    }

    fn combine(self, other: Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            connections: with(self.connections, other.connections),
            requests: with(self.requests, other.requests),
            full: with(self.full, other.full),
            not_modified: with(self.not_modified, other.not_modified),
            looks: with(self.looks, other.looks),
            bodies: with(self.bodies, other.bodies),
        }
    }
}

impl Counters {
    /// For this many Sources.
    pub(super) fn new(sources: u32) -> Self {
        let open = Mutex::new(vec![0; sources as usize]);
        let first = Mutex::new(vec![None; sources as usize]);
        Self { counts: Mutex::default(), open, first }
    }

    /// When each Source got its first request since the last call, in milliseconds since 1970.
    pub(super) fn take_first(&self) -> Vec<Option<i64>> {
        let mut first = locked(&self.first);
        let none = vec![None; first.len()];
        std::mem::replace(&mut first, none)
    }

    /// The counts so far.
    pub(super) fn counts(&self) -> Counts {
        locked(&self.counts).clone()
    }

    /// A connection to a Source.
    pub(super) fn connected(&self, kind: Kind) {
        locked(&self.counts).kinds.entry(kind).or_default().connections += 1;
    }

    /// A request to a Source.
    pub(super) fn requested(&self, kind: Kind, number: u32) -> Open<'_> {
        let open = {
            let mut open = locked(&self.open);
            let open = &mut open[number as usize];
            *open = open.saturating_add(1);
            u64::from(*open)
        };
        locked(&self.first)[number as usize].get_or_insert_with(|| Timestamp::now().as_millisecond());
        let mut counts = locked(&self.counts);
        counts.most_open_at_one = counts.most_open_at_one.max(open);
        counts.kinds.entry(kind).or_default().requests += 1;
        Open { counters: self, number }
    }

    /// A response that begins.
    pub(super) fn answered(&self, kind: Kind, answer: &Answer) {
        let mut counts = locked(&self.counts);
        let counts = counts.kinds.entry(kind).or_default();
        match (answer.status, answer.what) {
            (200, what) => {
                counts.full += 1;
                counts.bodies += u64::from(what == What::Resource);
            }
            (304, what) => {
                counts.not_modified += 1;
                counts.looks += u64::from(what == What::List);
            }
            _ => {}
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        locked(&self.counters.open)[self.number as usize] -= 1;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
