//! TLS, with a server of our own: certificates and protocols.

use std::convert::Infallible;
use std::process::Command;
use std::sync::{Arc, Mutex};

use http::{Response, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use web::{ErrorKind, GetRequest};

use crate::support::{client, request};

/// Tells a process of this very test that it is the client, and the URL to request.
pub(crate) const ASK: &str = "WEB_TEST_ASK";

/// What was received per connection: the HTTP version, and the host name.
pub(crate) type Seen = Arc<Mutex<Vec<(usize, Version, Option<String>)>>>;

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) certificate: String,
    pub(crate) seen: Seen,
}

/// TLS for `localhost` with these protocols, and its certificate.
pub(crate) fn tls(protocols: &[&str]) -> (TlsAcceptor, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(tls)), cert.pem())
}

/// Serves `localhost` with these protocols.
async fn server(protocols: &[&str]) -> Server {
    let (tls, certificate) = tls(protocols);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/a?b#c", listener.local_addr().unwrap().port());
    let seen = Seen::default();
    tokio::spawn(accept(listener, tls, Arc::clone(&seen)));
    Server { url, certificate, seen }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, seen: Seen) {
    for connection in 0.. {
        let (tcp, _) = listener.accept().await.unwrap();
        let Ok(stream) = tls.accept(tcp).await else { continue };
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let seen = Arc::clone(&seen);
        let answer = service_fn(move |asked: http::Request<Incoming>| {
            let host = asked.headers().get("host").map(|host| host.to_str().unwrap().to_owned());
            let named = host.or_else(|| asked.uri().authority().map(ToString::to_string));
            seen.lock().unwrap().push((connection, asked.version(), named));
            let whole = asked.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            async move { Ok::<_, Infallible>(Response::new(whole)) }
        });
        let io = TokioIo::new(stream);
        tokio::spawn(async move {
            if is_h2 {
                http2::Builder::new(TokioExecutor::new()).serve_connection(io, answer).await
            } else {
                http1::Builder::new().serve_connection(io, answer).await
            }
        });
    }
}

/// Sends two requests from a process that trusts the server's certificate: trusted certificates are read from
/// the environment.
pub(crate) async fn asked_by_who_trusts(server: &Server, test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, &server.certificate).unwrap();
    let mut asking = Command::new(std::env::current_exe().unwrap());
    asking.args(["--exact", test]).env("SSL_CERT_FILE", &roots).env(ASK, &server.url);
    let output = tokio::task::spawn_blocking(move || asking.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Whether this is the client process; if so, it has sent its requests.
async fn asks() -> bool {
    let Ok(url) = std::env::var(ASK) else { return false };
    let client = client();
    for _ in 0..2 {
        let mut response = client.get(GetRequest::new(url.parse().unwrap())).await.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "/a?b");
        assert_eq!(response.chunk().await.unwrap(), None);
    }
    true
}

async fn spoken(protocols: &[&str], test: &str) -> Option<Vec<(usize, Version, Option<String>)>> {
    if asks().await {
        return None;
    }
    let server = server(protocols).await;
    asked_by_who_trusts(&server, &format!("https::{test}")).await;
    let host = server.url.trim_start_matches("https://").split('/').next().map(str::to_owned);
    let seen = server.seen.lock().unwrap().clone();
    assert!(seen.iter().all(|(_, _, named)| *named == host), "{seen:?}");
    Some(seen)
}

#[tokio::test]
async fn http_2_is_spoken_where_the_server_offers_it_and_one_connection_is_enough() {
    let test = "http_2_is_spoken_where_the_server_offers_it_and_one_connection_is_enough";
    let Some(seen) = spoken(&["h2", "http/1.1"], test).await else { return };
    let spoken: Vec<_> = seen.iter().map(|(connection, version, _)| (*connection, *version)).collect();
    assert_eq!(spoken, [(0, Version::HTTP_2); 2]);
}

/// The windows of a connection and of one response, as a client announces them first.
async fn announced_windows(listener: TcpListener, tls: TlsAcceptor) -> (u32, u32) {
    let (tcp, _) = listener.accept().await.unwrap();
    let mut stream = tls.accept(tcp).await.unwrap();
    // RFC 9113, 3.4.
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    let mut connection = 65_535;
    let mut answer = 65_535;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).await.unwrap();
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        match head[3] {
            // SETTINGS: INITIAL_WINDOW_SIZE is 4.
            4 => {
                let windows = payload.chunks(6).filter(|setting| setting[..2] == [0, 4]);
                answer = windows.map(|setting| number(&setting[2..])).next_back().unwrap_or(answer);
            }
            // WINDOW_UPDATE of the connection.
            8 if head[5..] == [0; 4] => connection += number(&payload),
            // HEADERS: the request begins.
            1 => return (connection, answer),
            _ => {}
        }
    }
}

#[tokio::test]
async fn windows_of_http_2_are_as_large_as_is_configured_from_the_start() {
    let test = "https::windows_of_http_2_are_as_large_as_is_configured_from_the_start";
    if let Ok(url) = std::env::var(ASK) {
        // Nothing answers.
        assert!(client().get(GetRequest::new(url.parse().unwrap())).await.is_err());
        return;
    }
    let (tls, certificate) = tls(&["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/a", listener.local_addr().unwrap().port());
    let server = Server { url, certificate, seen: Seen::default() };
    let (windows, ()) = tokio::join!(announced_windows(listener, tls), asked_by_who_trusts(&server, test));
    let configured = web::WebConfig::default().http2_window;
    let at_a_time = u32::try_from(web::WebConfig::default().per_origin).unwrap();
    assert_eq!(windows, (configured * at_a_time, configured), "each response has room of its own");
    assert_eq!(configured, 16 * 1024 * 1024);
}

#[tokio::test]
async fn http_1_is_spoken_where_the_server_offers_nothing_else() {
    let test = "http_1_is_spoken_where_the_server_offers_nothing_else";
    let Some(seen) = spoken(&["http/1.1"], test).await else { return };
    let spoken: Vec<_> = seen.iter().map(|(connection, version, _)| (*connection, *version)).collect();
    assert_eq!(spoken, [(0, Version::HTTP_11); 2]);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_not_accepted() {
    let server = server(&["h2", "http/1.1"]).await;
    let error = client().get(request(&server.url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls { certificate: true }, "{error}");
    assert!(error.to_string().contains("(invalid peer certificate: "), "{error}");
    assert_eq!(server.seen.lock().unwrap().len(), 0);
}
