//! Reads a document as a stream: bytes from the network go in, batches of entries come out. Memory holds only a few
//! chunks and one batch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;
use model::{Evidence, Validators};
use packages::zip::MemberReader;
use planning::Horizon;
use resourcesync::{Mode, Options};
use tokio::sync::mpsc;
use url::Url;
use web::{Client, GetRequest, Response, WebError};

use crate::digest::BodyDigest;
use crate::error::DocumentError;
use crate::parse::parts_of;
use crate::part::Part;

/// Network chunks that may wait for the parser.
pub(crate) const CHUNKS_AHEAD: usize = 8;

/// Response to a request for a document.
pub enum Opened {
    /// Unchanged since the version with the given validators.
    NotModified {
        /// Requests made, redirects and retries included.
        requests: u32,
        /// Whether another URL answered.
        is_redirected: bool,
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
    pub sent_at: Option<Timestamp>,
    /// Bytes parsed so far, after decompression.
    bytes: Arc<AtomicU64>,
    /// Digest of the body, once all of it was received.
    digest: Arc<OnceLock<Sha256>>,
    parts: mpsc::Receiver<Part>,
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
        let is_redirected = !response.redirects().is_empty();
        return Ok(Opened::NotModified { requests: response.requests(), is_redirected });
    }
    Ok(Opened::Document(DocumentStream::of(response, Vec::new(), options)))
}

/// Requests a document whatever version of it is known. Returns the requests made, and the document as a stream.
pub async fn open_anew(
    client: &Client,
    url: &Url,
    options: Options,
) -> (u64, Result<DocumentStream, DocumentError>) {
    match open(client, url, Validators::default(), options).await {
        Ok(Opened::Document(stream)) => (stream.requests.into(), Ok(stream)),
        Ok(Opened::NotModified { requests, .. }) => (requests.into(), Err(DocumentError::NothingSent)),
        Err(error) => (error.requests().into(), Err(error.into())),
    }
}

/// Starts to read a document that is a member of a package at `url`.
pub fn open_member(member: MemberReader<'static>, url: Url, options: Options) -> DocumentStream {
    let options = Options { base: Some(url.clone()), ..options };
    let (chunks_in, chunks_out) = mpsc::channel(CHUNKS_AHEAD);
    tokio::spawn(inflate(member, chunks_in));
    let (bytes, parts) = parts_of(chunks_out, options);
    let validators = Validators::default();
    let evidence = Box::default();
    let digest = Arc::default();
    DocumentStream { url, validators, requests: 0, evidence, sent_at: None, bytes, digest, parts }
}

/// Starts to read a document that is already in memory, as received from `url`.
pub fn open_bytes(bytes: Vec<u8>, url: Url, options: Options) -> DocumentStream {
    let options = Options { base: Some(url.clone()), ..options };
    let (chunks_in, chunks_out) = mpsc::channel(1);
    // The channel has room: it is empty.
    let _ = chunks_in.try_send(Ok(bytes.into()));
    let (bytes, parts) = parts_of(chunks_out, options);
    let validators = Validators::default();
    let evidence = Box::default();
    let digest = Arc::default();
    DocumentStream { url, validators, requests: 0, evidence, sent_at: None, bytes, digest, parts }
}

impl Opened {
    /// Whether the URL that was requested redirected to another one.
    pub fn is_redirected(&self) -> bool {
        match self {
            Self::NotModified { is_redirected, .. } => *is_redirected,
            Self::Document(stream) => !stream.evidence.redirects.is_empty(),
        }
    }
}

impl DocumentStream {
    /// The stream of a response of which the first `pieces` were received.
    pub fn of(response: Response, pieces: Vec<Bytes>, options: Options) -> Self {
        let url = response.final_url().clone();
        let validators = response.validators();
        let requests = response.requests();
        let evidence = Box::new(response.evidence());
        let sent_at = response.date();
        let options = Options { base: Some(url.clone()), ..options };
        let (chunks_in, chunks_out) = mpsc::channel(CHUNKS_AHEAD);
        let digest = Arc::default();
        tokio::spawn(receive(pieces, response, chunks_in, Arc::clone(&digest)));
        let (bytes, parts) = parts_of(chunks_out, options);
        Self { url, validators, requests, evidence, sent_at, bytes, digest, parts }
    }

    /// Bytes parsed so far, after decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Digest of the body, at the document's end: a poll recognizes the same body by it. None of a long body, and of
    /// one that did not come from the network.
    pub fn digest(&self) -> Option<Sha256> {
        self.digest.get().copied()
    }

    /// The next part; none after [`Part::End`] or [`Part::Broken`].
    pub async fn next(&mut self) -> Option<Part> {
        self.parts.recv().await
    }
}

/// Forwards the body, chunk by chunk, and computes its digest. Ends with the body, or at once when the receiver is
/// dropped: an open response takes a permit of its origin.
async fn receive(
    pieces: Vec<Bytes>,
    mut response: Response,
    chunks: mpsc::Sender<Result<Bytes, DocumentError>>,
    whole: Arc<OnceLock<Sha256>>,
) {
    let mut digest = BodyDigest::default();
    for piece in pieces {
        digest.add(&piece);
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
            Ok(None) => {
                // Before the parser learns of the end.
                if let Some(digest) = digest.finish() {
                    let _ = whole.set(digest);
                }
                return;
            }
            Ok(Some(chunk)) => {
                digest.add(&chunk);
                Ok(chunk)
            }
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
