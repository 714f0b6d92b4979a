//! The network: connections, their pool, and their protocols. Redirects, attempts, time limits of responses
//! and credentials are handled elsewhere: a request that arrives here is already counted and within its
//! origin's budget.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls_platform_verifier::Verifier;

use crate::WebConfig;
use crate::address_guard::{Guard, SystemNames};
use crate::connector::Connector;

/// An idle connection is closed after this time.
const IDLE: Duration = Duration::from_secs(90);
/// The initial HTTP/2 window (RFC 9113, 6.9.2), and the largest one.
const SMALLEST_WINDOW: u32 = 65_535;
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// Sends requests over pooled connections. If the server has just closed a pooled connection, the request is
/// sent on another one, but only if no byte of it was sent.
pub(crate) type Network = Client<Connector, Full<Bytes>>;

/// A network without connections yet, to the addresses that `guard` allows.
pub(crate) fn new(config: &WebConfig, guard: &Arc<Guard>, tls: &Arc<ClientConfig>) -> Network {
    let connector =
        Connector::new(Arc::new(SystemNames), Arc::clone(guard), Arc::clone(tls), config.connect_timeout);
    let window = config.http2_window.clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
    Client::builder(TokioExecutor::new())
        .http2_initial_stream_window_size(window)
        .http2_initial_connection_window_size(window)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(config.per_origin)
        .build(connector)
}

/// TLS 1.2 and 1.3 with the root certificates of this machine, offering HTTP/2 first.
///
/// # Errors
/// When this machine has no root certificates.
pub(crate) fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider =
        CryptoProvider::get_default().map_or_else(|| Arc::new(aws_lc_rs::default_provider()), Arc::clone);
    let verifier = Verifier::new(Arc::clone(&provider))?;
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}
