//! A proxy before a server that is far away: bytes arrive half a round trip later, and no faster than the link.
//!
//! It passes bytes, not requests, so TLS and HTTP/2 go through it. Each connection has a window per direction that
//! grows like TCP's slow start, since the distance shows only where bytes in flight are limited.
//!
//! What it does not show: lost packets as such, segments, and the congestion control of a particular system.

mod link;
mod pipe;
mod window;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

pub(crate) use link::Link;
use pipe::Direction;

/// A running proxy; it ends when dropped. It has a runtime of its own.
#[derive(Debug)]
pub(crate) struct FarProxy {
    port: u16,
    runtime: Option<Runtime>,
}

impl FarProxy {
    /// Starts a proxy before `server`. All connections share the link; each direction has its own.
    pub(crate) fn start(server: SocketAddr, link: Link) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.context("no port of 127.0.0.1 is free")?;
        let port = listener.local_addr()?.port();
        runtime.spawn(serve(listener, server, link));
        Ok(Self { port, runtime: Some(runtime) })
    }

    /// The port at 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for FarProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The runner waits for no connection.
            runtime.shutdown_background();
        }
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, link: Link) {
    let [up, down] = [(); 2].map(|()| Arc::new(Direction::new(link)));
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((client, _)) = listener.accept().await {
        number += 1;
        let (up, down) = (Arc::clone(&up), Arc::clone(&down));
        // Either side may go away at any time.
        connections.spawn(async move {
            let _ = connect(client, server, link, [up, down], number).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(
    client: TcpStream,
    server: SocketAddr,
    link: Link,
    [up, down]: [Arc<Direction>; 2],
    number: u64,
) -> std::io::Result<()> {
    // The kernel has accepted the connection at once. A far server would take a round trip for that.
    tokio::time::sleep(link.round_trip).await;
    let upstream = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    // A server that closes a connection ends it; what it sent before is delivered first.
    tokio::select! {
        ended = pipe::pass(from_client, to_server, up, 2 * number) => ended,
        ended = pipe::pass(from_server, to_client, down, 2 * number + 1) => ended,
    }
}

#[cfg(test)]
mod tests;
