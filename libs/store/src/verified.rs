//! Verifies bytes that are read against those that were stored.

use std::ops::Range;

use bytes::Bytes;
use fixity::{Hasher, Sha256};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use model::{Bitstream, Location, Method, Span};

use crate::{Key, StoreError};

/// Bytes in bounded pieces.
pub type ByteStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// The expected length and digest of the bytes at a location.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    name: String,
    offset: u64,
    length: u64,
    stored_length: Option<u64>,
    method: Method,
    /// Bytes of the bitstream to skip before the requested ones. For an undeflated one, the offset already
    /// includes them.
    skip: u64,
    is_part: bool,
    sha256: Option<Sha256>,
}

impl Expected {
    /// Expects a verified bitstream.
    pub(crate) fn of(bitstream: &Bitstream) -> Self {
        let computed = &bitstream.computed;
        Self { sha256: Some(computed.sha256()), ..Self::at(&bitstream.location, computed.length()) }
    }

    /// Expects what the location itself states.
    pub(crate) fn at(location: &Location, length: u64) -> Self {
        let key = Key::of(location);
        let (name, offset, stored_length, method) = match location.span() {
            None => (key.to_string(), 0, None, Method::Stored),
            Some(Span { offset, stored_length, method }) => {
                (format!("{key} at offset {offset}"), offset, Some(stored_length), method)
            }
        };
        let sha256 = match location {
            Location::Object { sha256 } => Some(*sha256),
            Location::Pack { .. } | Location::Package { .. } => None,
        };
        Self { name, offset, length, stored_length, method, skip: 0, is_part: false, sha256 }
    }

    /// Expects a part of a bitstream, whose digest is unknown.
    pub(crate) fn part(location: &Location, range: Range<u64>) -> Result<Self, StoreError> {
        let mut part = Self::at(location, range.end);
        part.is_part = true;
        part.sha256 = None;
        if part.method == Method::Deflated {
            part.skip = range.start;
            part.length = range.end.saturating_sub(range.start);
            return Ok(part);
        }
        if let Some(stored) = part.stored_length.filter(|stored| *stored < range.end) {
            return Err(part.wrong_length(stored));
        }
        part.offset = part.offset.saturating_add(range.start);
        part.length = range.end.saturating_sub(range.start);
        part.stored_length = None;
        Ok(part)
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// How its bytes are stored.
    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// Inflated bytes to drop.
    pub(crate) fn skip(&self) -> u64 {
        self.skip
    }

    /// The most bytes to inflate. For a whole bitstream that is one byte more than expected, to see that it
    /// ends.
    pub(crate) fn inflated_limit(&self) -> u64 {
        self.skip.saturating_add(self.length).saturating_add(u64::from(!self.is_part))
    }

    /// The range of its stored bytes in their object.
    pub(crate) fn range(&self) -> Result<Range<u64>, StoreError> {
        if self.method == Method::Deflated {
            let end = self.offset.checked_add(self.stored_length.unwrap_or(0));
            return end.map(|end| self.offset..end).ok_or_else(|| self.cut_short(self.offset));
        }
        if let Some(stored) = self.stored_length.filter(|stored| *stored != self.length) {
            return Err(self.wrong_length(stored));
        }
        match self.offset.checked_add(self.length) {
            Some(end) => Ok(self.offset..end),
            None => Err(self.cut_short(self.offset)),
        }
    }

    /// Compares the whole bitstream.
    pub(crate) fn judge(&self, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.len() as u64 != self.length {
            return Err(self.wrong_length(bytes.len() as u64));
        }
        match self.sha256 {
            Some(_) => self.judge_digest(Sha256::of(bytes)),
            None => Ok(()),
        }
    }

    /// The error of an object that ends before the bitstream does.
    pub(crate) fn cut_short(&self, size: u64) -> StoreError {
        self.damaged(format!("{} bytes at offset {}", self.length, self.offset), format!("an end at {size}"))
    }

    /// The error of a wrong length.
    pub(crate) fn wrong_length(&self, found: u64) -> StoreError {
        self.damaged(format!("{} bytes", self.length), format!("{found} bytes"))
    }

    /// The error of deflated bytes that give too few bytes.
    pub(crate) fn ends_early(&self, inflated: u64) -> StoreError {
        self.damaged(
            format!("{} bytes", self.skip.saturating_add(self.length)),
            format!("an end of its deflated bytes after {inflated}"),
        )
    }

    /// The error of bytes that cannot be inflated.
    pub(crate) fn not_deflated(&self, why: &str) -> StoreError {
        self.damaged("deflated bytes".into(), format!("others ({why})"))
    }

    fn judge_digest(&self, computed: Sha256) -> Result<(), StoreError> {
        match self.sha256 {
            Some(expected) if expected != computed => {
                Err(self.damaged(format!("sha-256 {expected}"), format!("sha-256 {computed}")))
            }
            _ => Ok(()),
        }
    }

    fn damaged(&self, expected: String, computed: String) -> StoreError {
        StoreError::Damaged { key: self.name.clone(), expected, computed }
    }
}

/// Verifies bytes as they pass.
#[derive(Debug)]
pub(crate) struct Judging {
    expected: Expected,
    hasher: Option<Hasher>,
    passed: u64,
}

impl Judging {
    pub(crate) fn new(expected: Expected) -> Self {
        // A member of an archive has no digest here; counting its bytes costs nothing.
        let hasher = expected.sha256.map(|_| Hasher::new([]));
        Self { expected, hasher, passed: 0 }
    }

    /// Takes the next bytes.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        self.passed += piece.len() as u64;
        if self.passed > self.expected.length {
            return Err(self.expected.wrong_length(self.passed));
        }
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece);
        }
        Ok(())
    }

    /// Ends the check: there are no more bytes.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        if self.passed != self.expected.length {
            return Err(self.expected.wrong_length(self.passed));
        }
        self.hasher.map_or(Ok(()), |hasher| self.expected.judge_digest(hasher.finish().sha256()))
    }
}

/// Passes `pieces` on and verifies them. The last piece waits for the verdict, so no reader ever gets all
/// bytes of a damaged bitstream.
pub(crate) fn stream(pieces: ByteStream, expected: Expected) -> ByteStream {
    let begin = Some((pieces, Judging::new(expected), None::<Bytes>));
    stream::try_unfold(begin, |state| async move {
        let Some((mut pieces, mut judging, mut held)) = state else { return Ok(None) };
        loop {
            let Some(piece) = pieces.next().await.transpose()? else {
                judging.finish()?;
                return Ok(held.map(|piece| (piece, None)));
            };
            if piece.is_empty() {
                continue;
            }
            judging.take(&piece)?;
            if let Some(ready) = held.replace(piece) {
                return Ok(Some((ready, Some((pieces, judging, held)))));
            }
        }
    })
    .boxed()
}
