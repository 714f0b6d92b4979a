//! Units of reading: bitstreams that are close together, or one large bitstream.

use std::ops::Range;

use jiff::Timestamp;
use model::{Assurance, Bitstream, Span, Validators};
use store::Key;

use super::external_sort::Sorted;
use super::{ScrubError, ScrubItem};

/// Maximum bytes of a batch, with the gaps between, and inflated.
const BYTES: u64 = 4 * 1024 * 1024;
/// Maximum bitstreams of a batch.
const READS: usize = 512;
/// A larger bitstream is read by itself, in pieces.
const LARGE: u64 = 1024 * 1024;

/// A bitstream to read once for all records that refer to it.
#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) bitstream: Bitstream,
    /// The records that refer to it; one at least.
    pub(super) held: Vec<ScrubItem>,
}

/// Bitstreams that are read together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) reads: Vec<Read>,
    bytes: u64,
    /// The object of the last of them, and the range of it that is read.
    last: Option<(Key, Range<u64>)>,
    /// Number of objects that begin in this batch.
    pub(super) objects: u64,
}

/// Groups sorted lines into batches, in order.
pub(super) struct Batches {
    lines: Sorted,
    ahead: Option<ScrubItem>,
    next: Option<Read>,
    object: Option<Key>,
}

/// A line that sorts by location.
pub(super) fn line(held: &ScrubItem) -> Result<String, ScrubError> {
    let offset = held.location.span().map_or(0, |span| span.offset);
    Ok(format!("{}\t{offset:020}\t{}", Key::of(&held.location), serde_json::to_string(held)?))
}

impl Batch {
    /// The only bitstream, if it is read by itself.
    pub(super) fn large(&self) -> Option<&Read> {
        self.reads.first().filter(|read| read.is_large())
    }

    /// Total stored bytes, as far as records say.
    pub(super) fn stored(&self) -> u64 {
        self.reads.iter().map(Read::stored).fold(0, u64::saturating_add)
    }

    /// Adds a bitstream, or returns it if this batch is full.
    fn take(&mut self, read: Read) -> Option<Read> {
        let key = Key::of(&read.bitstream.location);
        let range = read.range();
        let bytes = self.bytes.saturating_add(read.bitstream.computed.length().max(read.stored()));
        let is_first = self.reads.is_empty();
        let whole = match &self.last {
            Some((last, before)) if *last == key => before.start..range.end.max(before.end),
            _ => range,
        };
        let is_close = bytes <= BYTES && whole.end - whole.start <= BYTES && self.reads.len() < READS;
        if !is_first && (read.is_large() || self.large().is_some() || !is_close) {
            return Some(read);
        }
        (self.bytes, self.last) = (bytes, Some((key, whole)));
        self.reads.push(read);
        None
    }
}

impl Read {
    fn of(held: ScrubItem) -> Self {
        let bitstream = Bitstream {
            location: held.location.clone(),
            computed: held.computed.clone(),
            assurance: Assurance::None,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: Timestamp::UNIX_EPOCH,
        };
        Self { bitstream, held: vec![held] }
    }

    /// Number of its stored bytes.
    pub(super) fn stored(&self) -> u64 {
        let length = self.bitstream.computed.length();
        self.bitstream.location.span().map_or(length, |span| span.stored_length)
    }

    fn range(&self) -> Range<u64> {
        match self.bitstream.location.span() {
            Some(Span { offset, stored_length, .. }) => offset..offset.saturating_add(stored_length),
            None => 0..self.stored(),
        }
    }

    fn is_large(&self) -> bool {
        self.bitstream.computed.length().max(self.stored()) > LARGE
    }

    /// Whether this record refers to it, too.
    fn is_of(&self, held: &ScrubItem) -> bool {
        let Bitstream { location, computed, .. } = &self.bitstream;
        *location == held.location
            && (computed.length(), computed.sha256()) == (held.computed.length(), held.computed.sha256())
    }
}

impl Batches {
    pub(super) fn of(lines: Sorted) -> Self {
        Self { lines, ahead: None, next: None, object: None }
    }

    fn held(&mut self) -> Result<Option<ScrubItem>, ScrubError> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let Some(line) = self.lines.next().transpose()? else { return Ok(None) };
        let json = line.splitn(3, '\t').nth(2).unwrap_or_default();
        Ok(Some(serde_json::from_str(json)?))
    }

    fn read(&mut self) -> Result<Option<Read>, ScrubError> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let Some(first) = self.held()? else { return Ok(None) };
        let mut read = Read::of(first);
        while let Some(held) = self.held()? {
            if !read.is_of(&held) {
                self.ahead = Some(held);
                break;
            }
            read.held.push(held);
        }
        Ok(Some(read))
    }

    fn batch(&mut self) -> Result<Option<Batch>, ScrubError> {
        let mut batch = Batch::default();
        while let Some(read) = self.read()? {
            let object = Key::of(&read.bitstream.location);
            match batch.take(read) {
                None => {
                    let is_new = self.object.as_ref() != Some(&object);
                    batch.objects += u64::from(is_new);
                    self.object = Some(object);
                }
                Some(read) => {
                    self.next = Some(read);
                    break;
                }
            }
        }
        Ok((!batch.reads.is_empty()).then_some(batch))
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, ScrubError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}
