//! What is known of each file: lines of JSON in the order of the paths, behind a line about the scans.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use fixity::Sha256;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::stamp::Stamp;
use crate::PublishError;

/// The file at the place of the publication.
pub(super) const FILES: &str = ".thresher/files.jsonl";
/// The version that is written. A later one is refused.
pub(super) const VERSION: u16 = 1;

/// The first line. Numbers of changes are the times of scans, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) version: u16,
    /// The first scan.
    pub(super) begun: u64,
    /// The last scan that found a change.
    pub(super) changed: u64,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    /// Its path below the directory.
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    /// The digest of its bytes. None of a deleted one, which stays until that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<Sha256>,
    /// The scan that found its last change.
    pub(super) changed: u64,
    /// Whether that change created it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) created: bool,
    /// Whether it is to be read again, though its stamp is the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unsure: bool,
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
struct At {
    file: Arc<File>,
    offset: u64,
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
        self.read_from(self.begin)
    }

    fn read_from(&self, offset: u64) -> RowReader {
        let file = BufReader::with_capacity(256 * 1024, At { file: Arc::clone(&self.file), offset });
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
        let file = BufReader::with_capacity(4 * 1024, At { file: Arc::clone(&self.file), offset });
        RowReader { file, line: Vec::new(), offset }
    }

    /// Copies the rows from an offset on.
    pub(super) fn copy_from(&self, offset: u64, to: &mut impl io::Write) -> io::Result<u64> {
        io::copy(&mut At { file: Arc::clone(&self.file), offset }, to)
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
        serde_json::from_slice(&self.line).map(Some).map_err(|error| PublishError::changed(FILES, error))
    }
}

/// Rows in the making.
pub(super) struct RowWriter {
    file: BufWriter<NamedTempFile>,
}

impl RowWriter {
    pub(super) fn begin(file: NamedTempFile) -> Self {
        Self { file: BufWriter::with_capacity(256 * 1024, file) }
    }

    pub(super) fn push(&mut self, row: &Row) -> Result<(), PublishError> {
        serde_json::to_writer(&mut self.file, row).map_err(io::Error::from)?;
        Ok(self.file.write_all(b"\n")?)
    }

    /// Writes head and rows into another file. `rest` are rows behind these.
    pub(super) fn assemble(
        &mut self,
        into: NamedTempFile,
        head: Head,
        rest: Option<(&Rows, u64)>,
    ) -> Result<NamedTempFile, PublishError> {
        self.file.flush()?;
        let mut out = BufWriter::new(into);
        serde_json::to_writer(&mut out, &head).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        let rows = Arc::new(self.file.get_ref().reopen()?);
        io::copy(&mut At { file: rows, offset: 0 }, &mut out)?;
        if let Some((rows, offset)) = rest {
            rows.copy_from(offset, &mut out)?;
        }
        out.into_inner().map_err(|error| error.into_error().into())
    }
}
