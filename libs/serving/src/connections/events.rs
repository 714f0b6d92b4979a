//! What a server is told of its connections.

use std::net::IpAddr;

use hyper::Request;
use hyper::body::Incoming;

/// What a server does with each of its connections and requests.
pub trait ConnectionEvents: Clone + Send + Sync + 'static {
    /// Kept while a connection is open.
    type Open: Send + 'static;

    /// A connection was accepted.
    fn opened(&self) -> Self::Open;

    /// All connections are in use, and another one may wait.
    fn full(&self);

    /// A connection or request of this client was refused, since it has as many as it may have.
    fn refused(&self, client: IpAddr);

    /// A request came from this address.
    fn prepare(&self, peer: IpAddr, request: &mut Request<Incoming>);
}
