//! HTTP/2 over TLS: requests share a connection, and places at an origin are requests all the same; and TLS sessions.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::Response;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::HandshakeKind;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use web::{Client, ErrorKind, GetRequest, Phase, WebConfig};

use crate::https::{ASK, Seen, Server, asked_by_who_trusts, tls};
use crate::support::{client, config};

const MIB: u64 = 1024 * 1024;

/// What a server has seen.
#[derive(Debug)]
struct Counted {
    connections: AtomicUsize,
    /// Connections that were closed at once.
    refused: AtomicUsize,
    /// Full handshakes: others resumed a session.
    full: AtomicUsize,
    /// Connections with requests.
    used: AtomicUsize,
    /// The most open requests on one connection.
    most_on_one: AtomicUsize,
    open: AtomicUsize,
    most: watch::Sender<usize>,
    answered: AtomicUsize,
    /// Bytes of `/large` that were taken from it.
    sent: Arc<AtomicU64>,
}

/// A body of this many zeros, which counts how many were taken.
struct Large {
    left: u64,
    sent: Arc<AtomicU64>,
}

impl Body for Large {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.min(16 * 1024);
        self.left -= piece;
        self.sent.fetch_add(piece, SeqCst);
        Poll::Ready((piece > 0).then(|| Ok(Frame::data(vec![0; piece as usize].into()))))
    }
}

impl Counted {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            connections: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            full: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            most_on_one: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most: watch::Sender::new(0),
            answered: AtomicUsize::new(0),
            sent: Arc::default(),
        })
    }

    /// Answers a request. Those to `/together` wait until so many are open.
    async fn answer(
        self: Arc<Self>,
        asked: http::Request<Incoming>,
        together: usize,
    ) -> Result<Response<Either<Full<Bytes>, Large>>, Infallible> {
        let open = self.open.fetch_add(1, SeqCst) + 1;
        self.most.send_modify(|most| *most = open.max(*most));
        if asked.uri().path() == "/together" {
            let _ = self.most.subscribe().wait_for(|most| *most >= together).await;
        }
        let body = match asked.uri().path() {
            "/large" => Either::Right(Large { left: 64 * MIB, sent: Arc::clone(&self.sent) }),
            "/sent" => Either::Left(Full::from(self.sent.load(SeqCst).to_string())),
            _ => Either::Left(Full::from("abc")),
        };
        self.answered.fetch_add(1, SeqCst);
        self.open.fetch_sub(1, SeqCst);
        Ok(Response::new(body))
    }
}

/// Serves over TLS. `streams` is the limit that the server states; HTTP/1.1 connections carry one request each.
async fn serve(protocols: &[&str], streams: Option<u32>, together: usize) -> (Server, Arc<Counted>) {
    let (tls, certificate) = tls(protocols);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let counted = Counted::new();
    tokio::spawn(accept(listener, tls, streams, together, Arc::clone(&counted), usize::MAX));
    (Server { url, certificate, seen: Seen::default() }, counted)
}

/// Accepts connections; those beyond `most` are closed at once.
async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    streams: Option<u32>,
    together: usize,
    counted: Arc<Counted>,
    most: usize,
) {
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        if counted.connections.load(SeqCst) >= most {
            counted.refused.fetch_add(1, SeqCst);
            continue;
        }
        let Ok(stream) = tls.accept(tcp).await else { continue };
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let is_full = stream.get_ref().1.handshake_kind() != Some(HandshakeKind::Resumed);
        counted.connections.fetch_add(1, SeqCst);
        counted.full.fetch_add(usize::from(is_full), SeqCst);
        let counted = Arc::clone(&counted);
        let (begun, here) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let answer = service_fn(move |asked| {
            counted.used.fetch_add(usize::from(begun.fetch_add(1, SeqCst) == 0), SeqCst);
            let open = here.fetch_add(1, SeqCst) + 1;
            counted.most_on_one.fetch_max(open, SeqCst);
            let (counted, here) = (Arc::clone(&counted), Arc::clone(&here));
            async move {
                let answer = counted.answer(asked, together).await;
                here.fetch_sub(1, SeqCst);
                answer
            }
        });
        let io = TokioIo::new(stream);
        tokio::spawn(async move {
            if is_h2 {
                let mut server = http2::Builder::new(TokioExecutor::new());
                server.max_concurrent_streams(streams).serve_connection(io, answer).await
            } else {
                http1::Builder::new().keep_alive(false).serve_connection(io, answer).await
            }
        });
    }
}

/// Runs this very test in a process that trusts the server.
async fn by_who_trusts(server: &Server, test: &str) {
    asked_by_who_trusts(server, &format!("http2::{test}")).await;
}

async fn get(client: &Client, url: String) -> Bytes {
    let mut response = client.get(GetRequest::new(url.parse().unwrap())).await.unwrap();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.unwrap() {
        body.extend_from_slice(&piece);
    }
    body.into()
}

