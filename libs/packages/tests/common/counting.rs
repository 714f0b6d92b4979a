//! A package that counts its reads, and can be longer than the memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use packages::ReadAt;

/// Counts of the reads.
#[derive(Default)]
pub struct Counts {
    pub reads: AtomicU64,
    pub bytes: AtomicU64,
    pub longest: AtomicUsize,
}

/// Counts the reads of what is inside.
#[derive(Clone)]
pub struct Counting<R> {
    pub inner: R,
    pub counts: Arc<Counts>,
}

impl<R> Counting<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, counts: Arc::default() }
    }

    pub fn reads(&self) -> u64 {
        self.counts.reads.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.counts.bytes.load(Ordering::Relaxed)
    }

    pub fn longest(&self) -> usize {
        self.counts.longest.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl<R: ReadAt> ReadAt for Counting<R> {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let end = offset.checked_add(length as u64);
        assert!(end.is_some_and(|end| end <= self.len()), "{length} bytes at {offset} of {}", self.len());
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(length as u64, Ordering::Relaxed);
        self.counts.longest.fetch_max(length, Ordering::Relaxed);
        self.inner.read_at(offset, length).await
    }
}

/// A package of any length that is zero except for some parts.
#[derive(Clone)]
pub struct Sparse {
    pub length: u64,
    pub parts: Arc<Vec<(u64, Bytes)>>,
}

#[async_trait]
impl ReadAt for Sparse {
    fn len(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        let end = offset + length as u64;
        for (start, part) in self.parts.iter() {
            let from = offset.max(*start);
            let to = end.min(start + part.len() as u64);
            if from < to {
                let part = &part[(from - start) as usize..(to - start) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(bytes.into())
    }
}

/// A package that cannot be read from some offset on.
#[derive(Clone)]
pub struct Failing {
    pub inner: Bytes,
    pub from: u64,
    pub until: u64,
}

#[async_trait]
impl ReadAt for Failing {
    fn len(&self) -> u64 {
        ReadAt::len(&self.inner)
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        if offset < self.until && offset + length as u64 > self.from {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the store has gone"));
        }
        self.inner.read_at(offset, length).await
    }
}
