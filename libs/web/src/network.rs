//! The network: connections, their pool, and what is spoken on them. Redirects, attempts, time limits of answers and credentials are not
//! its business: each request that goes out here was counted, and made within its origin's budget.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls_platform_verifier::Verifier;

use crate::WebConfig;
use crate::address_guard::{Guard, Resolver};
use crate::connector::Connector;

/// A connection that nobody has used for so long is closed.
const IDLE: Duration = Duration::from_secs(90);
/// A silent connection is asked after so long whether the other side is there, and as long after each question.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// Questions without an answer until the connection is given up.
const PROBES: u32 = 3;
/// What was sent and is not acknowledged for so long breaks the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Sends requests over connections that it keeps for the next ones. A request that meets a kept connection which the server has just
/// closed goes out on another one only if nothing of it was sent.
pub(crate) type Network = Client<Connector, Full<Bytes>>;

/// A network of no connections yet, to the addresses that `guard` lets pass.
///
/// # Errors
/// When this machine has no roots of trust.
pub(crate) fn new(config: &WebConfig, guard: &Arc<Guard>) -> Result<Network, rustls::Error> {
    let mut tcp = HttpConnector::new_with_resolver(Resolver::new(Arc::clone(guard)));
    // TLS is spoken on top of it.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Shared by the addresses of a name, so that the second one is tried before all the time has passed.
    tcp.set_connect_timeout(Some(config.connect_timeout));
    tcp.set_keepalive(Some(PROBE_AFTER));
    tcp.set_keepalive_interval(Some(PROBE_AFTER));
    tcp.set_keepalive_retries(Some(PROBES));
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    let connector = Connector::new(HttpsConnector::from((tcp, tls()?)), config.connect_timeout);
    Ok(Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(config.per_origin)
        .build(connector))
}

/// TLS 1.2 and 1.3 with the roots that this machine trusts, offering HTTP/2 first.
fn tls() -> Result<ClientConfig, rustls::Error> {
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
