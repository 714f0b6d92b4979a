//! The content of one member, inflated and checked as it passes.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::io::AsyncBufRead;

use super::{Data, Method};
use crate::range::reader_of;
use crate::{MemberPosition, PackageError, ReadAhead, ReadAt, range_stream};

/// Bytes inflated and returned at once: as many as stay in the processor's cache from CRC-32 to the caller's
/// digests.
const CHUNK: u64 = 64 << 10;

/// Reads one member by its [`Data`], with or without a directory.
///
/// Chunks are returned as they are inflated. They can be trusted only after the last one, when size and
/// CRC-32 were compared: `None` from [`chunk`](Self::chunk) means that all is right. At most [`Data::length`]
/// bytes are returned, and at most one byte more is inflated.
///
/// # Parts of members
/// [`range`](Self::range) returns some of the bytes. Of a stored member only these are read. A deflated one
/// can be read only from its start: everything before the part is read, inflated and dropped, so a part costs
/// as much as all bytes before its end. Neither is checked, since CRC-32 and size belong to the whole.
pub struct MemberReader<'a> {
    place: MemberPosition,
    data: Data,
    stored: BoxStream<'a, io::Result<Bytes>>,
    /// The offset of the next stored bytes that the stream has not returned.
    stored_at: u64,
    input: Bytes,
    /// Whether more input may come.
    more: bool,
    inflate: Option<Box<Decompress>>,
    crc32: crc32fast::Hasher,
    produced: u64,
    /// The requested part.
    part: Range<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More is to be inflated.
    Going,
    /// The deflate stream has ended; its last bytes are not checked yet.
    Inflated,
    Done,
    Failed,
}

