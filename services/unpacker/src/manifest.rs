//! Reads a manifest as a stream: bytes of its member go in, batches of entries come out.

use std::future::Future;
use std::io::{self, Read};

use bytes::{Buf, Bytes, BytesMut};
use resourcesync::{Header, Item, Options, ReadError, Reader, Summary};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

/// Entries per batch.
const BATCH: usize = 500;
/// Bytes of a chunk.
const CHUNK: usize = 64 << 10;
/// Chunks that may wait for the parser.
const CHUNKS_AHEAD: usize = 8;
/// Batches that may wait for the consumer.
const BATCHES_AHEAD: usize = 2;

/// A part of a manifest, in document order.
#[derive(Debug)]
pub(crate) enum Part {
    /// The root and its metadata; always first.
    Header(Header),
    /// Entries.
    Items(Vec<Item>),
    /// The end: the manifest was read whole.
    End(Summary),
    /// Reading stopped early.
    Broken(ReadError),
}

/// Starts to read a manifest. Parts arrive only while the other half, which moves the bytes, is polled. That half
/// ends after the last byte, even if the parts were dropped: the archive's own checks come last.
pub(crate) fn begin<'a>(
    source: impl AsyncRead + Send + Unpin + 'a,
    options: Options,
) -> (mpsc::Receiver<Part>, impl Future<Output = io::Result<()>> + Send + 'a) {
    let (chunks_in, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let (parts_in, parts) = mpsc::channel(BATCHES_AHEAD);
    tokio::task::spawn_blocking(move || {
        parse(ChunkReader { chunks, current: Bytes::new() }, options, &parts_in)
    });
    (parts, pump(source, chunks_in))
}

async fn pump(
    mut source: impl AsyncRead + Send + Unpin,
    chunks: mpsc::Sender<Option<Bytes>>,
) -> io::Result<()> {
    loop {
        let mut chunk = BytesMut::with_capacity(CHUNK);
        match source.read_buf(&mut chunk).await {
            Ok(0) => return Ok(()),
            // A parser that needs no more bytes is gone.
            Ok(_) => drop(chunks.send(Some(chunk.freeze())).await),
            Err(error) => {
                let _ = chunks.send(None).await;
                return Err(error);
            }
        }
    }
}

/// Parses on a thread of its own: the reader pulls, and may have to wait.
fn parse(source: ChunkReader, options: Options, parts: &mpsc::Sender<Part>) {
    let end = match Reader::new(source, options) {
        Err(error) => Part::Broken(error),
        Ok(mut reader) => match parse_items(&mut reader, parts) {
            Ok(true) => Part::End(reader.summary()),
            Ok(false) => return,
            Err(error) => Part::Broken(error),
        },
    };
    // A failed send means that the consumer is gone, so the parser ends too.
    let _ = parts.blocking_send(end);
}

fn parse_items(reader: &mut Reader<ChunkReader>, parts: &mpsc::Sender<Part>) -> Result<bool, ReadError> {
    let header = reader.header()?.clone();
    if parts.blocking_send(Part::Header(header)).is_err() {
        return Ok(false);
    }
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH
            && let Some(item) = reader.next()?
        {
            batch.push(item);
        }
        let is_last = batch.len() < BATCH;
        if !batch.is_empty() && parts.blocking_send(Part::Items(batch)).is_err() {
            return Ok(false);
        }
        if is_last {
            return Ok(true);
        }
    }
}

/// Chunks as a reader; an empty chunk (`None`) means that no more could be read.
struct ChunkReader {
    chunks: mpsc::Receiver<Option<Bytes>>,
    current: Bytes,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                None => return Ok(0),
                Some(Some(chunk)) => self.current = chunk,
                Some(None) => return Err(io::Error::other("the package could not be read further")),
            }
        }
        let length = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
