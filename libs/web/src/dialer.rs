//! Opens TCP connections. The addresses of a name are attempted one after the other, and the first that answers is
//! taken (RFC 8305).

use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::io;
use std::iter::{Once, once};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::address_guard::{Resolver, Unresolved};

/// How long an address is waited for before the next one is attempted too (RFC 8305, 5).
pub(crate) const NEXT_AFTER: Duration = Duration::from_millis(250);
/// Addresses that are attempted for one connection, however many the name has.
const MOST: usize = 8;
/// Keep-alive: an idle connection is probed after this time, and again after each probe.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// Unanswered probes until the connection is closed.
const PROBES: u32 = 3;
/// The longest time that sent bytes may stay unacknowledged; then the connection is closed.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Connects to a name, or to an address. Its time is limited elsewhere.
#[derive(Clone)]
pub(crate) struct Dialer {
    resolver: Resolver,
}

/// The address of an attempt, in place of a look-up. Its port is the URL's.
#[derive(Clone)]
struct Resolved(SocketAddr);

impl Dialer {
    /// Connects to the addresses that `resolver` returns.
    pub(crate) fn new(resolver: Resolver) -> Self {
        Self { resolver }
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let mut resolver = self.resolver.clone();
        Box::pin(async move {
            let host = to.host().unwrap_or_default();
            let addresses = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
                Ok(address) => vec![SocketAddr::new(address, 0)],
                Err(_name) => resolver.call(host.parse::<Name>()?).await?.collect(),
            };
            let attempt = |address| attempt(address, to.clone());
            match first_that_answers(by_turns(addresses), attempt).await {
                Some(connected) => Ok(connected?),
                None => Err(Unresolved::NotFound(io::ErrorKind::NotFound.into()).into()),
            }
        })
    }
}

impl Service<Name> for Resolved {
    type Response = Once<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(once(self.0)))
    }
}

fn attempt(address: SocketAddr, to: Uri) -> <HttpConnector<Resolved> as Service<Uri>>::Future {
    let mut tcp = HttpConnector::new_with_resolver(Resolved(address));
    // TLS is added on top of it.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PROBE_AFTER));
    tcp.set_keepalive_interval(Some(PROBE_AFTER));
    tcp.set_keepalive_retries(Some(PROBES));
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp.call(to)
}

/// The addresses in the order of their attempts: the two families take turns, that of the first one begins.
fn by_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_first_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_first_v6);
    let (mut first, mut other) = (first.into_iter(), other.into_iter());
    let mut ordered = Vec::with_capacity(MOST);
    while ordered.len() < MOST {
        let before = ordered.len();
        ordered.extend(first.next());
        ordered.extend(other.next());
        if ordered.len() == before {
            break;
        }
    }
    ordered.truncate(MOST);
    ordered
}

/// The first connection, or the error of the last attempt; none without an address. The next address is attempted once
/// the one before has failed, or has not answered for a while.
async fn first_that_answers<T, E, F: Future<Output = Result<T, E>>>(
    addresses: Vec<SocketAddr>,
    attempt: impl Fn(SocketAddr) -> F,
) -> Option<Result<T, E>> {
    let mut left = addresses.into_iter();
    let mut open = FuturesUnordered::new();
    let mut failed = None;
    loop {
        open.extend(left.next().map(&attempt));
        let next = async {
            match left.len() {
                0 => std::future::pending().await,
                _ => tokio::time::sleep(NEXT_AFTER).await,
            }
        };
        tokio::select! {
            biased;
            ended = open.next() => match ended {
                Some(Ok(connected)) => return Some(Ok(connected)),
                Some(Err(error)) => failed = Some(Err(error)),
                None => return failed,
            },
            () = next => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
    }

    /// The last part of an address says what becomes of its attempt: 1 answers after 100 ms, 2 fails at once, and
    /// others are silent.
    async fn attempted(address: SocketAddr) -> Result<SocketAddr, SocketAddr> {
        match address.ip() {
            IpAddr::V4(v4) if v4.octets()[3] == 1 => tokio::time::sleep(Duration::from_millis(100)).await,
            IpAddr::V4(v4) if v4.octets()[3] == 2 => return Err(address),
            _ => std::future::pending().await,
        }
        Ok(address)
    }

    /// Who answered or failed last, and after how many milliseconds.
    async fn outcome(texts: &[&str]) -> (Option<Result<SocketAddr, SocketAddr>>, u128) {
        let begin = Instant::now();
        let outcome = first_that_answers(addresses(texts), attempted).await;
        (outcome, begin.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_is_silent_holds_up_the_next_for_a_moment_only() {
        let of = |text| addresses(&[text])[0];
        assert_eq!(outcome(&["10.0.0.1", "10.1.0.1"]).await, (Some(Ok(of("10.0.0.1"))), 100));
        assert_eq!(outcome(&["10.0.0.3", "10.0.0.1"]).await, (Some(Ok(of("10.0.0.1"))), 350));
        assert_eq!(outcome(&["10.0.0.3", "10.0.0.4", "10.0.0.1"]).await, (Some(Ok(of("10.0.0.1"))), 600));
        assert_eq!(
            outcome(&["10.0.0.2", "10.0.0.1"]).await,
            (Some(Ok(of("10.0.0.1"))), 100),
            "it failed at once"
        );
        assert_eq!(outcome(&["10.0.0.2", "10.1.0.2"]).await, (Some(Err(of("10.1.0.2"))), 0));
        assert_eq!(outcome(&[]).await, (None, 0));
    }

    #[test]
    fn families_take_turns_and_only_so_many_addresses_are_attempted() {
        let ordered = by_turns(addresses(&["::1", "::2", "::3", "10.0.0.1", "10.0.0.2"]));
        assert_eq!(ordered, addresses(&["::1", "10.0.0.1", "::2", "10.0.0.2", "::3"]));
        let ordered = by_turns(addresses(&["10.0.0.1", "::1", "10.0.0.2"]));
        assert_eq!(ordered, addresses(&["10.0.0.1", "::1", "10.0.0.2"]));
        assert!(by_turns(Vec::new()).is_empty());
        assert_eq!(by_turns(addresses(&["10.0.0.3"; 200])).len(), MOST);
    }
}
