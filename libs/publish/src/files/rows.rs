//! What is known of each file: lines of JSON in the order of the paths, behind a line about the scans.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::row::{Begin, Line, Row, UNSURE_END};
use super::stamp::Stamp;
use crate::PublishError;

/// The file at the place of the publication.
pub(super) const FILES: &str = ".thresher/files.jsonl";
/// The version that is written. A later one is refused.
pub(super) const VERSION: u16 = 1;
/// How much is read at a time where all rows are read.
const LARGE_BYTES: usize = 256 * 1024;
/// How much is read at a time where some are.
pub(super) const NEAR_BYTES: usize = 4 * 1024;

/// The first line. Numbers of changes are the times of scans, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) version: u16,
    /// The first scan.
    pub(super) begun: u64,
    /// The last scan that found a change.
    pub(super) changed: u64,
}

/// All files, as one scan left them. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) head: Head,
    file: Arc<File>,
    /// Where the rows begin.
    begin: u64,
}

/// Reads rows one after the other.
pub(super) struct RowReader {
    file: BufReader<At>,
    line: Vec<u8>,
    /// Where the next row begins.
    pub(super) offset: u64,
}

/// A file that is read from a position of its own.
pub(super) struct At {
    file: Arc<File>,
    offset: u64,
}

impl At {
    pub(super) fn begin(file: File) -> Self {
        Self { file: Arc::new(file), offset: 0 }
    }

    /// The same file from another position on.
    fn to(&self, offset: u64) -> Self {
        Self { file: Arc::clone(&self.file), offset }
    }
}

impl Read for At {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Rows {
    /// The rows in a file.
    pub(super) fn open(file: File) -> Result<Self, PublishError> {
        let file = Arc::new(file);
        let mut line = Vec::new();
        BufReader::new(At { file: Arc::clone(&file), offset: 0 }).read_until(b'\n', &mut line)?;
        let head: Head =
            serde_json::from_slice(&line).map_err(|error| PublishError::changed(FILES, error))?;
        if head.version > VERSION {
            let why = format!(
                "{FILES} was written by a later version of Thresher (format {}); use that one",
                head.version
            );
            return Err(PublishError::Refused(why));
        }
        Ok(Self { head, file, begin: line.len() as u64 })
    }

    /// All rows.
    pub(super) fn read(&self) -> RowReader {
        self.reader(self.begin, LARGE_BYTES)
    }

    fn reader(&self, offset: u64, piece: usize) -> RowReader {
        let file = BufReader::with_capacity(piece, At { file: Arc::clone(&self.file), offset });
        RowReader { file, line: Vec::new(), offset }
    }

    /// Where the rows begin.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// Where they end.
    pub(super) fn end(&self) -> Result<u64, PublishError> {
        Ok(self.file.metadata()?.len())
    }

    /// A few rows from an offset on.
    pub(super) fn near(&self, offset: u64) -> RowReader {
        self.reader(offset, NEAR_BYTES)
    }

    /// Copies rows from an offset on, as they are.
    pub(super) fn copy(&self, from: u64, length: u64, to: &mut impl io::Write) -> io::Result<u64> {
        io::copy(&mut At { file: Arc::clone(&self.file), offset: from }.take(length), to)
    }
}

impl RowReader {
    /// Skips a row, or the rest of one.
    pub(super) fn skip(&mut self) -> Result<(), PublishError> {
        self.line.clear();
        self.offset += self.file.read_until(b'\n', &mut self.line)? as u64;
        Ok(())
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<Row>, PublishError> {
        self.line.clear();
        let length = self.file.read_until(b'\n', &mut self.line)?;
        if length == 0 {
            return Ok(None);
        }
        self.offset += length as u64;
        let line: Line<'_> =
            serde_json::from_slice(&self.line).map_err(|error| PublishError::changed(FILES, error))?;
        Ok(Some(line.into()))
    }

    /// Passes over the next row if it begins as that of a file with this stamp and a digest, and is not unsure. That
    /// takes much less time than to parse it. False also where it does not lie whole in what was read.
    pub(super) fn pass_same(&mut self, path: &str, stamp: Stamp) -> Result<bool, PublishError> {
        self.line.clear();
        Begin::of(path, stamp).write(&mut self.line)?;
        let read = self.file.fill_buf()?;
        let Some(rest) = read.strip_prefix(&self.line[..]) else { return Ok(false) };
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(false) };
        if rest[..end].ends_with(UNSURE_END) {
            return Ok(false);
        }
        let length = self.line.len() + end + 1;
        self.file.consume(length);
        self.offset += length as u64;
        Ok(true)
    }

    /// Goes on at a row further on. One that is not far is in memory already.
    pub(super) fn go_to(&mut self, offset: u64) {
        let ahead = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        if ahead <= self.file.buffer().len() {
            self.file.consume(ahead);
        } else {
            self.file = BufReader::with_capacity(NEAR_BYTES, self.file.get_ref().to(offset));
        }
        self.offset = offset;
    }
}
