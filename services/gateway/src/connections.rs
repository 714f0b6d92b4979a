//! Connections to the gateway's port: counted, and each request with the address of its client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use model::Network;
use serving::connections::{self, ConnectionEvents};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::client::ClientAddress;
use crate::metrics::{GatewayMetrics, OpenConnection};

/// Limits of the connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    /// The most connections at a time.
    pub(crate) most: usize,
    /// The most of one client; none if it may have all.
    pub(crate) per_client: Option<usize>,
    /// The time limit for the head of a request.
    pub(crate) head_time: Duration,
    /// The proxies that may name their clients.
    pub(crate) proxies: Arc<[Network]>,
}

impl ConnectionLimits {
    /// The most memory of `most` connections, each with a body of at most `body_bytes`.
    pub(crate) fn memory_bytes(&self, body_bytes: usize) -> usize {
        self.shared().memory_bytes(body_bytes)
    }

    fn shared(&self) -> connections::ConnectionLimits {
        // The proxy before the gateway takes responses as fast as they come.
        connections::ConnectionLimits {
            most: self.most,
            per_client: self.per_client,
            proxies: Arc::clone(&self.proxies),
            head_time: self.head_time,
            stall_time: None,
        }
    }
}

/// Counts connections, and tells requests their client.
#[derive(Clone)]
struct Counted {
    metrics: GatewayMetrics,
    proxies: Arc<[Network]>,
}

impl ConnectionEvents for Counted {
    type Open = OpenConnection;

    fn opened(&self) -> OpenConnection {
        self.metrics.connection()
    }

    fn full(&self) {
        self.metrics.connections_full();
    }

    fn refused(&self, client: IpAddr) {
        tracing::debug!(client.address = %client, "a client has as many connections or requests as it may have");
        self.metrics.connection_refused();
    }

    fn prepare(&self, peer: IpAddr, request: &mut Request<Incoming>) {
        let client = ClientAddress::of(peer, request.headers(), &self.proxies);
        request.extensions_mut().insert(client);
    }
}

/// Serves connections until `stop`, then completes the requests under way.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    metrics: GatewayMetrics,
    stop: CancellationToken,
) {
    let counted = Counted { metrics, proxies: Arc::clone(&limits.proxies) };
    connections::serve(listener, router, limits.shared(), counted, stop).await;
}
