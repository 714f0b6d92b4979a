//! Connections to the port of a server. Their number is bounded, and that of each client. Each is served by its own task
//! with small buffers, and with a time limit for the head of each request.

use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use model::Network;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clients::{Clients, TooMany, holding, refusal};
use crate::stall::StallLimited;

/// The pause after an accept failed, for example because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// The longest head of a request, in bytes. Also the most that is buffered for writing before the client reads it.
pub const BUFFER_BYTES: usize = 32 * 1024;
/// Memory of a connection besides its buffers: its task, and the task of the request under way.
const TASK_BYTES: usize = 16 * 1024;

/// Limits of the connections.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// The most connections at a time. Further ones wait in the listen queue of the kernel, and take no memory of this
    /// process.
    pub most: usize,
    /// The most of one client; further ones are closed. None: as many as there are.
    pub per_client: Option<usize>,
    /// Reverse proxies before the server. They may have as many connections as there are: of each client that they name,
    /// so many requests are answered at a time.
    pub proxies: Arc<[Network]>,
    /// The time limit for the head of a request, since the connection was made or its last response was sent.
    pub head_time: Duration,
    /// How long a client may take no bytes of a response. None: as long as it likes, as behind a proxy.
    pub stall_time: Option<Duration>,
}

/// What a server does with each of its connections and requests.
pub trait ConnectionEvents: Clone + Send + Sync + 'static {
    /// Kept while a connection is open.
    type Open: Send + 'static;

    /// A connection was accepted.
    fn opened(&self) -> Self::Open;

    /// All connections are in use, and another one may wait.
    fn full(&self);

    /// A connection or request of this client was refused, since it has as many as it may have.
    fn refused(&self, client: IpAddr);

    /// A request came from this address.
    fn prepare(&self, peer: IpAddr, request: &mut Request<Incoming>);
}

impl ConnectionLimits {
    /// The most memory of `most` connections, each with a body of at most `body_bytes`.
    pub fn memory_bytes(&self, body_bytes: usize) -> usize {
        self.most * (2 * BUFFER_BYTES + TASK_BYTES + body_bytes)
    }
}

/// Serves connections until `stop`, then completes the requests under way.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    events: impl ConnectionEvents,
    stop: CancellationToken,
) {
    let open = TaskTracker::new();
    let permits = Arc::new(Semaphore::new(limits.most));
    let clients = Clients::new(limits.per_client, Arc::clone(&limits.proxies));
    while let Some(permit) = permit(&permits, &limits, &events, &stop).await {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let place = match clients.connection(peer.ip()) {
                    Ok(place) => place,
                    Err(TooMany(client)) => {
                        events.refused(client);
                        continue;
                    }
                };
                let events = events.clone();
                let counted = events.opened();
                let (router, clients, limits) = (router.clone(), clients.clone(), limits.clone());
                let serving =
                    serve_connection(stream, peer.ip(), router, clients, limits, events, stop.clone());
                drop(open.spawn(async move {
                    serving.await;
                    drop((permit, place, counted));
                }));
            }
            // The client hung up before the accept.
            Err(error) if is_of_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted now");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Waits for a permit for one more connection. None when the service is to stop.
async fn permit(
    permits: &Arc<Semaphore>,
    limits: &ConnectionLimits,
    events: &impl ConnectionEvents,
    stop: &CancellationToken,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Some(permit);
    }
    events.full();
    tracing::debug!(connections = limits.most, "all connections are open: the next one waits until one ends");
    tokio::select! {
        permit = Arc::clone(permits).acquire_owned() => permit.ok(),
        () = stop.cancelled() => None,
    }
}

/// Serves the requests of one connection.
async fn serve_connection(
    stream: TcpStream,
    peer: IpAddr,
    router: Router,
    clients: Clients,
    limits: ConnectionLimits,
    events: impl ConnectionEvents,
    stop: CancellationToken,
) {
    let routes = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        let place = clients.request(peer, request.headers());
        events.prepare(peer, &mut request);
        let answer = match &place {
            Ok(_) => Some(routes.call(request)),
            Err(TooMany(client)) => {
                events.refused(*client);
                None
            }
        };
        async move {
            let Some(answer) = answer else { return Ok(refusal()) };
            let answer = answer.await?;
            Ok::<_, Infallible>(match place {
                Ok(Some(place)) => holding(answer, place),
                _ => answer,
            })
        }
    });
    // Without this, small responses wait 40 ms each for the acknowledgement of earlier data.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is slower than it could be");
    }
    let mut server = http1::Builder::new();
    // Without a timer, hyper enforces no time limits.
    server.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(BUFFER_BYTES);
    let stream = StallLimited::new(stream, limits.stall_time);
    let mut serving = pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

