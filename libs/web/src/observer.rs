//! Observers of requests: the client itself counts nothing for them.

use std::fmt::Debug;
use std::time::Duration;

use model::Origin;

/// Observes the requests of a client. It is called where requests are sent, and must not block.
pub trait Observer: Debug + Send + Sync {
    /// Called before a request is sent to an origin. The returned exchange observes the rest of the request.
    /// It is dropped when the response has ended, or when the caller stops reading.
    fn begin(&self, origin: &Origin) -> Box<dyn Exchange>;
}

/// Observes one request and its response.
pub trait Exchange: Send + Sync {
    /// The response head arrived after this time; without a status, nothing readable arrived.
    fn answered(&mut self, status: Option<u16>, after: Duration);

    /// This many bytes of the body arrived.
    fn received(&mut self, bytes: u64);
}
