//! The rows of the last scan, one after the other, with where they lie.

use std::ops::Range;

use super::row::Row;
use super::rows::{RowReader, Rows};
use super::spelling::is_at_or_below;
use super::stamp::Stamp;
use crate::PublishError;

/// An old row, and where it lies.
pub(super) struct Old {
    pub(super) row: Row,
    pub(super) at: Range<u64>,
}

/// The rows of the last scan, if there was one.
pub(super) struct OldRows {
    rows: Option<(Rows, RowReader)>,
    peeked: Option<Old>,
    /// Files that are there, of the rows that were taken.
    files: u64,
}

impl OldRows {
    /// `are_all`: whether all are taken, and not some here and there.
    pub(super) fn begin(rows: Option<&Rows>, are_all: bool) -> Self {
        let reader = |rows: &Rows| if are_all { rows.read() } else { rows.near(rows.begin()) };
        let rows = rows.map(|rows| (rows.clone(), reader(rows)));
        Self { rows, peeked: None, files: 0 }
    }

    /// How many files the rows had that were taken.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Where the next row begins.
    pub(super) fn position(&self) -> Option<u64> {
        let (_, reader) = self.rows.as_ref()?;
        Some(self.peeked.as_ref().map_or(reader.offset, |old| old.at.start))
    }

    pub(super) fn peek(&mut self) -> Result<Option<&Row>, PublishError> {
        if self.peeked.is_none()
            && let Some((_, reader)) = &mut self.rows
        {
            let begin = reader.offset;
            self.peeked = reader.next()?.map(|row| Old { row, at: begin..reader.offset });
        }
        Ok(self.peeked.as_ref().map(|old| &old.row))
    }

    pub(super) fn take(&mut self) -> Result<Option<Old>, PublishError> {
        self.peek()?;
        let old = self.peeked.take();
        self.files += u64::from(old.as_ref().is_some_and(|old| old.row.sha256.is_some()));
        Ok(old)
    }

    /// The next row, if it is at a path or below it.
    pub(super) fn take_below(&mut self, path: &str) -> Result<Option<Old>, PublishError> {
        match self.peek()? {
            Some(row) if is_at_or_below(&row.path, path) => self.take(),
            _ => Ok(None),
        }
    }

    /// Passes over the next row if it is that of this very file, unchanged, without parsing it. Returns where it lies.
    /// None where that does not show at a glance.
    pub(super) fn pass_same(&mut self, path: &str, stamp: Stamp) -> Result<Option<Range<u64>>, PublishError> {
        let (None, Some((_, reader))) = (&self.peeked, &mut self.rows) else { return Ok(None) };
        let begin = reader.offset;
        if !reader.pass_same(path, stamp)? {
            return Ok(None);
        }
        self.files += 1;
        Ok(Some(begin..reader.offset))
    }

    /// Passes over the rows before a path, without reading most of them. Returns where they lie.
    pub(super) fn pass_to(&mut self, path: &str) -> Result<Option<Range<u64>>, PublishError> {
        let (Some(begin), Some((rows, _))) = (self.position(), &self.rows) else { return Ok(None) };
        let end = rows.seek(path, begin)?;
        Ok(self.pass(begin..end))
    }

    /// Passes over all further rows. Returns where they lie.
    pub(super) fn pass_all(&mut self) -> Result<Option<Range<u64>>, PublishError> {
        let (Some(begin), Some((rows, _))) = (self.position(), &self.rows) else { return Ok(None) };
        let end = rows.end()?;
        Ok(self.pass(begin..end))
    }

    fn pass(&mut self, passed: Range<u64>) -> Option<Range<u64>> {
        let (_, reader) = self.rows.as_mut().filter(|_| !passed.is_empty())?;
        reader.go_to(passed.end);
        self.peeked = None;
        Some(passed)
    }
}
