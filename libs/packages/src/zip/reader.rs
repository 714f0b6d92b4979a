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
use crate::{PackageError, Place, ReadAhead, ReadAt, range_stream};

/// Bytes inflated at once, and given out at once: as many as stay near the processor from CRC-32 to whoever hashes them next.
const CHUNK: u64 = 64 << 10;

/// Reads one member by its [`Data`], with or without a directory at hand.
///
/// Chunks come as they are inflated; they can be trusted only after the last one, when size and CRC-32 have been
/// compared: `None` from [`chunk`](Self::chunk) says that all is right. Never more than [`Data::length`] bytes are given out, and one byte
/// more at most is inflated.
///
/// # Parts of members
/// [`range`](Self::range) gives some of the bytes. Of a stored member only these are read. A deflated one can be entered
/// only at its beginning: everything before the part is read, inflated and thrown away, so a part costs as much as all that lies before
/// its end. Neither is checked, since CRC-32 and size speak of the whole.
pub struct MemberReader<'a> {
    place: Place,
    data: Data,
    stored: BoxStream<'a, io::Result<Bytes>>,
    /// Where the stored bytes go on that the stream has not given yet.
    stored_at: u64,
    input: Bytes,
    /// Whether more input may come.
    more: bool,
    inflate: Option<Box<Decompress>>,
    crc32: crc32fast::Hasher,
    produced: u64,
    /// The part that is asked for.
    part: Range<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// More is to be inflated.
    Going,
    /// The deflate stream has ended; what came of it last is not checked yet.
    Inflated,
    Done,
    Failed,
}

impl<'a> MemberReader<'a> {
    /// A reader of the whole member.
    pub fn new<R: ReadAt + Clone + 'a>(source: R, data: Data, ahead: ReadAhead) -> Self {
        Self::over(source, data, 0..data.length, ahead)
    }

    /// A reader of the bytes `part` of the member's content, or of as many of them as there are; unchecked. See [Parts of members](Self#parts-of-members).
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
        // A record that leads outside is not followed: the package is not the one it was.
        let end = data.offset.saturating_add(data.stored_length).min(source.len());
        let inflate = (data.method == Method::Deflated).then(|| Box::new(Decompress::new(false)));
        Self {
            place: Place { name: None, offset: data.offset },
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

    /// The same, with the member's name in its errors.
    pub fn of(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// The next bytes; `None` at the end, when everything has been found to be as declared. After an error there is nothing but errors to be had.
    ///
    /// # Errors
    /// [`PackageError::Read`]; of the member, [`PackageError::WrongSize`], [`PackageError::WrongCrc`], [`PackageError::BadDeflate`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, PackageError> {
        let next = self.next_chunk().await;
        if next.is_err() {
            self.state = State::Failed;
        }
        next
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, PackageError> {
        loop {
            // A long member must not keep a thread from everybody else.
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
            // Behind the part nothing is of interest any more, except where all is checked.
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

    /// The same bytes as an [`AsyncRead`](tokio::io::AsyncRead); [`PackageError::from_io`] finds the error inside those that it gives.
    pub fn into_async_read(self) -> impl AsyncBufRead + Send + Unpin + 'a {
        reader_of(stream::try_unfold(self, |mut reader| async move {
            let chunk = reader.chunk().await.map_err(io::Error::from)?;
            Ok(chunk.map(|chunk| (chunk, reader)))
        }))
    }

    /// The rest of the content, held whole: for manifests and tests.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk); and [`PackageError::MemberTooLarge`] when there would be more than `limit` bytes.
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

    /// The next bytes that come of inflating; `None` at the end of the deflate stream.
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

    /// Everything has come: is it what was declared?
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
