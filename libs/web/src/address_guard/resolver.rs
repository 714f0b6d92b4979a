//! Names, looked up where it is decided which of their addresses may be reached.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::{Guard, Refused};

/// Looks names up and leaves out what may not be reached. The connection is made to what is left, without another
/// look-up: a name that changes its address in between gains nothing.
#[derive(Debug, Clone)]
pub(crate) struct Resolver(Arc<Guard>);

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    /// It has no address, or nobody could be asked.
    #[error("the name was not found")]
    NotFound(#[from] io::Error),
    /// None of its addresses may be reached.
    #[error("its addresses are refused")]
    Refused(#[from] Refused),
}

impl Resolver {
    /// What `guard` lets pass.
    pub(crate) fn new(guard: Arc<Guard>) -> Self {
        Self(guard)
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<Self::Response, Unresolved>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            // The port is the URL's, which the HTTP library puts in.
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(guard.reachable(name.as_str(), addresses)?.into_iter())
        })
    }
}
