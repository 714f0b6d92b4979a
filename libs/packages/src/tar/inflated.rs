//! The decompressed bytes of a tar, with input and output counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{GzipDecoder, XzDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader, ReadBuf};

use super::header::BLOCK;
use crate::{Compression, Limits, PackageError, Packaging, SNIFF_BYTES, sniff};

/// Bytes read, or inflated, at once.
const CHUNK: usize = 64 << 10;

/// A tar as a stream, within the limits of its output and of its ratio to the input.
pub(super) struct Inflated<'a> {
    inner: Box<dyn AsyncRead + Send + Unpin + 'a>,
    pub(super) compression: Compression,
    fed: Arc<Fed>,
    limits: Limits,
    buffer: BytesMut,
    /// How many bytes were inflated and consumed.
    pub(super) position: u64,
}

impl<'a> Inflated<'a> {
    pub(super) async fn open(
        source: impl AsyncRead + Send + 'a,
        limits: &Limits,
    ) -> Result<Self, PackageError> {
        let fed = Arc::<Fed>::default();
        let mut source = Feeding { source: Box::pin(source), fed: Arc::clone(&fed) };
        let mut first = Vec::with_capacity(SNIFF_BYTES);
        let read = (&mut source).take(SNIFF_BYTES as u64).read_to_end(&mut first).await;
        read.map_err(|source| PackageError::Read { offset: 0, length: SNIFF_BYTES as u64, source })?;
        let Packaging::Tar(compression) = sniff(&first)? else {
            return Err(PackageError::NotAnArchive { looks_like: "a ZIP, which is read by ranges" });
        };
        let source = BufReader::with_capacity(CHUNK, io::Cursor::new(first).chain(source));
        let inner: Box<dyn AsyncRead + Send + Unpin + 'a> = match compression {
            Compression::Plain => Box::new(source),
            Compression::Gzip => {
                let mut decoder = GzipDecoder::new(source);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Compression::Xz => {
                let mut decoder = XzDecoder::with_mem_limit(source, limits.decoder_bytes.max(1));
                decoder.multiple_members(true);
                Box::new(decoder)
            }
            Compression::Zstd => {
                // The window is nearly all of a zstd decoder's memory; the format's own bounds are 2^10 and
                // 2^31.
                let window = limits.decoder_bytes.max(1).ilog2().clamp(10, 31);
                let mut decoder = ZstdDecoder::with_params(source, &[DParameter::window_log_max(window)]);
                decoder.multiple_members(true);
                Box::new(decoder)
            }
        };
        Ok(Self { inner, compression, fed, limits: limits.clone(), buffer: BytesMut::new(), position: 0 })
    }

    /// Whether the buffer has bytes, after one more read if it was empty. False only at the end.
    async fn fill(&mut self) -> Result<bool, PackageError> {
        if !self.buffer.is_empty() {
            return Ok(true);
        }
        // A long tar must not block the other tasks of its thread.
        tokio::task::coop::consume_budget().await;
        self.buffer.reserve(CHUNK);
        if let Err(error) = self.inner.read_buf(&mut self.buffer).await {
            return Err(self.why(error));
        }
        let inflated = self.position + self.buffer.len() as u64;
        let limit = self.limits.inflated_bytes_total;
        if inflated > limit {
            return Err(PackageError::TooManyBytes { bytes: inflated, limit });
        }
        let stored = self.fed.bytes.load(Ordering::Relaxed);
        if self.compression != Compression::Plain && self.limits.too_dense(stored, inflated) {
            return Err(PackageError::PackageTooDense { stored, inflated, limit: self.limits.ratio });
        }
        Ok(!self.buffer.is_empty())
    }

    /// Some bytes, `most` at most; `None` at the end.
    pub(super) async fn some(&mut self, most: u64) -> Result<Option<Bytes>, PackageError> {
        if !self.fill().await? {
            return Ok(None);
        }
        let length = usize::try_from(most).map_or(self.buffer.len(), |most| most.min(self.buffer.len()));
        self.position += length as u64;
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// The next block; `None` at the end.
    pub(super) async fn block(&mut self) -> Result<Option<[u8; BLOCK]>, PackageError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            if !self.fill().await? {
                return if filled == 0 { Ok(None) } else { Err(self.truncated("the end of a header")) };
            }
            let length = self.buffer.len().min(BLOCK - filled);
            block[filled..filled + length].copy_from_slice(&self.buffer.split_to(length));
            self.position += length as u64;
            filled += length;
        }
        Ok(Some(block))
    }

    /// Skips `length` bytes.
    pub(super) async fn skip(&mut self, mut length: u64) -> Result<(), PackageError> {
        while length > 0 {
            match self.some(length).await? {
                Some(chunk) => length -= chunk.len() as u64,
                None => return Err(self.truncated("the end of a member")),
            }
        }
        Ok(())
    }

    pub(super) fn truncated(&self, what: &'static str) -> PackageError {
        PackageError::Truncated { length: self.position, what }
    }

    /// Whether the source failed, or its bytes are invalid.
    fn why(&self, error: io::Error) -> PackageError {
        let stored = self.fed.bytes.load(Ordering::Relaxed);
        let format = self.compression.name();
        if self.fed.failed.load(Ordering::Relaxed) || self.compression == Compression::Plain {
            return PackageError::Read { offset: stored, length: 0, source: error };
        }
        let why = error.to_string();
        // Neither decoder has an error kind for this.
        if error.kind() == io::ErrorKind::OutOfMemory || why.contains("memory") {
            return PackageError::DecoderTooLarge { format, limit: self.limits.decoder_bytes };
        }
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return PackageError::Truncated { length: stored, what: "the end of what is compressed" };
        }
        PackageError::BadCompression { format, offset: self.position, why }
    }
}

/// The bytes that were read of the source.
#[derive(Default)]
struct Fed {
    bytes: AtomicU64,
    failed: AtomicBool,
}

struct Feeding<'a> {
    source: Pin<Box<dyn AsyncRead + Send + 'a>>,
    fed: Arc<Fed>,
}

impl AsyncRead for Feeding<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(self.source.as_mut().poll_read(context, buffer));
        match &read {
            Ok(()) => {
                self.fed.bytes.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
            }
            Err(_) => self.fed.failed.store(true, Ordering::Relaxed),
        }
        Poll::Ready(read)
    }
}
