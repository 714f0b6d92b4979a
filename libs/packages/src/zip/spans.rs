//! Checks which bytes belong to which member. Overlapping members let a small archive inflate without end,
//! and let two readers see different contents.

use super::directory::Directory;
use super::{Member, local};
use crate::PackageError;

impl Directory {
    /// Refuses members that overlap each other or the directory, from header to end of data. The length of a
    /// member's header is certain only from the header itself; [`locate`](Directory::locate) compares that
    /// with the same neighbours.
    pub(super) fn order_spans(&mut self) -> Result<(), PackageError> {
        let entries = &self.entries;
        self.by_offset.sort_unstable_by_key(|&index| entries[index as usize].header_offset);
        for rank in 0..self.by_offset.len() {
            let member = self.member(self.by_offset[rank]);
            let head = local::HEAD as u64 + member.name_bytes.len() as u64;
            let end =
                member.header_offset.checked_add(head).and_then(|at| at.checked_add(member.compressed_size));
            let end = end.unwrap_or(u64::MAX);
            let next = self.by_offset.get(rank + 1).map(|&index| self.entries[index as usize].header_offset);
            let next = next.unwrap_or(self.directory_offset);
            if end > next {
                let into = self.what_begins_at(next);
                return Err(PackageError::Overlap { place: member.place(), end, into, next });
            }
        }
        Ok(())
    }

    /// Where a member's data has to end: at the header of the next one, or at the directory.
    pub(super) fn end_of(&self, member: &Member<'_>) -> u64 {
        self.first_from(member.header_offset + 1).map_or(self.directory_offset, |next| next.header_offset)
    }

    /// The part that begins there, for messages.
    pub(super) fn what_begins_at(&self, offset: u64) -> String {
        match self.first_from(offset) {
            Some(next) => format!("“{}”", next.place().name.unwrap_or_default()),
            None => "the directory".to_owned(),
        }
    }

    /// The first member whose header begins there or later.
    fn first_from(&self, offset: u64) -> Option<Member<'_>> {
        let begins_before = |index: &u32| self.entries[*index as usize].header_offset < offset;
        let rank = self.by_offset.partition_point(begins_before);
        self.by_offset.get(rank).map(|&index| self.member(index))
    }
}
