use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The caller's bytes, decompressed if the first two are gzip's. The URL and the media type are not reliable.
pub(super) enum Input<R> {
    Plain(Tap<R>),
    Gzip(Box<MultiGzDecoder<Tap<R>>>),
}

/// The kind of a failed read.
pub(super) enum InputError {
    /// The caller's own stream failed.
    Stream(io::Error),
    /// The compressed data end too early.
    GzipTruncated,
    /// The compressed data are damaged.
    GzipDamaged(String),
}

impl<R: Read> Input<R> {
    pub(super) fn open(mut inner: R) -> io::Result<Self> {
        let mut magic = [0; GZIP_MAGIC.len()];
        let mut known = 0;
        while known < magic.len() {
            match inner.read(&mut magic[known..]) {
                Ok(0) => break,
                Ok(read) => known += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let tap = Tap { head: magic, given: 0, known, inner, bytes: 0, failed: false };
        Ok(if magic[..known] == GZIP_MAGIC {
            Self::Gzip(Box::new(MultiGzDecoder::new(tap)))
        } else {
            Self::Plain(tap)
        })
    }

    /// Compressed bytes read so far; None if the document is not compressed.
    pub(super) fn compressed_bytes(&self) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(decoder) => Some(decoder.get_ref().bytes),
        }
    }

    pub(super) fn is_gzip(&self) -> bool {
        matches!(self, Self::Gzip(_))
    }

    pub(super) fn read(&mut self, buf: &mut [u8]) -> Result<usize, InputError> {
        loop {
            let (result, failed) = match self {
                Self::Plain(tap) => (tap.read(buf), true),
                Self::Gzip(decoder) => (decoder.read(buf), decoder.get_ref().failed),
            };
            return match result {
                Ok(read) => Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if failed => Err(InputError::Stream(error)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(InputError::GzipTruncated),
                Err(error) => Err(InputError::GzipDamaged(error.to_string())),
            };
        }
    }
}

/// Returns the first bytes once more, and remembers whether the stream itself failed: the decoder reports
/// both its own errors and the stream's as `io::Error`.
pub(super) struct Tap<R> {
    head: [u8; GZIP_MAGIC.len()],
    known: usize,
    given: usize,
    inner: R,
    /// Bytes returned so far.
    bytes: u64,
    failed: bool,
}

impl<R: Read> Read for Tap<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.given < self.known {
            let count = buf.len().min(self.known - self.given);
            buf[..count].copy_from_slice(&self.head[self.given..self.given + count]);
            self.given += count;
            self.bytes += count as u64;
            return Ok(count);
        }
        let result = self.inner.read(buf);
        self.bytes += *result.as_ref().unwrap_or(&0) as u64;
        self.failed = matches!(&result, Err(error) if error.kind() != io::ErrorKind::Interrupted);
        result
    }
}