fn with_places(per_origin: usize) -> Client {
    Client::new(WebConfig { per_origin, ..config() }).unwrap()
}

#[tokio::test]
async fn requests_on_one_connection_keep_to_the_places_at_their_origin() {
    let test = "requests_on_one_connection_keep_to_the_places_at_their_origin";
    if let Ok(url) = std::env::var(ASK) {
        let client = with_places(3);
        get(&client, format!("{url}/first")).await;
        join_all((0..12).map(|_| get(&client, format!("{url}/together")))).await;
        return;
    }
    let (server, counted) = serve(&["h2"], None, 3).await;
    by_who_trusts(&server, test).await;
    assert_eq!((*counted.most.borrow(), counted.answered.load(SeqCst)), (3, 13));
    assert_eq!(counted.connections.load(SeqCst), 1);
}

/// The most requests that a server with two streams on a connection has open at a time, and the connections with
/// requests, when there are so many places and twice as many requests.
async fn spread(places: usize, together: usize, test: &str) -> Option<(usize, usize)> {
    if let Ok(url) = std::env::var(ASK) {
        let client = with_places(places);
        get(&client, format!("{url}/first")).await;
        join_all((0..2 * places).map(|_| get(&client, format!("{url}/together")))).await;
        return None;
    }
    let (server, counted) = serve(&["h2", "http/1.1"], Some(2), together).await;
    by_who_trusts(&server, test).await;
    assert_eq!(counted.answered.load(SeqCst), 1 + 2 * places);
    assert_eq!(counted.most_on_one.load(SeqCst), 2);
    Some((*counted.most.borrow(), counted.used.load(SeqCst)))
}

#[tokio::test]
async fn a_server_that_takes_fewer_streams_than_there_are_places_gets_further_connections() {
    let test = "a_server_that_takes_fewer_streams_than_there_are_places_gets_further_connections";
    let Some(seen) = spread(6, 6, test).await else { return };
    assert_eq!(seen, (6, 3));
}

#[tokio::test]
async fn a_server_that_takes_few_streams_gets_four_connections_at_most() {
    let test = "a_server_that_takes_few_streams_gets_four_connections_at_most";
    let Some(seen) = spread(20, 8, test).await else { return };
    assert_eq!(seen, (8, 4));
}

#[tokio::test]
async fn unread_responses_stop_no_other_on_their_connection() {
    let test = "unread_responses_stop_no_other_on_their_connection";
    if let Ok(url) = std::env::var(ASK) {
        let client = Client::new(WebConfig { stall_timeout: Duration::from_secs(5), ..config() }).unwrap();
        let large = || client.get(GetRequest::new(format!("{url}/large").parse().unwrap()));
        let unread = [large().await.unwrap(), large().await.unwrap()];
        // The server sends as much as the windows allow, and stops.
        let window = u64::from(WebConfig::default().http2_window);
        let mut sent = 0;
        while sent < 2 * window {
            let told = get(&client, format!("{url}/sent")).await;
            sent = std::str::from_utf8(&told).unwrap().parse().unwrap();
        }
        for _ in 0..50 {
            assert_eq!(get(&client, format!("{url}/small")).await, "abc");
        }
        drop(unread);
        return;
    }
    let (server, counted) = serve(&["h2"], None, 1).await;
    by_who_trusts(&server, test).await;
    assert_eq!(counted.connections.load(SeqCst), 1);
    let sent = counted.sent.load(SeqCst);
    assert!(sent < 40 * MIB, "the window of each response holds: {sent} bytes were sent");
}

#[tokio::test]
async fn a_further_connection_resumes_the_tls_session_of_the_first() {
    let test = "a_further_connection_resumes_the_tls_session_of_the_first";
    if let Ok(url) = std::env::var(ASK) {
        let client = client();
        for _ in 0..4 {
            assert_eq!(get(&client, format!("{url}/a")).await, "abc");
        }
        // So do connections for a Source with terms of its own, which may reach other networks.
        let terms =
            web::Terms { allow_networks: vec!["192.0.2.0/24".parse().unwrap()], ..web::Terms::default() };
        assert_eq!(get(&client.on(terms).unwrap(), format!("{url}/a")).await, "abc");
        return;
    }
    let (server, counted) = serve(&["http/1.1"], None, 1).await;
    by_who_trusts(&server, test).await;
    assert_eq!((counted.connections.load(SeqCst), counted.full.load(SeqCst)), (5, 1));
}

#[tokio::test]
async fn requests_apart_have_connections_of_their_own_and_keep_to_the_places() {
    let test = "requests_apart_have_connections_of_their_own_and_keep_to_the_places";
    if let Ok(url) = std::env::var(ASK) {
        let client = with_places(2);
        get(&client, format!("{url}/first")).await;
        let apart = async || {
            let url = format!("{url}/together").parse().unwrap();
            let mut response = client.get(GetRequest { apart: true, ..GetRequest::new(url) }).await.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
        };
        join_all((0..6).map(|_| apart())).await;
        return;
    }
    let (server, counted) = serve(&["h2", "http/1.1"], None, 2).await;
    by_who_trusts(&server, test).await;
    assert_eq!((*counted.most.borrow(), counted.answered.load(SeqCst)), (2, 7));
    // HTTP/1.1 connections of this server carry one request each.
    assert_eq!(counted.connections.load(SeqCst), 7);
}

