//! How connections are made: name, TCP and TLS within one time limit.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::address_guard::Resolver;

/// Makes connections. The pool clones it for each request, which is one count.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Parts>);

struct Parts {
    https: HttpsConnector<HttpConnector<Resolver>>,
    within: Duration,
}

/// The time for a connection has passed.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(crate) struct NotInTime(Duration);

impl Connector {
    /// Connects by `https`, for at most `within`.
    pub(crate) fn new(https: HttpsConnector<HttpConnector<Resolver>>, within: Duration) -> Self {
        Self(Arc::new(Parts { https, within }))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Parts { https, within } = &*self.0;
        let (connecting, within) = (https.clone().call(to), *within);
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected,
                Err(_elapsed) => Err(NotInTime(within).into()),
            }
        })
    }
}
