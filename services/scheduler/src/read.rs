//! Reads a document as a stream: bytes from the network go in, batches of entries come out. Memory holds only a few
//! chunks and one batch.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use jiff::Timestamp;
use model::{Evidence, Validators};
use packages::PackageError;
use packages::zip::MemberReader;
use resourcesync::{Header, Item, Mode, Options, ReadError, Reader, Summary};
use tokio::sync::mpsc;
use url::Url;
use web::{Client, GetRequest, Response, WebError};

use crate::entry::Horizon;

/// Entries per batch.
const BATCH: usize = 500;
/// Network chunks that may wait for the parser.
const CHUNKS_AHEAD: usize = 8;
/// Batches that may wait for the planner.
const BATCHES_AHEAD: usize = 2;

/// Response to a request for a document.
pub enum Opened {
    /// Unchanged since the version with the given validators.
    NotModified {
        /// Requests made, redirects and retries included.
        requests: u32,
    },
    /// The document, as a stream.
    Document(DocumentStream),
}

/// A document that is being received and parsed.
pub struct DocumentStream {
    /// The final URL, after redirects. Relative references are resolved against it.
    pub url: Url,
    /// Validators of this version.
    pub validators: Validators,
    /// Requests made, redirects and retries included.
    pub requests: u32,
    /// Evidence for a problem with it: where it came from, and what the server said about it.
    pub evidence: Box<Evidence>,
    /// `Date` of the response.
    pub(crate) sent_at: Option<Timestamp>,
    /// Bytes parsed so far, after decompression.
    bytes: Arc<AtomicU64>,
    parts: mpsc::Receiver<Part>,
}

/// A part of a document, in document order.
#[derive(Debug)]
pub enum Part {
    /// The root and its metadata; always first.
    Header(Header),
    /// Entries.
    Items(Vec<Item>),
    /// The end: the document was read whole.
    End(Summary),
    /// Reading stopped early; the parts before stay valid.
    Broken(DocumentError, Summary),
}

/// Why a document was not read to the end.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The document is invalid.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The connection failed.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The package that contains it is invalid.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The server answered "not modified" to an unconditional request.
    #[error("the server answered 304 Not Modified to a request without conditions; it sent no document")]
    NothingSent,
    /// The parser ended without a result: a bug of Thresher, not of the document.
    #[error("reading stopped without a result; this is a defect in the reader, please report the document")]
    Stopped,
}

/// Options for reading a document at `now`: its times are checked against it.
pub fn read_options(mode: Mode, now: Timestamp) -> Options {
    Horizon::at(now).options(mode)
}

/// Requests a document and starts to read it.
///
/// # Errors
/// When no attempt got a response that contains a document.
pub async fn open(
    client: &Client,
    url: &Url,
    held: Validators,
    options: Options,
) -> Result<Opened, WebError> {
    let response =
        client.get_with_retries(GetRequest { validators: held, ..GetRequest::new(url.clone()) }).await?;
    if response.status() == 304 {
        return Ok(Opened::NotModified { requests: response.requests() });
    }
    Ok(Opened::Document(DocumentStream::of(response, Vec::new(), options)))
}

/// Starts to read a document that is a member of a package at `url`.
pub(crate) fn open_member(member: MemberReader<'static>, url: Url, options: Options) -> DocumentStream {
    let options = Options { base: Some(url.clone()), ..options };
    let (chunks_in, chunks_out) = mpsc::channel(CHUNKS_AHEAD);
    tokio::spawn(inflate(member, chunks_in));
    let (bytes, parts) = parts_of(chunks_out, options);
    let (validators, evidence) = (Validators::default(), Box::default());
    DocumentStream { url, validators, requests: 0, evidence, sent_at: None, bytes, parts }
}

/// Starts to read a document that is already in memory, as received from `url`.
pub(crate) fn open_bytes(bytes: Vec<u8>, url: Url, options: Options) -> DocumentStream {
    let options = Options { base: Some(url.clone()), ..options };
    let (chunks_in, chunks_out) = mpsc::channel(1);
    // The channel has room: it is empty.
    let _ = chunks_in.try_send(Ok(bytes.into()));
    let (bytes, parts) = parts_of(chunks_out, options);
    let (validators, evidence) = (Validators::default(), Box::default());
    DocumentStream { url, validators, requests: 0, evidence, sent_at: None, bytes, parts }
}

/// Parses chunks. Returns the number of parsed bytes, and the parts as a stream.
fn parts_of(
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
    /// Sends a part; `bytes` were parsed up to its end. Returns whether the planner still listens.
    fn send(&self, part: Part, bytes: u64) -> bool {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.parts.blocking_send(part).is_ok()
    }
}

impl DocumentStream {
    /// The stream of a response of which the first `pieces` were received.
    pub(crate) fn of(response: Response, pieces: Vec<Bytes>, options: Options) -> Self {
        let url = response.final_url().clone();
        let validators = response.validators();
        let (requests, evidence) = (response.requests(), Box::new(response.evidence()));
        let sent_at = response.date();
        let options = Options { base: Some(url.clone()), ..options };
        let (chunks_in, chunks_out) = mpsc::channel(CHUNKS_AHEAD);
        tokio::spawn(receive(pieces, response, chunks_in));
        let (bytes, parts) = parts_of(chunks_out, options);
        Self { url, validators, requests, evidence, sent_at, bytes, parts }
    }

    /// Bytes parsed so far, after decompression.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The next part; none after [`Part::End`] or [`Part::Broken`].
    pub async fn next(&mut self) -> Option<Part> {
        self.parts.recv().await
    }
}

/// Forwards the body, chunk by chunk. Ends with the body, or at once when the receiver is dropped: an open response
/// takes a permit of its origin.
async fn receive(
    pieces: Vec<Bytes>,
    mut response: Response,
    chunks: mpsc::Sender<Result<Bytes, DocumentError>>,
) {
    for piece in pieces {
        if chunks.send(Ok(piece)).await.is_err() {
            return;
        }
    }
    loop {
        let received = tokio::select! {
            received = response.chunk() => received,
            () = chunks.closed() => return,
        };
        let chunk = match received {
            Ok(None) => return,
            Ok(Some(chunk)) => Ok(chunk),
            Err(error) => Err(error.into()),
        };
        let last = chunk.is_err();
        if chunks.send(chunk).await.is_err() || last {
            return;
        }
    }
}

/// Forwards a member while inflating it. The check that it is intact comes after its last byte only.
async fn inflate(mut member: MemberReader<'static>, chunks: mpsc::Sender<Result<Bytes, DocumentError>>) {
    loop {
        let chunk = match member.chunk().await {
            Ok(None) => return,
            Ok(Some(chunk)) => Ok(chunk),
            Err(error) => Err(error.into()),
        };
        let last = chunk.is_err();
        if chunks.send(chunk).await.is_err() || last {
            return;
        }
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
    // A failed send means that the planner is gone, so the parser ends too.
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
    loop {
        match reader.next() {
            Ok(Some(item)) => batch.push(item),
            Ok(None) => return Ok(batch.is_empty() || out.send(Part::Items(batch), reader.bytes_read())),
            Err(error) => {
                if !batch.is_empty() {
                    out.send(Part::Items(batch), reader.bytes_read());
                }
                return Err(error);
            }
        }
        if batch.len() == BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
            if !out.send(Part::Items(full), reader.bytes_read()) {
                return Ok(false);
            }
        }
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
