//! A server with a few routes, and clients that speak to it.

mod ends;
mod shares;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::routing::get;
use futures::{StreamExt as _, stream};
use hyper::Request;
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;

/// Counts those that were refused.
#[derive(Clone, Default)]
struct Unseen(Arc<AtomicUsize>);

impl ConnectionEvents for Unseen {
    type Open = ();

    fn opened(&self) {}

    fn full(&self) {}

    fn refused(&self, _: IpAddr) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn prepare(&self, _: IpAddr, _: &mut Request<Incoming>) {}
}

/// More than the buffers of both kernels take.
const LARGE: usize = 64 * 1024 * 1024;
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

async fn start(head_time: Duration) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    start_with(head_time, 100).await
}

async fn start_with(head_time: Duration, most: usize) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    start_of(ConnectionLimits { most, head_time, ..limits() }, Unseen::default()).await
}

fn limits() -> ConnectionLimits {
    ConnectionLimits {
        most: 100,
        per_client: None,
        proxies: Arc::default(),
        head_time: Duration::from_secs(3_600),
        stall_time: Some(Duration::from_secs(1)),
    }
}

async fn start_of(
    limits: ConnectionLimits,
    events: Unseen,
) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let large = get(async || vec![0; LARGE]);
    let endless = get(async || {
        let begin = stream::once(async { Ok::<_, Infallible>("begin") });
        Body::from_stream(begin.chain(stream::pending()))
    });
    let router = Router::new().route("/", get(async || "here"));
    let router = router.route("/large", large).route("/endless", endless);
    let serving = serve(listener, router, limits, events, stop.clone());
    (address, stop, tokio::spawn(serving))
}

async fn connect(address: SocketAddr, said: &[u8]) -> TcpStream {
    let mut line = TcpStream::connect(address).await.unwrap();
    line.write_all(said).await.unwrap();
    line
}

/// Reads until the server closes the connection.
async fn rest(line: &mut TcpStream) -> String {
    let mut text = String::new();
    // The server may reset the connection over data that it did not read.
    let _ = line.read_to_string(&mut text).await;
    text
}
