//! The records of a repository: a few bytes each, all else follows from the seed.

use std::collections::{HashMap, HashSet};

use rand::{RngExt as _, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::spec::{Deletions, RepositorySpec};
use crate::change::Changes;
use crate::clock::{SimClock, SimTime};

/// The state of one record.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) modified: SimTime,
    pub(super) version: u32,
    pub(super) deleted: bool,
    /// A deletion that is no longer shown.
    pub(super) forgotten: bool,
    /// It left its set.
    pub(super) left_set: bool,
}

/// The state of one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileState {
    pub(super) version: u32,
    /// Whether its record names it.
    pub(super) is_named: bool,
    /// Whether it is served.
    pub(super) is_served: bool,
}

#[derive(Debug)]
pub(super) struct World {
    clock: SimClock,
    records: Vec<State>,
    /// Files that are not as they were at the start, by record and number.
    files: HashMap<(u64, u64), FileState>,
    rng: ChaCha8Rng,
    /// Sets that were removed, by number.
    pub(super) removed_sets: Vec<u64>,
}

impl World {
    pub(super) fn new(spec: &RepositorySpec) -> World {
        let earliest = -(spec.records as i64) * i64::from(spec.seconds_apart);
        let records = (0..spec.records).map(|index| State {
            modified: SimTime::START.plus(earliest + index as i64 * i64::from(spec.seconds_apart)),
            version: 0,
            deleted: spec.deleted_every > 0 && index % spec.deleted_every == spec.deleted_every - 1,
            forgotten: false,
            left_set: false,
        });
        World {
            clock: SimClock::new(),
            records: records.collect(),
            files: HashMap::new(),
            rng: ChaCha8Rng::seed_from_u64(spec.seed),
            removed_sets: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> SimTime {
        self.clock.now()
    }

    pub(super) fn advance(&mut self, seconds: u32) -> SimTime {
        self.clock.advance(seconds)
    }

    pub(super) fn len(&self) -> u64 {
        self.records.len() as u64
    }

    pub(super) fn get(&self, index: u64) -> Option<&State> {
        self.records.get(usize::try_from(index).ok()?)
    }

    fn get_mut(&mut self, index: u64) -> Option<&mut State> {
        self.records.get_mut(usize::try_from(index).ok()?)
    }

    /// Whether the repository shows the record, live or deleted.
    pub(super) fn shows(&self, state: &State, deletions: Deletions) -> bool {
        !state.deleted || (deletions != Deletions::No && !state.forgotten)
    }

    /// Changes records chosen by the seed, each a second after the one before; returns their indices.
    pub(super) fn change(&mut self, changes: Changes) -> Vec<u64> {
        let mut changed = Vec::new();
        let mut taken = HashSet::new();
        for _ in 0..changes.create {
            let modified = self.advance(1);
            let state = State { modified, version: 0, deleted: false, forgotten: false, left_set: false };
            taken.insert(self.len());
            changed.push(self.len());
            self.records.push(state);
        }
        for step in 0..changes.update + changes.delete {
            let Some(index) = self.pick(&taken) else { break };
            if step < changes.update {
                self.update(index)
            } else {
                self.delete(index)
            }
            taken.insert(index);
            changed.push(index);
        }
        changed
    }

    /// A live record that is not among these.
    fn pick(&mut self, without: &HashSet<u64>) -> Option<u64> {
        let count = self.len();
        if count == 0 {
            return None;
        }
        let start = self.rng.random_range(0..count);
        let is_free =
            |index: &u64| self.get(*index).is_some_and(|state| !state.deleted) && !without.contains(index);
        (0..count).map(|step| (start + step) % count).find(is_free)
    }

    pub(super) fn update(&mut self, index: u64) {
        let modified = self.advance(1);
        if let Some(state) = self.get_mut(index) {
            *state = State { modified, version: state.version + 1, deleted: false, ..*state };
        }
    }

    /// The state of a file.
    pub(super) fn file(&self, index: u64, number: u64) -> FileState {
        let new = FileState { version: 0, is_named: true, is_served: true };
        self.files.get(&(index, number)).copied().unwrap_or(new)
    }

    /// The bytes of a file change, and so does its record.
    pub(super) fn update_file(&mut self, index: u64, number: u64) {
        let file = self.file(index, number);
        self.files.insert((index, number), FileState { version: file.version + 1, ..file });
        self.update(index);
    }

    /// The record names a file no more, and the file is gone.
    pub(super) fn remove_file(&mut self, index: u64, number: u64) {
        let file = self.file(index, number);
        self.files.insert((index, number), FileState { is_named: false, is_served: false, ..file });
        self.update(index);
    }

    /// A file is gone, and its record still names it.
    pub(super) fn lose_file(&mut self, index: u64, number: u64) {
        let file = self.file(index, number);
        self.files.insert((index, number), FileState { is_served: false, ..file });
    }

    /// Other metadata under the same datestamp.
    pub(super) fn update_silently(&mut self, index: u64) {
        if let Some(state) = self.get_mut(index) {
            state.version += 1;
        }
    }

    /// A new datestamp over the same metadata.
    pub(super) fn touch(&mut self, index: u64) {
        let modified = self.advance(1);
        if let Some(state) = self.get_mut(index) {
            state.modified = modified;
        }
    }

    pub(super) fn delete(&mut self, index: u64) {
        let modified = self.advance(1);
        if let Some(state) = self.get_mut(index) {
            *state = State { modified, deleted: true, forgotten: false, ..*state };
        }
    }

    /// The record leaves its set, which gives it a new datestamp.
    pub(super) fn leave_set(&mut self, index: u64) {
        let modified = self.advance(1);
        if let Some(state) = self.get_mut(index) {
            *state = State { modified, left_set: true, ..*state };
        }
    }

    pub(super) fn forget_deletions(&mut self) {
        for state in &mut self.records {
            state.forgotten = state.deleted;
        }
    }
}
