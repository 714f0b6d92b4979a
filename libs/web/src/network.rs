//! The network: connections, their pool, and their protocols. Redirects, attempts, time limits of responses
//! and credentials are handled elsewhere: a request that arrives here is already counted and within its
//! origin's budget.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls_platform_verifier::Verifier;

use crate::address_guard::{CachedNames, Guard, Names, SystemNames};
use crate::body_chunks::BodyChunks;
use crate::connector::Connector;
use crate::h2_connections::{H2Connections, MOST_CONNECTIONS, StreamSlot};
use crate::known_origins::KnownOrigins;
use crate::stream_limit::StreamLimit;
use crate::{WebConfig, WebError, classify};

/// An idle connection is closed after this time.
const IDLE: Duration = Duration::from_secs(90);
/// An HTTP/2 connection with requests that brings nothing for so long is sent a PING (RFC 9113, 6.7). A server process
/// may hang while its machine acknowledges what is sent: each request would wait on that connection in vain.
const QUIET: Duration = Duration::from_secs(20);
/// Without an answer in this time, the connection is closed. Both times together are shorter than the wait for a
/// response head. The answer may be behind bytes on a slow network, so it has far more than a round trip.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// Servers whose TLS sessions are kept: a further connection needs no certificate, and by TLS 1.2 a round trip less.
const SESSIONS: usize = 1_024;
/// The initial HTTP/2 window (RFC 9113, 6.9.2), and the largest one.
const SMALLEST_WINDOW: u32 = 65_535;
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// The names of protocols in TLS (RFC 7301).
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Sends requests over pooled connections. If the server has just closed a pooled connection, the request is
/// sent on another one, but only if no byte of it was sent.
type Network = Client<Connector, Full<Bytes>>;

/// What all connections of a client share: TLS with its sessions, and names with their addresses.
pub(crate) struct Underlay {
    names: Arc<dyn Names>,
    tls: Arc<ClientConfig>,
    /// The same, offering HTTP/1.1 only.
    tls_apart: Arc<ClientConfig>,
    /// The same, offering HTTP/2 only.
    tls_further: Arc<ClientConfig>,
}

/// The pools of connections to a set of addresses.
pub(crate) struct Networks {
    /// Requests that share a connection where the server speaks HTTP/2.
    shared: Network,
    /// One further HTTP/2 connection each, for servers that take fewer requests on one than there may be.
    further: [Network; MOST_CONNECTIONS - 1],
    h2_connections: H2Connections,
    /// Requests that each have a connection of their own.
    apart: Network,
    /// Origins that speak no HTTP/1.1: their requests share connections.
    only_h2: KnownOrigins,
    /// Origins that speak no HTTP/2: each request has a connection of its own anyway. All are of one pool, so that
    /// those that are open are used.
    only_h1: KnownOrigins,
}

impl Underlay {
    /// # Errors
    /// When this machine has no root certificates.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let tls = tls()?;
        let only = |protocol: &[u8]| {
            let mut tls = tls.clone();
            tls.alpn_protocols = vec![protocol.to_vec()];
            Arc::new(tls)
        };
        let (tls_apart, tls_further) = (only(HTTP1), only(HTTP2));
        let names = Arc::new(CachedNames::new(Arc::new(SystemNames)));
        Ok(Self { names, tls: Arc::new(tls), tls_apart, tls_further })
    }

    /// Networks without connections yet, to the addresses that `guard` allows.
    pub(crate) fn networks(&self, config: &WebConfig, guard: &Arc<Guard>) -> Networks {
        let network = |tls, only_http2| new(config, &self.names, guard, tls, only_http2);
        Networks {
            shared: network(&self.tls, false),
            further: std::array::from_fn(|_| network(&self.tls_further, true)),
            h2_connections: H2Connections::default(),
            apart: network(&self.tls_apart, false),
            only_h2: KnownOrigins::default(),
            only_h1: KnownOrigins::default(),
        }
    }
}

