//! Entries of a list in the making, in a temporary file. The header comes in front of them when the list is complete.

use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fixity::{Hasher, Sha256};
use resourcesync::{Entry, Header, Root, Writer};
use tempfile::NamedTempFile;

use crate::PublishError;
use crate::place::Place;

/// Entries in the making.
pub(crate) struct Entries {
    writer: Writer<Spool>,
    length: Arc<AtomicU64>,
    begin: u64,
    count: u64,
}

/// All entries of a list.
pub(crate) struct FinishedEntries {
    file: NamedTempFile,
    begin: u64,
    end: u64,
    /// How many there are.
    pub(crate) count: u64,
    /// The digest of their text.
    pub(crate) sha256: Sha256,
}

/// Counts and hashes what passes.
struct Spool {
    file: BufWriter<NamedTempFile>,
    hasher: Hasher,
    length: Arc<AtomicU64>,
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.length.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Entries {
    /// Begins without entries.
    pub(crate) fn begin(place: &Place) -> Result<Self, PublishError> {
        let length = Arc::<AtomicU64>::default();
        let file = BufWriter::new(place.temporary()?);
        let spool = Spool { file, hasher: Hasher::new([]), length: Arc::clone(&length) };
        // A header that is cut off again, the same for all, so that it does not matter for the digest.
        let writer = Writer::new(spool, &Header::new(Root::UrlSet, None))?;
        let begin = length.load(Ordering::Relaxed);
        Ok(Self { writer, length, begin, count: 0 })
    }

    pub(crate) fn push(&mut self, entry: &Entry) -> Result<(), PublishError> {
        self.writer.write(entry)?;
        self.count += 1;
        Ok(())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The length of their text.
    pub(crate) fn bytes(&self) -> u64 {
        self.length.load(Ordering::Relaxed) - self.begin
    }

    pub(crate) fn finish(self) -> Result<FinishedEntries, PublishError> {
        let Self { writer, length, begin, count } = self;
        let end = length.load(Ordering::Relaxed);
        let Spool { file, hasher, .. } = writer.finish()?;
        let file = file.into_inner().map_err(|error| PublishError::from(error.into_error()))?;
        Ok(FinishedEntries { file, begin, end, count, sha256: hasher.finish().sha256() })
    }
}

impl FinishedEntries {
    /// The length of their text.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - self.begin
    }

    /// The whole document, as a temporary file of the place.
    pub(crate) fn document(&mut self, place: &Place, header: &Header) -> Result<NamedTempFile, PublishError> {
        // A document without entries: its begin, and the end tag of its root element.
        let mut empty = Writer::new(Vec::new(), header)?.finish()?;
        let end_tag = empty.split_off(empty.len() - format!("</{}>\n", header.root).len());
        let mut document = BufWriter::new(place.temporary()?);
        document.write_all(&empty)?;
        self.file.seek(SeekFrom::Start(self.begin))?;
        let length = self.bytes();
        io::copy(&mut BufReader::new(self.file.as_file_mut()).take(length), &mut document)?;
        document.write_all(&end_tag)?;
        document.into_inner().map_err(|error| error.into_error().into())
    }
}