fn is_of_client(error: &Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::Body;
    use axum::routing::get;
    use futures::{StreamExt as _, stream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;
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

    #[tokio::test]
    async fn who_does_not_come_to_the_end_of_a_head_is_cut_off_and_others_are_served() {
        let (address, ..) = start(Duration::from_secs(1)).await;
        let mut silent = connect(address, b"").await;
        let mut slow = connect(address, b"GET / HTTP/1.1\r\nHost: ").await;
        let mut idle = connect(address, ASK).await;
        let mut honest = connect(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
        assert!(rest(&mut honest).await.ends_with("\r\n\r\nhere"));
        assert_eq!((rest(&mut silent).await, rest(&mut slow).await), (String::new(), String::new()));
        let answered = rest(&mut idle).await;
        assert!(answered.ends_with("\r\n\r\nhere"), "once, and then it said nothing more: {answered}");
    }

    #[tokio::test]
    async fn no_more_connections_than_allowed_are_open_and_the_next_is_served_when_one_ends() {
        let (address, ..) = start_with(Duration::from_secs(3_600), 2).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut line = connect(address, ASK).await;
            let mut answer = vec![0; 12];
            line.read_exact(&mut answer).await.unwrap();
            open.push(line);
        }
        let mut third = connect(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
        let mut byte = [0];
        let early = tokio::time::timeout(Duration::from_millis(200), third.read(&mut byte)).await;
        assert!(early.is_err(), "it waits: {early:?}");
        open.pop();
        assert!(rest(&mut third).await.ends_with("here"));
    }

    /// Connects from another address of this machine, and asks.
    async fn connect_from(from: [u8; 4], address: SocketAddr, said: &[u8]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
        let mut line = socket.connect(address).await.unwrap();
        // It may be closed already.
        let _ = line.write_all(said).await;
        line
    }

    #[tokio::test]
    async fn one_client_has_no_more_connections_than_its_share_and_others_are_served() {
        let refused = Unseen::default();
        let limits = ConnectionLimits { per_client: Some(2), ..limits() };
        let (address, ..) = start_of(limits, refused.clone()).await;
        let (greedy, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut line = connect_from(greedy, address, ASK).await;
            line.read_exact(&mut [0; 12]).await.unwrap();
            open.push(line);
        }
        let mut third = connect_from(greedy, address, ASK).await;
        assert_eq!(rest(&mut third).await, "", "it is closed");
        assert_eq!(refused.0.load(Ordering::Relaxed), 1);
        let last = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        assert!(rest(&mut connect_from(other, address, last).await).await.ends_with("here"));
        let mut first = open.remove(0);
        first.write_all(last).await.unwrap();
        rest(&mut first).await;
        served_again(async || rest(&mut connect_from(greedy, address, last).await).await).await;
    }

    /// Asks until it is answered: the server may notice the end of a connection a moment after the client.
    async fn served_again(ask: impl AsyncFn() -> String) {
        let asked = async { while !ask().await.ends_with("here") {} };
        tokio::time::timeout(Duration::from_secs(60), asked).await.expect("there is room again");
    }

    #[tokio::test]
    async fn a_proxy_has_connections_for_all_and_each_client_behind_it_its_share_of_requests() {
        let refused = Unseen::default();
        let proxies = ["127.0.0.0/8".parse().unwrap()].into();
        let limits = ConnectionLimits { per_client: Some(1), stall_time: None, proxies, ..limits() };
        let (address, ..) = start_of(limits, refused.clone()).await;
        let ask = async |path: &str, client: &str| {
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Forwarded-For: {client}\r\n\r\n"
            );
            connect(address, head.as_bytes()).await
        };
        let mut endless = ask("/endless", "203.0.113.1").await;
        endless.read_exact(&mut [0; 12]).await.unwrap();
        let answer = rest(&mut ask("/", "203.0.113.1").await).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 5"), "{answer}");
        assert_eq!(refused.0.load(Ordering::Relaxed), 1);
        for other in ["203.0.113.2", "not an address"] {
            assert!(rest(&mut ask("/", other).await).await.ends_with("here"), "{other}");
        }
        drop(endless);
        served_again(async || rest(&mut ask("/", "203.0.113.1").await).await).await;
    }

    #[tokio::test]
    async fn a_head_that_does_not_end_is_not_held() {
        let (address, ..) = start(Duration::from_secs(3_600)).await;
        let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(BUFFER_BYTES));
        let mut line = connect(address, head.as_bytes()).await;
        let answer = rest(&mut line).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }

    #[tokio::test]
    async fn who_stops_reading_is_cut_off_and_makes_room() {
        let (address, ..) = start_with(Duration::from_secs(3_600), 1).await;
        let mut stalled = connect(address, b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
        let mut next = connect(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
        assert!(rest(&mut next).await.ends_with("here"));
        let mut bytes = Vec::new();
        let _ = stalled.read_to_end(&mut bytes).await;
        assert!(bytes.len() < LARGE, "the response breaks off");
    }

    #[test]
    fn the_memory_of_connections_grows_with_their_number_alone() {
        assert_eq!(ConnectionLimits { most: 512, ..limits() }.memory_bytes(64 * 1024), 512 * 144 * 1024);
    }

    #[tokio::test]
    async fn a_stop_waits_for_what_is_under_way_and_for_nothing_else() {
        let (address, stop, serving) = start(Duration::from_secs(3_600)).await;
        let mut idle = connect(address, ASK).await;
        let mut answer = vec![0; 12];
        idle.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 200");
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(60), serving).await.expect("nobody is waited for").unwrap();
        assert!(rest(&mut idle).await.ends_with("here"));
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}
