//! Fetches one response, as far as discovery needs it: a document up to its limits, or the beginning of anything
//! else.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use documents::{BodyPrefix, DocumentError, Prefetched};
use model::{KnownDocument, Validators};
use resourcesync::{Options, ReadError};
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::Instant;
use url::Url;
use web::{Client, GetRequest, Response, WebError};

use super::document::{self, Level, Parsed};

/// Maximum bytes of a page that are examined.
const MOST_OF_A_PAGE: usize = 256 * 1024;
/// Network chunks that may wait for the parser.
const CHUNKS_AHEAD: usize = 4;

/// The response to a request.
pub(crate) struct Answer {
    /// The final URL, after redirects.
    pub(crate) url: Url,
    pub(crate) validators: Validators,
    pub(crate) content_length: Option<u64>,
    /// Requests made.
    pub(crate) requests: u32,
    /// The `Link` headers.
    pub(crate) link_headers: Vec<String>,
    /// The document, or why it is not one.
    pub(crate) parsed: Result<Parsed, DocumentError>,
    /// The beginning of a web page; otherwise empty.
    pub(crate) page: String,
    /// The open response of a list, of which only the header was read.
    pub(crate) prefetched: Option<Prefetched>,
}

/// Fetches and reads a URL, unless it is unchanged since it was cached.
pub(crate) async fn document(
    client: &Client,
    request: GetRequest,
    options: &Options,
    known: Option<&KnownDocument>,
) -> Result<Answer, WebError> {
    let mut earlier = 0;
    let mut held = Validators::default();
    let mut asked_at = Instant::now();
    let mut response = match known {
        Some(known) => {
            let conditional = GetRequest { validators: known.validators.clone(), ..request.clone() };
            let response = client.get_with_retries(conditional).await?;
            let is_same = response.final_url().as_str() == known.answered_by;
            match response.status() {
                304 if is_same => return Ok(unchanged(&response, known)),
                304 => {
                    // Another URL answers now, so its "not modified" is about another document.
                    earlier = response.requests();
                    asked_at = Instant::now();
                    client.get_with_retries(request).await?
                }
                _ => {
                    held.clone_from(&known.validators);
                    response
                }
            }
        }
        None => client.get_with_retries(request).await?,
    };
    let waited = asked_at.elapsed();
    let options = Options { base: Some(response.final_url().clone()), ..options.clone() };
    let (chunks_in, chunks_out) = mpsc::channel(CHUNKS_AHEAD);
    let parser = task::spawn_blocking(move || document::parse(Chunks::new(chunks_out), options));
    let (passed, parsed) = tokio::join!(pass_on(&mut response, chunks_in), parser);
    let Passed { mut beginning, failure } = passed;
    let is_whole = failure.is_none();
    let parsed = match (parsed, failure) {
        (Err(_panicked), _) => Err(DocumentError::Stopped),
        // If the network failed, that is the cause, not the parser's error about the missing rest.
        (Ok(Err(_)), Some(web)) => Err(DocumentError::Web(web)),
        (Ok(Ok(mut parsed)), Some(web)) => {
            parsed.broken = parsed.broken.map(|_| DocumentError::Web(web));
            Ok(parsed)
        }
        (Ok(parsed), None) => parsed.map_err(DocumentError::Read),
    };
    let mut page = String::new();
    if let Err(error) = &parsed
        && is_page(&response, error)
    {
        fill(&mut response, &mut beginning).await;
        page = beginning.text(MOST_OF_A_PAGE);
    }
    Ok(Answer {
        url: response.final_url().clone(),
        validators: response.validators(),
        content_length: response.content_length(),
        requests: earlier + response.requests(),
        link_headers: response.header_values("link").map(str::to_owned).collect(),
        prefetched: match &parsed {
            Ok(parsed) if parsed.level == Level::List && is_whole => {
                beginning.whole().map(|pieces| Prefetched { response, pieces, held, waited })
            }
            _ => None,
        },
        parsed,
        page,
    })
}

/// The answer from the cached document.
fn unchanged(response: &Response, known: &KnownDocument) -> Answer {
    Answer {
        url: response.final_url().clone(),
        validators: known.validators.clone(),
        content_length: None,
        requests: response.requests(),
        link_headers: response.header_values("link").map(str::to_owned).collect(),
        parsed: Ok(Parsed::from_known(known)),
        page: String::new(),
        prefetched: None,
    }
}

fn is_page(response: &Response, error: &DocumentError) -> bool {
    matches!(error, DocumentError::Read(ReadError::Html { .. }))
        || response.media_type().is_some_and(|media_type| media_type.contains("html"))
}

/// Result of passing a body to the parser.
struct Passed {
    beginning: BodyPrefix,
    failure: Option<WebError>,
}

/// Passes the body to the parser until either has enough, and keeps its beginning.
async fn pass_on(response: &mut Response, chunks: mpsc::Sender<io::Result<Bytes>>) -> Passed {
    let mut beginning = BodyPrefix::default();
    loop {
        let received = tokio::select! {
            received = response.chunk() => received,
            () = chunks.closed() => return Passed { beginning, failure: None },
        };
        match received {
            Ok(None) => return Passed { beginning, failure: None },
            Ok(Some(chunk)) => {
                beginning.add(&chunk);
                if chunks.send(Ok(chunk)).await.is_err() {
                    return Passed { beginning, failure: None };
                }
            }
            Err(error) => {
                // A parser that is gone has what it needs.
                let _ = chunks.send(Err(io::Error::other(error.to_string()))).await;
                return Passed { beginning, failure: Some(error) };
            }
        }
    }
}

/// Reads on, up to the limit for pages. A body that breaks off is used as far as it came.
async fn fill(response: &mut Response, beginning: &mut BodyPrefix) {
    while beginning.kept_bytes() < MOST_OF_A_PAGE {
        let Ok(Some(chunk)) = response.chunk().await else { return };
        beginning.add(&chunk);
    }
}

/// The chunks of a body as a reader.
struct Chunks {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Chunks {
    fn new(chunks: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self { chunks, current: Bytes::new() }
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                None => return Ok(0),
                Some(chunk) => self.current = chunk?,
            }
        }
        let length = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}
