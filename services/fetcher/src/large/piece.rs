//! A range of a large resource, received by a request of its own into a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fixity::Hasher;
use store::{PackageHead, Spooled, Store};
use web::{Client, ContentRange, GetRequest, Range, Response};

use crate::package::version::is_same;

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
    /// Number of requests made.
    pub(super) requests: Arc<AtomicU64>,
}

/// A piece that was received, or why it was not.
pub(super) type Come = (u64, Result<Spooled, String>);

impl Asking {
    /// Requests the bytes from `from` to before `to`.
    pub(super) async fn ask(self, from: u64, to: u64) -> Come {
        (from, self.receive_new(from, to).await)
    }

    /// Receives the bytes from `from` to before `to` from a response.
    pub(super) async fn take(self, response: Response, from: u64, to: u64) -> Come {
        (from, self.receive(response, from, to).await)
    }

    async fn receive_new(&self, from: u64, to: u64) -> Result<Spooled, String> {
        let range = Some(Range { from, to: Some(to), if_range: Some(self.if_range.clone()) });
        // No piece lies beyond the length of the whole, which was checked.
        let request = GetRequest { range, largest: Some(to), apart: true, ..self.request.clone() };
        let count = |made: u32| self.requests.fetch_add(u64::from(made), Ordering::Relaxed);
        let response = self.client.get(request).await.map_err(|error| {
            count(error.requests());
            error.to_string()
        })?;
        count(response.requests());
        self.receive(response, from, to).await
    }

    async fn receive(&self, mut response: Response, from: u64, to: u64) -> Result<Spooled, String> {
        self.check(&response, from, to)?;
        let mut spool =
            self.store.spool(Hasher::new([])).await.map_err(|error| format!("no spool file: {error}"))?;
        while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
            if spool.len() + chunk.len() as u64 > to - from {
                return Err(format!("more than the {} bytes came that were announced", to - from));
            }
            spool.append(chunk).await.map_err(|error| error.to_string())?;
        }
        if spool.len() != to - from {
            return Err(format!("{} of {} bytes came", spool.len(), to - from));
        }
        spool.finish().await.map_err(|error| error.to_string())
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
        if !is_same(response, &self.head) || response.content_encoding() != self.head.encoding {
            return Err("the server has another version now".to_owned());
        }
        if *response.final_url() != self.request.url {
            return Err("the server sends ranges elsewhere".to_owned());
        }
        Ok(())
    }
}
