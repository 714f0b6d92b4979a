//! Who hears of each request: what is counted is not the client's own business.

use std::fmt::Debug;
use std::time::Duration;

use model::Lane;

/// Hears of the requests of a client. It is called where requests are made, and must not block.
pub trait Observer: Debug + Send + Sync {
    /// A request is about to be sent to an origin. What is given back hears of the rest, and is dropped when the answer has ended, or
    /// nobody reads on.
    fn begin(&self, lane: &Lane) -> Box<dyn Exchange>;
}

/// Hears of one request and its answer.
pub trait Exchange: Send + Sync {
    /// The head of the answer came after this time; without a status, nothing came that could be read.
    fn answered(&mut self, status: Option<u16>, after: Duration);

    /// So many bytes of the body came.
    fn received(&mut self, bytes: u64);
}