impl Networks {
    /// Sends a request, and waits for its response head. `apart` gives it a connection of its own, where the server
    /// speaks HTTP/1.1.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn request(
        &self,
        request: Request<Full<Bytes>>,
        apart: bool,
    ) -> Result<Response<BodyChunks>, WebError> {
        let uri = request.uri().clone();
        // Without TLS all requests are of HTTP/1.1.
        let may_choose = uri.scheme() == Some(&Scheme::HTTPS);
        if apart && may_choose && !self.only_h1.has(&uri) && !self.only_h2.has(&uri) {
            match self.apart.request(request.clone()).await {
                Ok(answer) => return Ok(answer.map(|incoming| BodyChunks::network(incoming, None))),
                Err(error) if classify::speaks_no_offered_protocol(&error) => self.only_h2.note(&uri),
                Err(error) => return Err(classify::before_answer(&error)),
            }
        }
        let mut slot = self.h2_connections.enter(&uri);
        if let Some(further) = slot.take_if(|slot| slot.number() > 0) {
            match self.further[further.number() - 1].request(request.clone()).await {
                Ok(answer) => return Ok(answered(answer, Some(further))),
                // No byte of it was sent. The first connection finds out what the server speaks.
                Err(error) if error.is_connect() => further.note_refused(),
                Err(error) => return Err(classify::before_answer(&error)),
            }
            drop(further);
            slot = self.h2_connections.enter(&uri);
        }
        let answer = self.shared.request(request).await.map_err(|error| classify::before_answer(&error))?;
        if may_choose && answer.version() < Version::HTTP_2 && !self.only_h1.has(&uri) {
            self.only_h1.note(&uri);
        }
        Ok(answered(answer, slot))
    }
}

/// A response with the stream that it takes until its end.
fn answered(answer: Response<Incoming>, slot: Option<StreamSlot>) -> Response<BodyChunks> {
    if let Some(slot) = &slot {
        slot.note_answer(answer.extensions().get::<StreamLimit>().and_then(StreamLimit::stated));
    }
    answer.map(|incoming| BodyChunks::network(incoming, slot))
}

/// A network without connections yet, to the addresses of `names` that `guard` allows.
fn new(
    config: &WebConfig,
    names: &Arc<dyn Names>,
    guard: &Arc<Guard>,
    tls: &Arc<ClientConfig>,
    only_http2: bool,
) -> Network {
    let connector =
        Connector::new(Arc::clone(names), Arc::clone(guard), Arc::clone(tls), config.connect_timeout);
    let window = config.http2_window.clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
    Client::builder(TokioExecutor::new())
        .http2_only(only_http2)
        // Until its settings have come: such a server takes few, and refuses those beyond.
        .http2_initial_max_send_streams(only_http2.then_some(1))
        .http2_initial_stream_window_size(window)
        .http2_initial_connection_window_size(connection_window(window, config.per_origin))
        .http2_keep_alive_interval(QUIET)
        .http2_keep_alive_timeout(SIGN_OF_LIFE)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(config.per_origin)
        .build(connector)
}

/// The window of a connection with so many responses: room for all that each may send. With less, a response that is
/// read slowly would stop all others, and one of them may be what its reader waits for.
fn connection_window(window: u32, responses: usize) -> u32 {
    let responses = u32::try_from(responses).unwrap_or(u32::MAX);
    window.saturating_mul(responses.max(1)).min(LARGEST_WINDOW)
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
    tls.resumption = Resumption::in_memory_sessions(SESSIONS);
    tls.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_a_connection_has_room_for_all_its_responses_within_the_protocols_limit() {
        assert_eq!(connection_window(SMALLEST_WINDOW, 1), SMALLEST_WINDOW);
        assert_eq!(connection_window(16 << 20, 4), 64 << 20);
        assert_eq!(connection_window(16 << 20, 1_000), LARGEST_WINDOW);
        assert_eq!(connection_window(16 << 20, usize::MAX), LARGEST_WINDOW);
    }
}
