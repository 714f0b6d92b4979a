//! Which bytes belong to which member. Members that share bytes are how a small archive is made to inflate without end, and how
//! one reader is made to see other things than another.

use super::directory::Directory;
use super::local;
use crate::PackageError;

impl Directory {
    /// Refuses members that run into each other or into the directory, from header to end of data. How long a member's header is, is known for sure
    /// only from the header itself; [`locate`](Directory::locate) compares that with the same neighbours.
    pub(super) fn order_spans(&mut self) -> Result<(), PackageError> {
        let entries = &self.entries;
        self.by_offset.sort_unstable_by_key(|&index| entries[index as usize].header_offset);
        for rank in 0..self.by_offset.len() {
            let member = self.member(self.by_offset[rank]);
            let head = local::HEAD as u64 + member.name_bytes.len() as u64;
            let end =
                member.header_offset.checked_add(head).and_then(|at| at.checked_add(member.compressed_size));
            self.check_end(rank, end.unwrap_or(u64::MAX))?;
        }
        Ok(())
    }

    /// Where in the order of offsets the member at `header_offset` stands.
    pub(super) fn rank(&self, header_offset: u64) -> Option<usize> {
        let key = |index: &u32| self.entries[*index as usize].header_offset;
        self.by_offset.binary_search_by_key(&header_offset, key).ok()
    }

    /// Refuses that the member of this rank ends at `end`, if that is after the beginning of what follows it.
    pub(super) fn check_end(&self, rank: usize, end: u64) -> Result<(), PackageError> {
        let next = self.by_offset.get(rank + 1).map(|&index| self.member(index));
        let limit = next.map_or(self.directory_offset, |next| next.header_offset);
        if end <= limit {
            return Ok(());
        }
        let into = match next {
            Some(next) => format!("“{}”", next.place().name.unwrap_or_default()),
            None => "the directory".to_owned(),
        };
        Err(PackageError::Overlap {
            place: self.member(self.by_offset[rank]).place(),
            end,
            into,
            next: limit,
        })
    }
}
