//! The connections to the gateway's port: each is served by a task of its own, and none may take for ever to say what it wants.

use std::io::{Error, ErrorKind};
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The pause after no connection could be taken, as when this process has too many files open.
const BREATH: Duration = Duration::from_millis(500);

/// Serves all who connect until `stop`, and then to the end what is under way. Whoever has not sent the head of a request after `head_time`,
/// since it connected or since its last answer, is cut off.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    head_time: Duration,
    stop: CancellationToken,
) {
    let open = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => drop(open.spawn(talk(stream, router.clone(), head_time, stop.clone()))),
            // It went away before anybody spoke to it.
            Err(error) if is_its_own(&error) => {}
            Err(error) => {
                tracing::error!(%error, "nobody can connect to the API now");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

async fn talk(stream: TcpStream, router: Router, head_time: Duration, stop: CancellationToken) {
    let mut server = http1::Builder::new();
    // Without a timer it would know no time at all.
    server.timer(TokioTimer::new()).header_read_timeout(head_time);
    let mut talking = pin!(server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    let ended = tokio::select! {
        ended = talking.as_mut() => ended,
        () = stop.cancelled() => {
            talking.as_mut().graceful_shutdown();
            talking.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

fn is_its_own(error: &Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinHandle;

    use super::*;

    const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

    async fn start(head_time: Duration) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router = Router::new().route("/", get(async || "here"));
        (address, stop.clone(), tokio::spawn(serve(listener, router, head_time, stop)))
    }

    async fn connect(address: SocketAddr, said: &[u8]) -> TcpStream {
        let mut line = TcpStream::connect(address).await.unwrap();
        line.write_all(said).await.unwrap();
        line
    }

    /// All that comes until the other side hangs up.
    async fn rest(line: &mut TcpStream) -> String {
        let mut text = String::new();
        // It may hang up on what was not read.
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
