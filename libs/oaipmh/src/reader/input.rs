use std::io::Write as _;

use flate2::write::GzDecoder;
use memchr::{memchr_iter, memrchr};
use resourcesync::Position;

use crate::error::{LimitKind, ReadError};
use crate::limits::Limits;
use crate::position::advance;

const GZIP_MARK: [u8; 2] = [0x1f, 0x8b];
/// Compressed bytes that are given to the decoder at a time, so that little is inflated before it is read.
const COMPRESSED_STEP: usize = 4 * 1024;
/// Consumed bytes that are kept before the rest is moved to the front.
const COMPACT_FLOOR: usize = 64 * 1024;

/// The bytes of an answer that were fed and not yet consumed, after decompression, with lines counted.
pub(super) struct Input {
    bytes: Vec<u8>,
    /// How much of `bytes` is consumed.
    start: usize,
    /// The answer's byte at `start`.
    offset: u64,
    line: u64,
    /// The answer's byte at the start of the line.
    line_start: u64,
    /// No more bytes will be fed.
    ended: bool,
    kind: Kind,
    /// Bytes accepted so far, after decompression.
    total: u64,
    /// Raised when all bytes before it are consumed, so that the split of the bytes does not matter.
    fault: Option<Fault>,
}

/// Why no more bytes can come.
#[derive(Clone, Debug)]
enum Fault {
    Limit(LimitKind),
    Gzip(String),
}

enum Kind {
    /// Fewer than two bytes were fed.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<Gzip>),
}

struct Gzip {
    decoder: GzDecoder<Vec<u8>>,
    /// Compressed bytes that were fed and not yet inflated, from `start` on.
    waiting: Vec<u8>,
    start: usize,
    taken: u64,
    /// The stream's end was reached.
    done: bool,
    trailing: bool,
}

