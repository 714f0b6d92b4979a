//! Opens connections: name, TCP and TLS within one time limit.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::Connection as _;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::address_guard::{Guard, Names, Resolver};
use crate::dialer::Dialer;
use crate::stream_limit::Watched;

/// Opens connections. The pool clones it for each request, so a clone is one reference count.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Parts>);

struct Parts {
    names: Arc<dyn Names>,
    guard: Arc<Guard>,
    tls: Arc<ClientConfig>,
    within: Duration,
}

/// The time limit for a connection was exceeded.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
pub(crate) struct NotInTime(Duration);

impl Connector {
    /// Connects to the addresses that `names` returns and `guard` allows, within `within`.
    pub(crate) fn new(
        names: Arc<dyn Names>,
        guard: Arc<Guard>,
        tls: Arc<ClientConfig>,
        within: Duration,
    ) -> Self {
        Self(Arc::new(Parts { names, guard, tls, within }))
    }
}

impl Parts {
    /// A connector to one port: the port decides which addresses are allowed.
    fn to_port(&self, port: u16) -> HttpsConnector<Dialer> {
        let resolver = Resolver::new(Arc::clone(&self.names), Arc::clone(&self.guard), port);
        HttpsConnector::from((Dialer::new(resolver), Arc::clone(&self.tls)))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Watched<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let usual = if to.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        let port = to.port_u16().unwrap_or(usual);
        let host = to.host().map(str::to_owned);
        let connecting = self.0.to_port(port).call(to);
        let parts = Arc::clone(&self.0);
        Box::pin(async move {
            let connected = match tokio::time::timeout(parts.within, connecting).await {
                Ok(connected) => connected,
                Err(_elapsed) => Err(NotInTime(parts.within).into()),
            };
            if let (Err(_), Some(host)) = (&connected, host) {
                // The server may have moved.
                parts.names.forget(&host);
            }
            let stream = connected?;
            let is_http2 = stream.connected().is_negotiated_h2();
            Ok(TokioIo::new(Watched::new(TokioIo::new(stream), is_http2)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write as _};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;
    use crate::dialer::NEXT_AFTER;
    use crate::{AddressPolicy, network};

    /// Any name has these addresses.
    #[derive(Debug, Default)]
    struct Fixed(Vec<IpAddr>, AtomicUsize);

    impl Names for Fixed {
        fn look_up(&self, _: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
            let addresses = self.0.iter().map(|address| SocketAddr::new(*address, 0)).collect();
            Box::pin(async { Ok(addresses) })
        }

        fn forget(&self, _: &str) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn connector(names: &Arc<Fixed>) -> Connector {
        let guard = Arc::new(Guard::new(AddressPolicy::allow_all()));
        let tls = Arc::new(network::tls().unwrap());
        let names = Arc::clone(names);
        Connector::new(names, guard, tls, Duration::from_secs(10))
    }

    /// A server that answers no further connection, since its queue is full; and what fills it.
    async fn silent(address: SocketAddr) -> io::Result<(TcpListener, Vec<tokio::task::JoinHandle<()>>)> {
        let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
        socket.bind(address)?;
        let listener = socket.listen(1)?;
        let mut filling = Vec::new();
        loop {
            let connecting = tokio::net::TcpStream::connect(address);
            match tokio::time::timeout(Duration::from_millis(300), connecting).await {
                Ok(connected) => {
                    let kept = connected?;
                    filling.push(tokio::spawn(async move {
                        let _kept = kept;
                        std::future::pending().await
                    }));
                }
                Err(_silent) => return Ok((listener, filling)),
            }
        }
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_does_not_hold_up_the_others() {
        let second: IpAddr = Ipv4Addr::LOCALHOST.into();
        for first in [IpAddr::from([127, 0, 0, 2]), Ipv6Addr::LOCALHOST.into()] {
            let server = TcpListener::bind((second, 0)).await.unwrap();
            let port = server.local_addr().unwrap().port();
            let (_silent, filling) = match silent(SocketAddr::new(first, port)).await {
                Ok(server) => server,
                Err(error) => {
                    // Not by `eprintln!`, which is not shown of a test that passes.
                    writeln!(
                        io::stderr(),
                        "NOT TESTED: whether an address that does not answer holds up {second}, \
                         since no server can listen on {first} here: {error}"
                    )
                    .unwrap();
                    continue;
                }
            };
            let names = Arc::new(Fixed(vec![first, second], AtomicUsize::new(0)));
            let began = std::time::Instant::now();
            let uri = format!("http://two.test:{port}/").parse().unwrap();
            connector(&names).call(uri).await.unwrap();
            let took = began.elapsed();
            assert!(took >= NEXT_AFTER, "the first one is tried first: {took:?}");
            assert!(took < Duration::from_secs(3), "the limit for all addresses is 10 s: {took:?}");
            filling.iter().for_each(tokio::task::JoinHandle::abort);
        }
    }

    #[tokio::test]
    async fn an_answer_that_led_nowhere_is_forgotten() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = server.local_addr().unwrap().port();
        let names = Arc::new(Fixed(vec![Ipv4Addr::LOCALHOST.into()], AtomicUsize::new(0)));
        let uri: Uri = format!("http://one.test:{port}/").parse().unwrap();
        connector(&names).call(uri.clone()).await.unwrap();
        assert_eq!(names.1.load(Ordering::Relaxed), 0);
        drop(server);
        assert!(connector(&names).call(uri).await.is_err());
        assert_eq!(names.1.load(Ordering::Relaxed), 1);
    }
}
