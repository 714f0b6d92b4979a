//! Access to the bytes of a package.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::PackageError;

/// A package with random access: an object in a store, a file, or bytes in memory.
///
/// Its bytes must not change meanwhile; packages in a store never do. Readers of this crate never read beyond
/// [`len`](Self::len), and never more than a few MiB at once.
#[async_trait]
pub trait ReadAt: Send + Sync {
    /// The length of the package, in bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `length` bytes from `offset` on: exactly as many, or an error.
    ///
    /// # Errors
    /// Whatever prevents the read. It is reported as [`PackageError::Read`], which may be retried.
    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes>;
}

#[async_trait]
impl ReadAt for Bytes {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(length).filter(|&end| end <= (**self).len());
        Ok(self.slice(start..end.ok_or(io::ErrorKind::UnexpectedEof)?))
    }
}

#[async_trait]
impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn len(&self) -> u64 {
        (**self).len()
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        (**self).read_at(offset, length).await
    }
}

#[async_trait]
impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        (**self).read_at(offset, length).await
    }
}

/// The bytes of a range that is known to be inside; a reader that returns fewer or more has failed.
pub(crate) async fn read_exactly(
    source: &dyn ReadAt,
    offset: u64,
    length: usize,
) -> Result<Bytes, PackageError> {
    let read = source.read_at(offset, length).await.and_then(|bytes| exactly(bytes, length));
    read.map_err(|source| PackageError::Read { offset, length: length as u64, source })
}

/// Checks the length of `bytes`.
pub(crate) fn exactly(bytes: Bytes, length: usize) -> io::Result<Bytes> {
    if bytes.len() == length {
        return Ok(bytes);
    }
    let text = format!("{} bytes came instead of {length}", bytes.len());
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
}
