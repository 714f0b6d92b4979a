//! A proxy before an S3 server that delays each response, as a network would, and counts requests by method and by the
//! part of the store that they are about.

mod passed;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use passed::Head;
pub(crate) use passed::{Passed, counted};

/// The longest head of a request.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// The most requests that are kept. A small Source needs some hundreds.
const MOST_PASSED: usize = 1_000_000;
/// Bytes passed on at a time.
const PIECE: usize = 64 << 10;

/// A proxy; it ends when dropped.
#[derive(Debug)]
pub(crate) struct StoreProxy {
    port: u16,
    passed: Arc<Mutex<Vec<Passed>>>,
    _serving: JoinSet<()>,
}

/// What the two directions of a connection share.
#[derive(Debug, Clone)]
struct Shared {
    passed: Arc<Mutex<Vec<Passed>>>,
    /// Whether a request was passed on whose response has not begun.
    is_awaited: Arc<AtomicBool>,
    delay: Duration,
}

impl StoreProxy {
    /// Starts a proxy before `server`, such as `http://127.0.0.1:8333`. Each response begins this much later.
    ///
    /// Requests pass unchanged, their `Host` included, because they are signed.
    pub(crate) async fn start(server: &str, delay: Duration) -> anyhow::Result<Self> {
        let server: SocketAddr = server
            .strip_prefix("http://")
            .and_then(|address| address.parse().ok())
            .with_context(|| format!("{server} is not the URL of a server at an IP address"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let passed = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        let all = Arc::clone(&passed);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let shared = Shared { passed: Arc::clone(&all), is_awaited: Arc::default(), delay };
                // Either side may go away at any time.
                connections.spawn(async move {
                    let _ = connect(client, server, shared).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { port, passed, _serving: serving })
    }

    /// `http://127.0.0.1:<port>`
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many requests have passed.
    pub(crate) fn count(&self) -> usize {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The requests that passed after the first `count`.
    pub(crate) fn after(&self, count: usize) -> Vec<Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).iter().skip(count).cloned().collect()
    }
}

async fn connect(client: TcpStream, server: SocketAddr, shared: Shared) -> std::io::Result<()> {
    let upstream = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    tokio::select! {
        ended = requests(from_client, to_server, &shared) => ended,
        ended = responses(from_server, to_client, &shared) => ended,
    }
}

/// Passes requests on, one by one, and notes each.
async fn requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    shared: &Shared,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4) else {
            if buffer.len() > MOST_HEAD_BYTES {
                return Err(std::io::Error::other("the head of a request is too long"));
            }
            if client.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let head = Head::parse(&String::from_utf8_lossy(&buffer[..end]))?;
        {
            let mut passed = shared.passed.lock().unwrap_or_else(PoisonError::into_inner);
            if passed.len() < MOST_PASSED {
                passed.push(Passed { at: Instant::now(), method: head.method, part: head.part });
            }
        }
        // Before the server can respond.
        shared.is_awaited.store(true, Ordering::SeqCst);
        let mut left = end as u64 + head.body_bytes;
        loop {
            let ready = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            server.write_all(&buffer[..ready]).await?;
            buffer.drain(..ready);
            left -= ready as u64;
            if left == 0 {
                break;
            }
            if client.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
    }
}

/// Passes responses on. The first bytes after a request begin its response, since a client sends its next request only
/// after a whole response.
async fn responses(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    shared: &Shared,
) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = server.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        if shared.is_awaited.swap(false, Ordering::SeqCst) {
            tokio::time::sleep(shared.delay).await;
        }
        client.write_all(&piece[..read]).await?;
    }
}

#[cfg(test)]
mod tests;
