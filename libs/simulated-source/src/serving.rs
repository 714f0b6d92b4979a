//! A server on loopback with a runtime of its own. Dropping it ends every connection at once, and its work
//! does not delay a test's runtime.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// How long a connection stays open after the last byte of a cut-off body, so that its bytes still arrive.
const BEFORE_CUT: Duration = Duration::from_millis(50);
/// The longest time that a server may take to end.
const LONGEST_END: Duration = Duration::from_secs(30);

/// A running server; it ends when dropped.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Serving {
    /// Serves on 127.0.0.1; port 0 takes a free one.
    pub fn start(port: u16, name: &str, routes: Router) -> io::Result<Serving> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build()?;
        // Registering with the runtime's reactor needs to happen inside it.
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let listener = listener.tap_io(|stream| {
            // Without it small responses wait for the other side's delayed acknowledgement.
            let _ = stream.set_nodelay(true);
        });
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(Serving { address, runtime: Some(runtime) })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Its port is closed when this returns. Waiting for that inside a test's runtime takes a thread of its own.
            let ending = std::thread::spawn(move || runtime.shutdown_timeout(LONGEST_END));
            let _ = ending.join();
        }
    }
}

/// The first `after` bytes, then a broken connection.
pub fn cut_off(
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
    after: u64,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send {
    let mut left = after;
    let kept = pieces.map_while(move |mut piece| {
        if left == 0 {
            return None;
        }
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= piece.len() as u64;
        Some(Ok(piece))
    });
    stream::iter(kept).chain(stream::once(async {
        tokio::time::sleep(BEFORE_CUT).await;
        Err(std::io::Error::other("cut off, as the test wants it"))
    }))
}
