use std::io::{self, BufRead, Read};

use memchr::{memchr, memchr_iter, memrchr};

use super::input::{Input, InputError};
use super::outline::{END_OVERLAP, holds_end};
use crate::error::LimitKind;
use crate::limits::Limits;
use crate::position::Position;

/// Replaces each byte that is not UTF-8, and those of U+FFFE and U+FFFF. It is a control character that XML
/// forbids as it does those two, so it cannot be mistaken for content. It is one byte long, so positions stay right.
pub(super) const NOT_TEXT: char = '\u{1a}';

/// The input of the XML parser: buffered, valid UTF-8, limited, and with lines counted.
///
/// Lines are counted a buffer at a time, or up to the mark on request, never byte by byte.
pub(super) struct Source<R> {
    input: Input<R>,
    buf: Box<[u8]>,
    /// The parser's position in `buf`.
    pos: usize,
    /// The end of the valid UTF-8 in `buf` that may be returned.
    ready: usize,
    /// The end of the filled part of `buf`; bytes behind `ready` are the beginning of a character.
    filled: usize,
    /// The document's byte at the start of `buf`.
    base: u64,
    end: bool,
    lines: Lines,
    mark: u64,
    marked: Option<Position>,
    limits: Limits,
    fault: Option<Fault>,
    /// An error from reading ahead; it is reported behind the bytes before it.
    postponed: Option<Fault>,
}

/// Why the parser got an error instead of bytes.
pub(super) enum Fault {
    Input(InputError),
    Limit(LimitKind),
}

/// Newlines before `counted`.
struct Lines {
    /// An index into the buffer.
    counted: usize,
    line: u64,
    /// The document's byte at the start of the line.
    start: u64,
}

impl<R: Read> Source<R> {
    /// Opens it with a buffer of `window` bytes.
    pub(super) fn open(inner: R, limits: &Limits, window: usize) -> io::Result<Self> {
        Ok(Self {
            input: Input::open(inner)?,
            buf: vec![0; window].into_boxed_slice(),
            pos: 0,
            ready: 0,
            filled: 0,
            base: 0,
            end: false,
            lines: Lines { counted: 0, line: 1, start: 0 },
            mark: 0,
            marked: None,
            limits: limits.clone(),
            fault: None,
            postponed: None,
        })
    }

    pub(super) fn is_gzip(&self) -> bool {
        self.input.is_gzip()
    }

    /// The first bytes as read (zeros if there are fewer), enough to recognize a byte order mark. Only to be
    /// called before anything is consumed.
    pub(super) fn first_bytes(&mut self) -> Result<[u8; 4], Fault> {
        let mut first = [0; 4];
        while self.filled < first.len() && !self.end {
            self.read_raw()?;
        }
        let known = self.filled.min(first.len());
        first[..known].copy_from_slice(&self.buf[..known]);
        self.validate();
        Ok(first)
    }

    /// The parser's position, as a byte of the document.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    /// Bytes read so far, after decompression.
    pub(super) fn bytes_read(&self) -> u64 {
        self.base + self.filled as u64
    }

    /// Marks the start of an event: positions and its length are counted from there.
    pub(super) fn mark(&mut self) {
        self.mark = self.offset();
        self.marked = None;
    }

    /// The position of the mark.
    pub(super) fn marked(&mut self) -> Position {
        if let Some(position) = self.marked {
            return position;
        }
        let position = self.lines.position(&self.buf, self.base, (self.mark - self.base) as usize);
        self.marked = Some(position);
        position
    }

    /// The parser's position.
    pub(super) fn here(&mut self) -> Position {
        self.marked();
        self.lines.position(&self.buf, self.base, self.pos)
    }

    /// Whether all bytes were returned.
    pub(super) fn is_at_end(&self) -> bool {
        self.end && self.pos == self.ready
    }

    pub(super) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    fn refill(&mut self) -> Result<(), Fault> {
        if self.marked.is_none() && self.mark < self.base + self.ready as u64 {
            self.marked();
        }
        self.drop_passed();
        while self.ready == 0 && !self.end {
            if let Some(fault) = self.postponed.take() {
                return Err(fault);
            }
            self.read_raw()?;
            self.validate();
        }
        Ok(())
    }

    /// Drops consumed bytes from the buffer.
    fn drop_passed(&mut self) {
        self.lines.position(&self.buf, self.base, self.pos);
        self.buf.copy_within(self.pos..self.filled, 0);
        self.base += self.pos as u64;
        self.filled -= self.pos;
        self.ready -= self.pos;
        self.pos = 0;
        self.lines.counted = 0;
    }

    /// The unconsumed bytes in the buffer, as far as they are valid UTF-8 and within the document's limit.
    pub(super) fn ahead(&self) -> &[u8] {
        let allowed =
            self.limits.max_document_bytes.map_or(u64::MAX, |max| max.saturating_sub(self.offset()));
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        &self.buf[self.pos..self.ready.min(self.pos.saturating_add(allowed))]
    }

