//! The records of a page, before their bytes are read: their lengths are known.

use super::page::OaiLimits;
use super::position::Position;
use super::record::Found;

/// The records of a page.
#[derive(Debug)]
pub(super) struct Chosen {
    limits: OaiLimits,
    pub(super) records: Vec<Found>,
    bytes: u64,
    /// Entries of the change log that were read.
    pub(super) read: usize,
    /// Where the next page begins; none if there is none.
    pub(super) next: Option<Position>,
}

impl Chosen {
    pub(super) fn new(limits: OaiLimits) -> Self {
        Self { limits, records: Vec::new(), bytes: 0, read: 0, next: None }
    }

    /// How many entries to look at together: about a page, if each has a record.
    pub(super) fn together(&self, (fewest, most): (usize, usize)) -> usize {
        (self.limits.records + 1).clamp(fewest, most)
    }

    /// Takes a record. One that has no room begins the next page; a record alone always has room.
    pub(super) fn take(&mut self, found: Found) {
        if self.next.is_some() {
            return;
        }
        let bytes = self.bytes + found.bytes();
        let is_full = self.records.len() >= self.limits.records || bytes > self.limits.bytes;
        match self.records.last() {
            Some(last) if is_full => self.next = Some(last.position.clone()),
            _ => {
                self.bytes = bytes;
                self.records.push(found);
            }
        }
    }

    /// Counts entries that were read, up to this position. A page ends with too many of them, so that a request is
    /// answered in time though few records match.
    pub(super) fn count(&mut self, entries: usize, last: Position) {
        self.read += entries;
        if self.next.is_none() && self.read >= self.limits.entries {
            self.next = Some(last);
        }
    }
}
