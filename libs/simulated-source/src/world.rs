//! The true state of a simulated Source: its resources, now and at any earlier moment.
//!
//! Only resources that changed have a record; the others follow from their index.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::change::{Change, ChangeKind, Changes};
use super::clock::{SimClock, SimTime};
use super::content::mix;

/// The changeable state of a Source.
#[derive(Debug)]
pub(crate) struct World {
    clock: SimClock,
    rng: ChaCha8Rng,
    initial: u64,
    next_index: u64,
    live: u64,
    seed: u64,
    histories: HashMap<u64, Vec<Change>>,
    log: Vec<Change>,
    /// The first change in the Change List, and the start of its interval.
    told_from: (usize, SimTime),
    entries_per_list: u64,
    snapshot: Snapshot,
}

/// A resource at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) version: u32,
    pub(crate) modified: SimTime,
}

/// The content of the Resource List: the state at one moment, divided into parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) at: SimTime,
    /// The indices of each part; deleted resources are gaps in them.
    pub(crate) parts: Vec<Range<u64>>,
}

/// A part of the Change List.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) from: SimTime,
    /// Absent while the list is open.
    pub(crate) until: Option<SimTime>,
    /// Its changes, as a range of the log.
    pub(crate) changes: Range<usize>,
}

impl World {
    pub(crate) fn new(seed: u64, resources: u64, entries_per_list: u64) -> World {
        let mut world = World {
            clock: SimClock::new(),
            rng: ChaCha8Rng::seed_from_u64(mix(seed)),
            initial: resources,
            next_index: resources,
            live: resources,
            seed,
            histories: HashMap::new(),
            log: Vec::new(),
            told_from: (0, SimTime::START),
            entries_per_list: entries_per_list.max(1),
            snapshot: Snapshot { at: SimTime::START, parts: Vec::new() },
        };
        world.refresh_snapshot();
        world
    }

    pub(crate) fn now(&self) -> SimTime {
        self.clock.now()
    }

    pub(crate) fn advance(&mut self, seconds: u32) {
        self.clock.advance(seconds);
    }

    /// One more than the greatest index that was ever used.
    pub(crate) fn next_index(&self) -> u64 {
        self.next_index
    }

    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// A resource at `time`; `None` when it did not exist.
    pub(crate) fn at(&self, index: u64, time: SimTime) -> Option<Present> {
        let last = self.histories.get(&index).and_then(|events| {
            let after = events.partition_point(|event| event.time <= time);
            events[..after].last()
        });
        match last {
            Some(event) if event.kind == ChangeKind::Deleted => None,
            Some(event) => Some(Present { version: event.version, modified: event.time }),
            None if index < self.initial => {
                // Resources of the first hour were last changed some time in the year before it.
                let age = mix(self.seed ^ mix(index)) % 31_536_000;
                Some(Present { version: 0, modified: SimTime::START.plus(-1 - age as i64) })
            }
            None => None,
        }
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Updates the Resource List to the present.
    pub(crate) fn refresh_snapshot(&mut self) {
        let at = self.now();
        let mut parts = Vec::new();
        if self.histories.is_empty() {
            let step = self.entries_per_list;
            let starts = (0..self.next_index).step_by(usize::try_from(step).unwrap_or(usize::MAX));
            parts.extend(starts.map(|start| start..(start.saturating_add(step)).min(self.next_index)));
        } else {
            let mut start = 0;
            let mut count = 0;
            for index in 0..self.next_index {
                if self.at(index, at).is_some() {
                    if count == self.entries_per_list {
                        parts.push(start..index);
                        start = index;
                        count = 0;
                    }
                    count += 1;
                }
            }
            parts.push(start..self.next_index);
        }
        if parts.is_empty() {
            parts.push(0..0);
        }
        self.snapshot = Snapshot { at, parts };
    }

    /// Makes one change.
    ///
    /// # Panics
    /// When it is impossible: to create an existing resource, to update or delete a missing one.
    pub(crate) fn apply(&mut self, index: u64, kind: ChangeKind) -> Change {
        let before = self.at(index, self.now());
        let version = match (kind, before) {
            (ChangeKind::Created, None) => {
                self.live += 1;
                self.next_index = self.next_index.max(index + 1);
                self.last_version(index).map_or(0, |version| version + 1)
            }
            (ChangeKind::Updated, Some(present)) => present.version + 1,
            (ChangeKind::Deleted, Some(present)) => {
                self.live -= 1;
                present.version
            }
            (kind, _) => panic!(
                "resource {index} cannot be {}: it is {}",
                kind.name(),
                if before.is_some() { "there" } else { "not there" }
            ),
        };
        let change = Change { time: self.clock.advance(1), index, version, kind };
        self.histories.entry(index).or_default().push(change);
        self.log.push(change);
        change
    }

    /// Makes seeded changes: first those that create, then those that update, then those that delete. When
    /// fewer resources exist than are to be updated and deleted, all of them are, updates first.
    pub(crate) fn change(&mut self, changes: Changes) -> Vec<Change> {
        let chosen = self.choose(changes.update.saturating_add(changes.delete));
        let created = self.next_index..self.next_index + changes.create;
        let mut made: Vec<Change> = created.map(|index| self.apply(index, ChangeKind::Created)).collect();
        for (nth, index) in chosen.into_iter().enumerate() {
            let kind = if (nth as u64) < changes.update { ChangeKind::Updated } else { ChangeKind::Deleted };
            made.push(self.apply(index, kind));
        }
        made
    }

    /// Lets the Change List begin at the present, like a Source that drops older changes.
    pub(crate) fn forget_changes(&mut self) {
        self.told_from = (self.log.len(), self.now());
    }

    /// The parts of the Change List, each of at most `entries`.
    pub(crate) fn intervals(&self, entries: u64) -> Vec<Interval> {
        let entries = usize::try_from(entries.max(1)).unwrap_or(usize::MAX);
        let (mut start, mut from) = self.told_from;
        let mut intervals = Vec::new();
        while self.log.len() - start > entries {
            let end = start + entries;
            let until = self.log[end - 1].time;
            intervals.push(Interval { from, until: Some(until), changes: start..end });
            start = end;
            from = until;
        }
        intervals.push(Interval { from, until: None, changes: start..self.log.len() });
        intervals
    }

    /// A change by its index in the log.
    pub(crate) fn logged(&self, place: usize) -> Option<Change> {
        self.log.get(place).copied()
    }

    /// The moment of the last change, or of the start.
    pub(crate) fn last_change(&self) -> SimTime {
        self.log.last().map_or(SimTime::START, |change| change.time).max(self.told_from.1)
    }

    fn last_version(&self, index: u64) -> Option<u32> {
        let last = self.histories.get(&index).and_then(|events| events.last()).map(|event| event.version);
        last.or((index < self.initial).then_some(0))
    }

    /// Up to `count` different existing resources, in seeded order.
    fn choose(&mut self, count: u64) -> Vec<u64> {
        let count = count.min(self.live) as usize;
        let now = self.now();
        if count as u64 * 2 > self.live || self.live * 4 < self.next_index {
            // Random draws would miss too often: choose from all existing ones.
            let mut all: Vec<u64> =
                (0..self.next_index).filter(|index| self.at(*index, now).is_some()).collect();
            all.shuffle(&mut self.rng);
            all.truncate(count);
            return all;
        }
        let mut chosen = Vec::with_capacity(count);
        let mut seen = BTreeSet::new();
        while chosen.len() < count {
            let index = self.rng.random_range(0..self.next_index);
            if self.at(index, now).is_some() && seen.insert(index) {
                chosen.push(index);
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests;
