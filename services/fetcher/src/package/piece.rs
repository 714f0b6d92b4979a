//! A piece of a package's part, received by its own range in parallel with the leading one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use store::PackageHead;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;
use web::{Client, ContentRange, GetRequest, Range, Response};

use super::version::{Known, is_same};

/// A piece in transit or received, in memory. Dropping it ends its request.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its first byte.
    pub(super) from: u64,
    come: Option<Bytes>,
    task: JoinHandle<Result<Bytes, String>>,
    begun: Option<oneshot::Receiver<()>>,
}

/// Parameters of the request for a piece.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    pub(super) client: Client,
    pub(super) url: Url,
    /// The version that it must have.
    pub(super) if_range: String,
    pub(super) head: PackageHead,
    /// Whether a declared digest judges the whole.
    pub(super) is_judged: bool,
    /// Number of requests made.
    pub(super) requests: Arc<AtomicU64>,
}

impl Piece {
    /// Requests the bytes from `from` to before `to`.
    pub(super) fn ask(asking: Asking, from: u64, to: u64) -> Self {
        let (begins, begun) = oneshot::channel();
        let task = tokio::spawn(receive(asking, from, to, begins));
        Self { from, come: None, task, begun: Some(begun) }
    }

    /// Resolves once when the response begins as it should; fails if it will not. Returned once.
    pub(super) fn begun(&mut self) -> Option<oneshot::Receiver<()>> {
        self.begun.take()
    }

    /// All of its bytes.
    ///
    /// # Errors
    /// Why it cannot be received in this way. The leading range will find out what that means for the package.
    pub(super) async fn come(&mut self) -> Result<Bytes, String> {
        match self.come.take() {
            Some(bytes) => Ok(bytes),
            None => (&mut self.task).await.unwrap_or_else(|error| Err(error.to_string())),
        }
    }

    /// Whether it was received, once that is known; it is then kept until its turn.
    pub(super) async fn has_come(&mut self) -> bool {
        self.come = self.come().await.ok();
        self.come.is_some()
    }

    /// Whether its end was not awaited yet.
    pub(super) fn is_coming(&self) -> bool {
        self.come.is_none()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(asking: Asking, from: u64, to: u64, begins: oneshot::Sender<()>) -> Result<Bytes, String> {
    let Asking { client, url, if_range, head, is_judged, requests } = asking;
    let range = Some(Range { from, to: Some(to), if_range: Some(if_range) });
    // No piece lies beyond the length of the whole, which was checked.
    let request = GetRequest { range, largest: Some(to), apart: true, ..GetRequest::new(url.clone()) };
    let count = |made: u32| requests.fetch_add(u64::from(made), Ordering::Relaxed);
    let mut response = client.get(request).await.map_err(|error| {
        count(error.requests());
        error.to_string()
    })?;
    count(response.requests());
    let known = Known { validators: &head.validators, length: head.length, is_judged };
    check(&response, &url, from, to, known)?;
    // The receiver may be gone.
    let _ = begins.send(());
    let length = usize::try_from(to - from).map_err(|error| error.to_string())?;
    let mut bytes = BytesMut::with_capacity(length);
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        if bytes.len() + chunk.len() > length {
            return Err(format!("more than the {length} bytes came that were announced"));
        }
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() == length {
        Ok(bytes.freeze())
    } else {
        Err(format!("{} of {length} bytes came", bytes.len()))
    }
}

/// Whether a response is exactly the piece, of this version, from the origin that the permit is for.
fn check(response: &Response, url: &Url, from: u64, to: u64, known: Known<'_>) -> Result<(), String> {
    let range = response.content_range();
    if response.status() != 206 {
        return Err(format!("the server answered {} to a range, with the whole", response.status()));
    }
    if range.is_none_or(|range: ContentRange| (range.from, range.to) != (from, to)) {
        return Err(format!("asked for bytes {from} to {to}, the server sends {range:?}"));
    }
    if !is_same(response, known) {
        return Err("the server has another version now".to_owned());
    }
    if response.final_url() != url {
        return Err("the server sends ranges elsewhere".to_owned());
    }
    Ok(())
}