#[tokio::test]
async fn requests_of_http1_take_an_open_connection_whether_apart_or_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://localhost:{}/a", listener.local_addr().unwrap().port());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, SeqCst);
            let answer = service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("abc"))));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(tcp), answer));
        }
    });
    let client = with_places(2);
    for apart in [false, true, true, false] {
        let asked = GetRequest { apart, ..GetRequest::new(url.parse().unwrap()) };
        let mut response = client.get(asked).await.unwrap();
        while response.chunk().await.unwrap().is_some() {}
    }
    assert_eq!(connections.load(SeqCst), 1);
}

#[tokio::test]
async fn a_server_of_http2_alone_answers_requests_apart_over_a_shared_connection() {
    let test = "a_server_of_http2_alone_answers_requests_apart_over_a_shared_connection";
    if let Ok(url) = std::env::var(ASK) {
        let client = with_places(2);
        for _ in 0..3 {
            let url = format!("{url}/a").parse().unwrap();
            let mut response = client.get(GetRequest { apart: true, ..GetRequest::new(url) }).await.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
        }
        return;
    }
    let (server, counted) = serve(&["h2"], None, 1).await;
    by_who_trusts(&server, test).await;
    assert_eq!((counted.answered.load(SeqCst), counted.connections.load(SeqCst)), (3, 1));
}

#[tokio::test]
async fn where_a_further_connection_is_refused_requests_wait_for_the_first() {
    let test = "where_a_further_connection_is_refused_requests_wait_for_the_first";
    if let Ok(url) = std::env::var(ASK) {
        let client = with_places(3);
        get(&client, format!("{url}/first")).await;
        join_all((0..6).map(|_| get(&client, format!("{url}/a")))).await;
        return;
    }
    let (tls, certificate) = tls(&["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let counted = Counted::new();
    tokio::spawn(accept(listener, tls, Some(1), 1, Arc::clone(&counted), 1));
    by_who_trusts(&Server { url, certificate, seen: Seen::default() }, test).await;
    assert_eq!((counted.answered.load(SeqCst), counted.connections.load(SeqCst)), (7, 1));
    assert!(counted.refused.load(SeqCst) > 0, "a further one was tried");
}

/// Answers requests. Once `told` has a connection, the server reads nothing more of its first one, which stays open.
async fn serve_and_hang(listener: TcpListener, tls: TlsAcceptor, told: TcpListener) {
    let told = Arc::new(told);
    for number in 0.. {
        let (tcp, _) = listener.accept().await.unwrap();
        let Ok(stream) = tls.accept(tcp).await else { continue };
        let told = Arc::clone(&told);
        tokio::spawn(async move {
            let answer = service_fn(|_: http::Request<Incoming>| async {
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("abc")))
            });
            let server = http2::Builder::new(TokioExecutor::new());
            let mut connection = pin!(server.serve_connection(TokioIo::new(stream), answer));
            let hangs = async {
                if number > 0 {
                    std::future::pending::<()>().await;
                }
                drop(told.accept().await.unwrap());
            };
            tokio::select! {
                _ = connection.as_mut() => {}
                () = hangs => std::future::pending::<()>().await,
            }
        });
    }
}

#[tokio::test]
async fn a_connection_whose_server_hangs_is_left_for_a_new_one() {
    let test = "a_connection_whose_server_hangs_is_left_for_a_new_one";
    if let Ok(url) = std::env::var(ASK) {
        let client = client();
        assert_eq!(get(&client, url.clone()).await, "abc");
        let port: u16 = url.rsplit('/').next().unwrap().parse().unwrap();
        let mut telling = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert_eq!(telling.read(&mut [0]).await.unwrap(), 0, "it is closed once the server hangs");
        // Nothing comes over the network now: the clock runs to the next time limit.
        tokio::time::pause();
        let begun = Instant::now();
        let error = client.get(GetRequest::new(url.parse().unwrap())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout(Phase::FirstByte), "{error}");
        let took = begun.elapsed();
        assert!(took < WebConfig::default().first_byte_timeout, "noticed after {took:?}");
        tokio::time::resume();
        assert_eq!(get(&client, url).await, "abc");
        return;
    }
    let (tls, certificate) = tls(&["h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let told = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let url = format!("https://localhost:{}/{}", port(&listener), port(&told));
    tokio::spawn(serve_and_hang(listener, tls, told));
    by_who_trusts(&Server { url, certificate, seen: Seen::default() }, test).await;
}
