//! A range of a large resource, received by a request of its own into a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fixity::Hasher;
use store::{PackageHead, Spool, Spooled, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use web::{Client, ContentRange, ErrorKind, GetRequest, Range, Response, WebError};

use crate::package::version::{Known, is_same};

/// Parameters of the request for a piece.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) client: Client,
    pub(super) store: Store,
    /// The request for the whole.
    pub(super) request: GetRequest,
    /// The version that it must have.
    pub(super) if_range: String,
    pub(super) head: Arc<PackageHead>,
    /// Whether a declared digest judges the whole.
    pub(super) is_judged: bool,
    /// Number of requests made.
    pub(super) requests: Arc<AtomicU64>,
    /// Ends all pieces, with the bytes that came.
    pub(super) stop: CancellationToken,
}

/// What came of a piece.
#[derive(Debug)]
pub(super) struct Come {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Its first bytes, as many as came.
    pub(super) bytes: Option<Spooled>,
    pub(super) end: PieceEnd,
    /// Time that its body took.
    pub(super) took: Duration,
}

/// How receiving a piece ended.
#[derive(Debug)]
pub(super) enum PieceEnd {
    /// With its last byte.
    Whole,
    /// It was stopped.
    Stopped,
    /// There was no connection, or it broke off: another may bring the rest.
    Cut(String),
    /// The server answered something else: it may have no ranges, or not so many.
    Wrong(String),
    /// For a reason that says nothing about the server's ranges.
    Failed(String),
}

impl Asking {
    /// Requests the bytes from `from` to before `to`.
    pub(super) async fn ask(self, from: u64, to: u64) -> Come {
        let range = Some(Range { from, to: Some(to), if_range: Some(self.if_range.clone()) });
        // No piece lies beyond the length of the whole, which was checked.
        let request = GetRequest { range, largest: Some(to), apart: true, ..self.request.clone() };
        let count = |made: u32| self.requests.fetch_add(u64::from(made), Ordering::Relaxed);
        let asked = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Come::nothing(from, to, PieceEnd::Stopped),
            asked = self.client.get(request) => asked,
        };
        match asked {
            Ok(response) => {
                count(response.requests());
                self.take(response, from, to).await
            }
            Err(error) => {
                count(error.requests());
                Come::nothing(from, to, end_of(&error))
            }
        }
    }

    /// Receives the bytes from `from` to before `to` from a response.
    pub(super) async fn take(self, mut response: Response, from: u64, to: u64) -> Come {
        if let Err(why) = self.check(&response, from, to) {
            return Come::nothing(from, to, PieceEnd::Wrong(why));
        }
        let mut spool = match self.store.spool(Hasher::new([])).await {
            Ok(spool) => spool,
            Err(error) => {
                return Come::nothing(from, to, PieceEnd::Failed(format!("no spool file: {error}")));
            }
        };
        let begin = Instant::now();
        let end = self.fill(&mut spool, &mut response, to - from).await;
        let took = begin.elapsed();
        if matches!(end, PieceEnd::Wrong(_) | PieceEnd::Failed(_)) {
            return Come::nothing(from, to, end);
        }
        match spool.finish().await {
            Ok(bytes) => Come { from, to, bytes: Some(bytes), end, took },
            Err(error) => Come::nothing(from, to, PieceEnd::Failed(error.to_string())),
        }
    }

    async fn fill(&self, spool: &mut Spool, response: &mut Response, length: u64) -> PieceEnd {
        loop {
            let chunk = tokio::select! {
                biased;
                () = self.stop.cancelled() => return PieceEnd::Stopped,
                chunk = response.chunk() => chunk,
            };
            match chunk {
                Ok(Some(chunk)) if spool.len() + chunk.len() as u64 > length => {
                    return PieceEnd::Wrong(format!("more than the {length} bytes came that were announced"));
                }
                Ok(Some(chunk)) => {
                    if let Err(error) = spool.append(chunk).await {
                        return PieceEnd::Failed(error.to_string());
                    }
                }
                Ok(None) if spool.len() == length => return PieceEnd::Whole,
                Ok(None) => return PieceEnd::Cut(format!("{} of {length} bytes came", spool.len())),
                Err(error) => return end_of(&error),
            }
        }
    }

    /// Whether a response is exactly the piece, of this version, from the origin that the permit is for.
    fn check(&self, response: &Response, from: u64, to: u64) -> Result<(), String> {
        let range = response.content_range();
        if response.status() != 206 {
            return Err(format!("the server answered {} to a range", response.status()));
        }
        if range.is_none_or(|range: ContentRange| (range.from, range.to) != (from, to)) {
            return Err(format!("asked for bytes {from} to {to}, the server sends {range:?}"));
        }
        let PackageHead { validators, length, encoding, .. } = &*self.head;
        let known = Known { validators, length: *length, is_judged: self.is_judged };
        if !is_same(response, known) || response.content_encoding() != *encoding {
            return Err("the server has another version now".to_owned());
        }
        if *response.final_url() != self.request.url {
            return Err("the server sends ranges elsewhere".to_owned());
        }
        Ok(())
    }
}

impl Come {
    fn nothing(from: u64, to: u64, end: PieceEnd) -> Self {
        Self { from, to, bytes: None, end, took: Duration::ZERO }
    }

    /// Number of bytes that came.
    pub(super) fn length(&self) -> u64 {
        self.bytes.as_ref().map_or(0, |bytes| bytes.computed().length())
    }
}

fn end_of(error: &WebError) -> PieceEnd {
    use ErrorKind::{Connect, Dns, Interrupted, Timeout, TooLarge, TooSlow};
    let why = error.to_string();
    match error.kind() {
        Connect(_) | Dns | Interrupted | Timeout(_) | TooSlow => PieceEnd::Cut(why),
        TooLarge => PieceEnd::Wrong(why),
        _ if error.is_answer() => PieceEnd::Wrong(why),
        // The origin rests, or may not be asked at all.
        _ => PieceEnd::Failed(why),
    }
}
