//! Opens connections: name, TCP and TLS within one time limit.

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

/// Keep-alive: an idle connection is probed after this time, and again after each probe.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// Unanswered probes until the connection is closed.
const PROBES: u32 = 3;
/// The longest time that sent bytes may stay unacknowledged; then the connection is closed.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections. The pool clones it for each request, so a clone is one reference count.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Parts>);

struct Parts {
    names: Arc<dyn Names>,
    guard: Arc<Guard>,
    tls: Arc<ClientConfig>,
    within: Duration,
}

/// The time limit for a connection was exceeded.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(crate) struct NotInTime(Duration);

impl Connector {
    /// Connects to the addresses that `names` returns and `guard` allows, within `within`.
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
    /// A connector to one port: the port decides which addresses are allowed.
    fn to_port(&self, port: u16) -> HttpsConnector<HttpConnector<Resolver>> {
        let resolver = Resolver::new(Arc::clone(&self.names), Arc::clone(&self.guard), port);
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        // TLS is added on top of it.
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Divided among the addresses of a name, so that the second one is tried before the time has passed.
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
        let connecting = self.0.to_port(port).call(to);
        let within = self.0.within;
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(connected) => connected,
                Err(_elapsed) => Err(NotInTime(within).into()),
            }
        })
    }
}
