//! The client of the bare loop. Its windows, idle connections and TLS sessions are those of Thresher's client,
//! so that a difference between the two is one of their work.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The HTTP/2 window of a response.
const RESPONSE_WINDOW: u32 = 16 << 20;
/// The largest window of HTTP/2.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// An idle connection is closed after this time.
const IDLE: Duration = Duration::from_secs(90);
/// Servers whose TLS sessions are kept.
const SESSIONS: usize = 1_024;

/// The client of the bare loop.
pub(super) type BareClient = Client<HttpsConnector<HttpConnector>, String>;

/// A client for so many open requests, over TLS too if there is a certificate to trust.
///
/// # Errors
/// When the certificate cannot be read.
pub(super) fn client(
    at_once: NonZeroUsize,
    cacert: Option<&Path>,
    http2: bool,
) -> anyhow::Result<BareClient> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls(cacert)?).https_or_http().enable_http1();
    let connector =
        if http2 { connector.enable_http2().wrap_connector(tcp) } else { connector.wrap_connector(tcp) };
    Ok(pool(at_once.get()).build(connector))
}

fn tls(cacert: Option<&Path>) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = cacert {
        let certificate = CertificateDer::from_pem_file(file);
        roots.add(certificate.with_context(|| format!("cannot read {}", file.display()))?)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(tls)
}

/// Connections for so many open requests.
fn pool(at_once: usize) -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .http2_initial_stream_window_size(RESPONSE_WINDOW)
        .http2_initial_connection_window_size(connection_window(at_once))
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(at_once);
    builder
}

/// The window of a connection: room for the responses of all open requests.
fn connection_window(at_once: usize) -> u32 {
    let responses = u32::try_from(at_once).unwrap_or(u32::MAX);
    RESPONSE_WINDOW.saturating_mul(responses).min(LARGEST_WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_a_window_for_each_open_request_as_threshers_has() {
        assert_eq!(connection_window(1), RESPONSE_WINDOW);
        assert_eq!(connection_window(16), 256 << 20);
        assert_eq!(connection_window(1_000), LARGEST_WINDOW);
    }
}