    /// Sets the mark this many bytes ahead of the parser.
    pub(super) fn mark_ahead(&mut self, bytes: usize) {
        self.mark = self.offset() + bytes as u64;
        self.marked = None;
    }

    /// Reads until the new bytes contain the end of an entry, and returns whether they do. It reads no more
    /// than the buffer holds, and checks each byte once, so the size of chunks does not matter.
    pub(super) fn read_to_end_of_entry(&mut self) -> bool {
        self.mark();
        self.drop_passed();
        while !self.end && self.postponed.is_none() && self.filled < self.buf.len() {
            let known = self.ready.saturating_sub(END_OVERLAP);
            self.postponed = self.read_raw().err();
            self.validate();
            if holds_end(&self.buf[known..self.ready]) {
                return true;
            }
        }
        false
    }

    fn read_raw(&mut self) -> Result<(), Fault> {
        let read = self.input.read(&mut self.buf[self.filled..]).map_err(Fault::Input)?;
        self.filled += read;
        self.end = read == 0;
        let inflated = self.bytes_read();
        let compressed = self.input.compressed_bytes();
        if compressed.is_some_and(|bytes| self.limits.is_inflated_too_much(bytes, inflated)) {
            return Err(Fault::Limit(LimitKind::Inflation(self.limits.max_inflation)));
        }
        Ok(())
    }

    fn validate(&mut self) {
        let from = self.ready;
        self.validate_utf8();
        replace_no_characters(&mut self.buf[from..self.ready]);
    }

    fn validate_utf8(&mut self) {
        while let Err(error) = std::str::from_utf8(&self.buf[self.ready..self.filled]) {
            let bad = self.ready + error.valid_up_to();
            let until = match error.error_len() {
                Some(length) => bad + length,
                None if self.end => self.filled,
                None => {
                    self.ready = bad;
                    return;
                }
            };
            self.buf[bad..until].fill(NOT_TEXT as u8);
            self.ready = until;
        }
        self.ready = self.filled;
    }

    /// How many bytes may still be returned before a limit.
    fn allowance(&self) -> Result<usize, Fault> {
        let offset = self.offset();
        let event = (self.mark + self.limits.max_event_bytes).saturating_sub(offset);
        let document = self.limits.max_document_bytes.map_or(u64::MAX, |max| max.saturating_sub(offset));
        match (event, document, self.limits.max_document_bytes) {
            (_, 0, Some(max)) => Err(Fault::Limit(LimitKind::DocumentBytes(max))),
            (0, ..) => Err(Fault::Limit(LimitKind::EventBytes(self.limits.max_event_bytes))),
            _ => Ok(usize::try_from(event.min(document)).unwrap_or(usize::MAX)),
        }
    }
}

/// Replaces the characters of valid UTF-8 that are none of XML's, and no control characters: U+FFFE and U+FFFF.
fn replace_no_characters(text: &mut [u8]) {
    let mut from = 0;
    // A byte with which characters from U+F000 on begin, which are rare. It is never a later byte of one.
    while let Some(at) = memchr(0xef, &text[from..]) {
        let character = from + at..from + at + 3;
        from = character.end;
        if matches!(&text[character.clone()], [0xef, 0xbf, 0xbe | 0xbf]) {
            text[character].fill(NOT_TEXT as u8);
        }
    }
}

impl<R: Read> BufRead for Source<R> {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.pos == self.ready
            && !self.end
            && let Err(fault) = self.refill()
        {
            self.fault = Some(fault);
            return Err(io::ErrorKind::Other.into());
        }
        let left = self.ready - self.pos;
        if left == 0 {
            return Ok(&[]);
        }
        match self.allowance() {
            Ok(allowance) => Ok(&self.buf[self.pos..self.pos + left.min(allowance)]),
            Err(fault) => {
                self.fault = Some(fault);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    #[inline]
    fn consume(&mut self, amount: usize) {
        self.pos = (self.pos + amount).min(self.ready);
    }
}

/// Required by `BufRead` only.
impl<R: Read> Read for Source<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(buf.len());
        buf[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl Lines {
    /// Counts up to an index and returns the position there. Indexes must not decrease.
    fn position(&mut self, buf: &[u8], base: u64, index: usize) -> Position {
        if index > self.counted {
            let passed = &buf[self.counted..index];
            if let Some(last) = memrchr(b'\n', passed) {
                self.line += memchr_iter(b'\n', passed).count() as u64;
                self.start = base + (self.counted + last + 1) as u64;
            }
            self.counted = index;
        }
        let byte = base + index as u64;
        Position { line: self.line, column: byte.saturating_sub(self.start) + 1, byte }
    }
}
