//! The parser of a document, on a thread of its own: it pulls bytes, and may have to wait for the network.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use resourcesync::{Item, Link, Options, ReadError, Reader, Summary};
use tokio::sync::mpsc;

use crate::error::DocumentError;
use crate::part::Part;

/// Entries per batch.
const BATCH: usize = 500;
/// Bytes of links per batch. Further entries begin another one.
const LINK_BYTES: usize = 256 * 1024;
/// Batches that may wait for the visitor.
const BATCHES_AHEAD: usize = 2;

/// Parses chunks. Returns the number of parsed bytes, and the parts as a stream.
pub(crate) fn parts_of(
    chunks: mpsc::Receiver<Result<Bytes, DocumentError>>,
    options: Options,
) -> (Arc<AtomicU64>, mpsc::Receiver<Part>) {
    let (parts_in, parts) = mpsc::channel(BATCHES_AHEAD);
    let bytes = Arc::<AtomicU64>::default();
    let out = PartsOut { parts: parts_in, bytes: Arc::clone(&bytes) };
    tokio::task::spawn_blocking(move || parse(ChunkReader::new(chunks), options, &out));
    (bytes, parts)
}

/// Output side of the parser.
struct PartsOut {
    parts: mpsc::Sender<Part>,
    bytes: Arc<AtomicU64>,
}

impl PartsOut {
    /// Sends a part; `bytes` were parsed up to its end. Returns whether the visitor still listens.
    fn send(&self, part: Part, bytes: u64) -> bool {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.parts.blocking_send(part).is_ok()
    }
}

/// Parses on a thread of its own: the reader pulls, and may have to wait for the network.
fn parse(source: ChunkReader, options: Options, out: &PartsOut) {
    let failure = Arc::clone(&source.failure);
    // If the network failed, that is the cause, not the parser's error about the missing rest.
    let cause = |error: ReadError| match lock(&failure).take() {
        Some(cause) => cause,
        None => DocumentError::Read(error),
    };
    // A failed send means that the visitor is gone, so the parser ends too.
    match Reader::new(source, options) {
        Err(error) => {
            out.send(Part::Broken(cause(error), Summary::default()), 0);
        }
        Ok(mut reader) => {
            let end = match parse_items(&mut reader, out) {
                Ok(true) => Part::End(reader.summary()),
                Ok(false) => return,
                Err(error) => Part::Broken(cause(error), reader.summary()),
            };
            out.send(end, reader.bytes_read());
        }
    }
}

fn parse_items(reader: &mut Reader<ChunkReader>, out: &PartsOut) -> Result<bool, ReadError> {
    let header = reader.header()?.clone();
    if !out.send(Part::Header(header), reader.bytes_read()) {
        return Ok(false);
    }
    let mut batch = Vec::with_capacity(BATCH);
    let mut link_bytes = 0;
    loop {
        match reader.next() {
            Ok(Some(item)) => {
                link_bytes += bytes_of_links(&item);
                batch.push(item);
            }
            Ok(None) => return Ok(batch.is_empty() || out.send(Part::Items(batch), reader.bytes_read())),
            Err(error) => {
                if !batch.is_empty() {
                    out.send(Part::Items(batch), reader.bytes_read());
                }
                return Err(error);
            }
        }
        if batch.len() == BATCH || link_bytes >= LINK_BYTES {
            link_bytes = 0;
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            if !out.send(Part::Items(full), reader.bytes_read()) {
                return Ok(false);
            }
        }
    }
}

fn bytes_of_links(item: &Item) -> usize {
    match item {
        Item::Entry(entry) => entry.links.iter().map(Link::size).sum(),
        Item::Bad(_) => 0,
    }
}

/// The chunks of a body as a reader.
struct ChunkReader {
    chunks: mpsc::Receiver<Result<Bytes, DocumentError>>,
    current: Bytes,
    failure: Arc<Mutex<Option<DocumentError>>>,
}

impl ChunkReader {
    fn new(chunks: mpsc::Receiver<Result<Bytes, DocumentError>>) -> Self {
        Self { chunks, current: Bytes::new(), failure: Arc::default() }
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                None => return Ok(0),
                Some(Ok(chunk)) => self.current = chunk,
                Some(Err(error)) => {
                    let message = error.to_string();
                    *lock(&self.failure) = Some(error);
                    return Err(io::Error::other(message));
                }
            }
        }
        let length = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