impl<'a> MemberReader<'a> {
    /// A reader of the whole member.
    pub fn new<R: ReadAt + Clone + 'a>(source: R, data: Data, ahead: ReadAhead) -> Self {
        Self::over(source, data, 0..data.length, ahead)
    }

    /// A reader of the bytes `part` of the member's content, as far as they exist; unchecked. See [Parts of
    /// members](Self#parts-of-members).
    pub fn range<R: ReadAt + Clone + 'a>(source: R, data: Data, part: Range<u64>, ahead: ReadAhead) -> Self {
        let end = part.end.min(data.length);
        let part = part.start.min(end)..end;
        if data.method == Method::Deflated || part == (0..data.length) {
            return Self { part, ..Self::over(source, Data { crc32: None, ..data }, 0..data.length, ahead) };
        }
        let length = part.end - part.start;
        let offset = data.offset.saturating_add(part.start);
        let data = Data { offset, stored_length: length, method: Method::Stored, length, crc32: None };
        Self::over(source, data, 0..length, ahead)
    }

    fn over<R: ReadAt + Clone + 'a>(source: R, data: Data, part: Range<u64>, ahead: ReadAhead) -> Self {
        // A record that points outside is not followed: the package was replaced.
        let end = data.offset.saturating_add(data.stored_length).min(source.len());
        let inflate = (data.method == Method::Deflated).then(|| Box::new(Decompress::new(false)));
        Self {
            place: MemberPosition { name: None, offset: data.offset },
            data,
            stored: range_stream(source, data.offset.min(end)..end, ahead),
            stored_at: data.offset.min(end),
            input: Bytes::new(),
            more: true,
            inflate,
            crc32: crc32fast::Hasher::new(),
            produced: 0,
            part,
            state: State::Going,
        }
    }

    /// The same reader, with the member's place in its errors.
    pub fn of(self, place: MemberPosition) -> Self {
        Self { place, ..self }
    }

    /// The next bytes; `None` at the end, when everything matched the declaration. After an error it returns
    /// errors only.
    ///
    /// # Errors
    /// [`PackageError::Read`]; of the member, [`PackageError::WrongSize`], [`PackageError::WrongCrc`],
    /// [`PackageError::BadDeflate`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, PackageError> {
        let next = self.next_chunk().await;
        if next.is_err() {
            self.state = State::Failed;
        }
        next
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, PackageError> {
        loop {
            // A long member must not block the other tasks of its thread.
            tokio::task::coop::consume_budget().await;
            let next = match self.state {
                State::Done => return Ok(None),
                State::Failed => return Err(self.failed_before()),
                State::Inflated => None,
                State::Going if self.inflate.is_some() => self.inflated().await?,
                State::Going => self.as_stored().await?,
            };
            let Some(chunk) = next else {
                self.finish()?;
                self.state = State::Done;
                return Ok(None);
            };
            let start = self.produced;
            self.produced += chunk.len() as u64;
            if self.produced > self.data.length {
                return Err(self.wrong_size(format!("has {} bytes or more", self.produced)));
            }
            if self.data.crc32.is_some() {
                self.crc32.update(&chunk);
            }
            // Bytes behind the part are not needed, except where all is checked.
            if self.part.end < self.data.length && self.produced >= self.part.end {
                self.state = State::Done;
            }
            let from = self.part.start.clamp(start, self.produced) - start;
            let to = self.part.end.clamp(start, self.produced) - start;
            if from < to {
                return Ok(Some(chunk.slice(from as usize..to as usize)));
            }
        }
    }

    /// The same bytes as an [`AsyncRead`](tokio::io::AsyncRead); [`PackageError::from_io`] finds the error
    /// inside the errors that it returns.
    pub fn into_async_read(self) -> impl AsyncBufRead + Send + Unpin + 'a {
        reader_of(stream::try_unfold(self, |mut reader| async move {
            let chunk = reader.chunk().await.map_err(io::Error::from)?;
            Ok(chunk.map(|chunk| (chunk, reader)))
        }))
    }

    /// The rest of the content in memory: for manifests and tests.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk); and [`PackageError::MemberTooLarge`] for more than `limit` bytes.
    pub async fn to_end(mut self, limit: u64) -> Result<Vec<u8>, PackageError> {
        let bytes = self.data.length;
        if bytes > limit {
            return Err(PackageError::MemberTooLarge { place: self.place, bytes, limit });
        }
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// The next inflated bytes; `None` at the end of the deflate stream.
    async fn inflated(&mut self) -> Result<Option<Bytes>, PackageError> {
        loop {
            if self.input.is_empty() && self.more {
                match self.next_stored().await? {
                    Some(chunk) => self.input = chunk,
                    None => self.more = false,
                }
            }
            let Some(inflate) = &mut self.inflate else { return Ok(None) };
            // One byte more than declared, to see that there are none.
            let room = (self.data.length - self.produced).saturating_add(1).min(CHUNK) as usize;
            let mut output = Vec::with_capacity(room);
            let before = inflate.total_in();
            let status = inflate.decompress_vec(&self.input, &mut output, FlushDecompress::None);
            let used = (inflate.total_in() - before) as usize;
            let bad = |why: String| PackageError::BadDeflate {
                place: self.place.clone(),
                inflated: self.produced + output.len() as u64,
                why,
            };
            let status = status.map_err(|error| bad(error.to_string()))?;
            if status == Status::StreamEnd {
                self.state = State::Inflated;
            } else if used == 0 && output.is_empty() && !self.more {
                return Err(bad("it ends in the middle".to_owned()));
            }
            let _ = self.input.split_to(used);
            if !output.is_empty() {
                return Ok(Some(output.into()));
            }
            if status == Status::StreamEnd {
                return Ok(None);
            }
        }
    }

    /// The next bytes of a stored member.
    async fn as_stored(&mut self) -> Result<Option<Bytes>, PackageError> {
        while self.input.is_empty() {
            match self.next_stored().await? {
                Some(chunk) => self.input = chunk,
                None => return Ok(None),
            }
        }
        let length = self.input.len().min(CHUNK as usize);
        Ok(Some(self.input.split_to(length)))
    }

    async fn next_stored(&mut self) -> Result<Option<Bytes>, PackageError> {
        let offset = self.stored_at;
        let read = |source| PackageError::Read { offset, length: 0, source };
        let chunk = self.stored.next().await.transpose().map_err(read)?;
        self.stored_at += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        Ok(chunk)
    }

    /// All bytes came: compares them with the declaration.
    fn finish(&self) -> Result<(), PackageError> {
        if self.produced != self.data.length {
            return Err(self.wrong_size(format!("has {} bytes", self.produced)));
        }
        let end = self.data.offset.saturating_add(self.data.stored_length);
        let unused = end.saturating_sub(self.stored_at) + self.input.len() as u64;
        if unused > 0 {
            return Err(self.wrong_size(format!("ends {unused} bytes before its stored ones do")));
        }
        let computed = self.crc32.clone().finalize();
        match self.data.crc32 {
            Some(declared) if declared != computed => {
                Err(PackageError::WrongCrc { place: self.place.clone(), declared, computed })
            }
            _ => Ok(()),
        }
    }

    fn failed_before(&self) -> PackageError {
        let source = io::Error::other("the reading has failed before");
        PackageError::Read { offset: self.data.offset, length: self.data.stored_length, source }
    }

    fn wrong_size(&self, found: String) -> PackageError {
        PackageError::WrongSize { place: self.place.clone(), declared: self.data.length, found }
    }
}
