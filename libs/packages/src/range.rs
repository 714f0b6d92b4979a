//! A range of a package as a stream, with a bounded number of concurrent reads.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_util::io::StreamReader;

use crate::ReadAt;
use crate::read_at::exactly;

/// How a long range is split into reads. At most `chunk * reads` bytes of it are held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// Bytes of one read.
    pub chunk: usize,
    /// Concurrent reads, including completed ones that were not consumed yet.
    pub reads: usize,
}

impl Default for ReadAhead {
    /// Four reads of 1 MiB: enough to hide the latency of an object store.
    fn default() -> Self {
        Self { chunk: 1 << 20, reads: 4 }
    }
}

/// The bytes of `range` in order, as chunks. Reads continue only while the stream is polled, `ahead.reads` at
/// a time.
///
/// `source` is cloned for every read: pass a reference, or an `Arc`.
///
/// # Errors
/// Those of [`ReadAt::read_at`]; and a read that returns another number of bytes than requested.
pub fn range_stream<'a, R: ReadAt + Clone + 'a>(
    source: R,
    range: Range<u64>,
    ahead: ReadAhead,
) -> BoxStream<'a, io::Result<Bytes>> {
    let chunk = ahead.chunk.max(1);
    let Range { start, end } = range;
    let reads = stream::iter((start..end).step_by(chunk)).map(move |offset| {
        let source = source.clone();
        let length = (end - offset).min(chunk as u64) as usize;
        async move { source.read_at(offset, length).await.and_then(|bytes| exactly(bytes, length)) }
    });
    reads.buffered(ahead.reads.max(1)).boxed()
}

/// The bytes of `range` as an [`AsyncRead`]; see [`range_stream`].
pub fn range_reader<'a, R: ReadAt + Clone + 'a>(
    source: R,
    range: Range<u64>,
    ahead: ReadAhead,
) -> RangeReader<'a> {
    RangeReader(StreamReader::new(range_stream(source, range, ahead)))
}

/// A range of a package, buffered; from [`range_reader`].
pub struct RangeReader<'a>(StreamReader<BoxStream<'a, io::Result<Bytes>>, Bytes>);

impl AsyncRead for RangeReader<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncBufRead for RangeReader<'_> {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Pin::new(&mut self.get_mut().0).poll_fill_buf(context)
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        Pin::new(&mut self.0).consume(amount);
    }
}

/// Turns chunks into one [`AsyncRead`].
pub(crate) fn reader_of<'a>(
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'a,
) -> impl AsyncBufRead + Send + Unpin + 'a {
    StreamReader::new(chunks.boxed())
}
