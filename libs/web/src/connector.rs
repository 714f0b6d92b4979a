//! How connections are made: name, TCP and TLS within one time limit.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::address_guard::{Guard, Names, Resolver};

/// A silent connection is asked after so long whether the other side is there, and as long after each question.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// Questions without an answer until the connection is given up.
const PROBES: u32 = 3;
/// What was sent and is not acknowledged for so long breaks the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Makes connections. The pool clones it for each request, which is one count.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Parts>);

struct Parts {
    names: Arc<dyn Names>,
    guard: Arc<Guard>,
    tls: Arc<ClientConfig>,
    within: Duration,
}

/// The time for a connection has passed.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(crate) struct NotInTime(Duration);

impl Connector {
    /// Connects to the addresses that `names` tells and `guard` lets pass, for at most `within`.
    pub(crate) fn new(
        names: Arc<dyn Names>,
        guard: Arc<Guard>,
        tls: Arc<ClientConfig>,
        within: Duration,
    ) -> Self {
        Self(Arc::new(Parts { names, guard, tls, within }))
    }
}

impl Parts {
    /// What connects to a port: whether an address may be reached depends on it.
    fn to_port(&self, port: u16) -> HttpsConnector<HttpConnector<Resolver>> {
        let resolver = Resolver::new(Arc::clone(&self.names), Arc::clone(&self.guard), port);
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        // TLS is spoken on top of it.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Shared by the addresses of a name, so that the second one is tried before all the time has passed.
        tcp.set_connect_timeout(Some(self.within));
        tcp.set_keepalive(Some(PROBE_AFTER));
        tcp.set_keepalive_interval(Some(PROBE_AFTER));
        tcp.set_keepalive_retries(Some(PROBES));
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        HttpsConnector::from((tcp, Arc::clone(&self.tls)))
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
        let usual = if to.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let port = to.port_u16().unwrap_or(usual);
        let (connecting, within) = (self.0.to_port(port).call(to), self.0.within);
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected,
                Err(_elapsed) => Err(NotInTime(within).into()),
            }
        })
    }
}