impl Input {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            offset: 0,
            line: 1,
            line_start: 0,
            ended: false,
            kind: Kind::Unknown(Vec::new()),
            total: 0,
            fault: None,
        }
    }

    /// Takes a chunk.
    pub(super) fn feed(&mut self, chunk: &[u8], limits: &Limits) {
        match &mut self.kind {
            Kind::Unknown(first) => {
                first.extend_from_slice(chunk);
                if first.len() < GZIP_MARK.len() {
                    return;
                }
                let first = std::mem::take(first);
                self.decide(&first, limits);
            }
            Kind::Plain => self.accept(chunk, limits),
            Kind::Gzip(gzip) => gzip.feed(chunk),
        }
    }

    /// Notes that no chunk follows.
    pub(super) fn end(&mut self, limits: &Limits) {
        if let Kind::Unknown(first) = &mut self.kind {
            let first = std::mem::take(first);
            self.decide(&first, limits);
        }
        self.ended = true;
    }

    fn decide(&mut self, first: &[u8], limits: &Limits) {
        if first.starts_with(&GZIP_MARK) {
            let mut gzip = Gzip {
                decoder: GzDecoder::new(Vec::new()),
                waiting: Vec::new(),
                start: 0,
                taken: 0,
                done: false,
                trailing: false,
            };
            gzip.feed(first);
            self.kind = Kind::Gzip(Box::new(gzip));
        } else {
            self.kind = Kind::Plain;
            self.accept(first, limits);
        }
    }

    /// Adds bytes of the answer, up to the limit of the page.
    fn accept(&mut self, bytes: &[u8], limits: &Limits) {
        if self.fault.is_some() {
            return;
        }
        let left = limits.max_page_bytes - self.total;
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        if self.start > COMPACT_FLOOR && self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.total += taken as u64;
        if taken < bytes.len() {
            self.fault = Some(Fault::Limit(LimitKind::PageBytes(limits.max_page_bytes)));
        }
    }

    /// Inflates more, if the answer is compressed. Whether more bytes are there now.
    pub(super) fn more(&mut self, limits: &Limits) -> bool {
        let before = self.total;
        while self.total == before && self.fault.is_none() {
            let Kind::Gzip(gzip) = &mut self.kind else { return false };
            let inflated = gzip.step(self.ended);
            let (taken, is_idle) = (gzip.taken, gzip.is_idle(self.ended));
            match inflated {
                Ok(inflated) => {
                    let total = self.total + inflated.len() as u64;
                    if total > limits.inflation_floor_bytes
                        && total > taken.saturating_mul(limits.max_inflation)
                    {
                        self.fault = Some(Fault::Limit(LimitKind::Inflation(limits.max_inflation)));
                    } else {
                        self.accept(&inflated, limits);
                    }
                }
                Err(message) => self.fault = Some(Fault::Gzip(message)),
            }
            if self.total == before && is_idle {
                return false;
            }
        }
        self.total > before
    }

    /// The bytes that are not consumed.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Consumes bytes.
    pub(super) fn consume(&mut self, count: usize) {
        let passed = &self.bytes[self.start..self.start + count];
        if let Some(last) = memrchr(b'\n', passed) {
            self.line += memchr_iter(b'\n', passed).count() as u64;
            self.line_start = self.offset + last as u64 + 1;
        }
        self.offset += count as u64;
        self.start += count;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// The position of the next byte.
    pub(super) fn position(&self) -> Position {
        Position { line: self.line, column: self.offset - self.line_start + 1, byte: self.offset }
    }

    /// The position of a byte that is not consumed.
    pub(super) fn position_at(&self, ahead: usize) -> Position {
        advance(self.position(), &self.ahead()[..ahead.min(self.ahead().len())])
    }

    /// The answer's byte behind the last one that was consumed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes so far, after decompression.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Whether no more bytes can come.
    pub(super) fn is_ended(&self) -> bool {
        self.fault.is_some()
            || self.ended
                && match &self.kind {
                    Kind::Gzip(gzip) => gzip.is_idle(true),
                    _ => true,
                }
    }

    pub(super) fn is_gzip(&self) -> bool {
        matches!(self.kind, Kind::Gzip(_))
    }

    /// Whether something follows the end of the compressed stream.
    pub(super) fn has_gzip_trailer(&self) -> bool {
        matches!(&self.kind, Kind::Gzip(gzip) if gzip.trailing)
    }

    /// The error that ended the bytes before their time.
    pub(super) fn fault(&self) -> Option<ReadError> {
        let position = self.position_at(self.ahead().len());
        self.fault.as_ref().map(|fault| match fault {
            Fault::Limit(limit) => ReadError::Limit { position, limit: *limit },
            Fault::Gzip(message) => ReadError::Gzip { position, message: message.clone() },
        })
    }

    /// Whether the fault is that of damaged compression.
    pub(super) fn is_gzip_damaged(&self) -> bool {
        matches!(self.fault, Some(Fault::Gzip(_)))
    }
}

impl Gzip {
    fn feed(&mut self, chunk: &[u8]) {
        if self.done {
            self.trailing |= !chunk.is_empty();
            return;
        }
        self.waiting.drain(..self.start);
        self.start = 0;
        self.waiting.extend_from_slice(chunk);
    }

    /// Whether nothing more can be inflated now.
    fn is_idle(&self, ended: bool) -> bool {
        self.done || (self.start == self.waiting.len() && !ended)
    }

    /// Inflates the next few kilobytes.
    fn step(&mut self, ended: bool) -> Result<Vec<u8>, String> {
        if self.done {
            return Ok(Vec::new());
        }
        let waiting = &self.waiting[self.start..];
        if waiting.is_empty() {
            if ended {
                self.done = true;
                self.decoder.try_finish().map_err(|_| "they are cut short or damaged".to_owned())?;
            }
        } else {
            let part = &waiting[..waiting.len().min(COMPRESSED_STEP)];
            let taken = self.decoder.write(part).map_err(|error| error.to_string())?;
            self.start += taken;
            self.taken += taken as u64;
            if taken == 0 {
                self.done = true;
                self.trailing = true;
                self.decoder.try_finish().map_err(|_| "they are cut short or damaged".to_owned())?;
            }
        }
        Ok(std::mem::take(self.decoder.get_mut()))
    }
}
