//! How many connections, or requests, each client has open, so that none has them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Frame, SizeHint};
use model::Network;

use crate::client;

/// The clients that have something open. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Clients(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// The most of one client. None: as many as there are.
    most: Option<usize>,
    proxies: Arc<[Network]>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// What a client has open, until it is dropped.
#[derive(Debug)]
pub(crate) struct ClientPlace {
    clients: Clients,
    client: IpAddr,
}

/// A client has as many open as it may have.
#[derive(Debug)]
pub(crate) struct TooMany(pub(crate) IpAddr);

impl Clients {
    pub(crate) fn new(most: Option<usize>, proxies: Arc<[Network]>) -> Self {
        Self(Arc::new(Parts { most, proxies, open: Mutex::default() }))
    }

    /// A place for a connection. None is needed for one of a proxy: it has those of many clients.
    pub(crate) fn connection(&self, peer: IpAddr) -> Result<Option<ClientPlace>, TooMany> {
        if self.is_proxy(peer) { Ok(None) } else { self.enter(peer) }
    }

    /// A place for a request that came through a proxy. Other requests have that of their connection, and so has a
    /// request for which the proxy names no client.
    pub(crate) fn request(&self, peer: IpAddr, headers: &HeaderMap) -> Result<Option<ClientPlace>, TooMany> {
        if !self.is_proxy(peer) {
            return Ok(None);
        }
        let client = client::address(peer, headers, &self.0.proxies);
        if self.is_proxy(client) { Ok(None) } else { self.enter(client) }
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.proxies.iter().any(|network| network.contains(address))
    }

    fn enter(&self, client: IpAddr) -> Result<Option<ClientPlace>, TooMany> {
        let Some(most) = self.0.most else { return Ok(None) };
        let client = network(client);
        let mut all = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.entry(client).or_default();
        if *open >= most {
            return Err(TooMany(client));
        }
        *open += 1;
        Ok(Some(ClientPlace { clients: self.clone(), client }))
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut all = self.clients.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let left = all.get(&self.client).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            all.remove(&self.client);
        } else {
            all.insert(self.client, left);
        }
    }
}

/// What counts as one client: an address, or of IPv6 its network of 64 bits, which one host has as a whole.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

/// The answer to a client that has too many requests open.
pub(crate) fn refusal() -> Response {
    let headers = [(header::RETRY_AFTER, HeaderValue::from_static("5"))];
    let text =
        "This client has too many requests open at the same time. Wait for some of them, and try again.\n";
    (StatusCode::SERVICE_UNAVAILABLE, headers, text).into_response()
}

/// Has a response hold a place until its body ends.
pub(crate) fn holding(response: Response, place: ClientPlace) -> Response {
    response.map(|body| Body::new(Holding { body, _place: place }))
}

/// A body that holds a place.
struct Holding {
    body: Body,
    _place: ClientPlace,
}

impl HttpBody for Holding {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6_and_is_forgotten_when_it_has_nothing_open() {
        let clients = Clients::new(Some(1), Arc::default());
        let enter = |address: &str| clients.connection(address.parse().unwrap());
        let held = enter("192.0.2.1").unwrap();
        assert!(enter("::ffff:192.0.2.1").is_err(), "the same one");
        assert!(enter("192.0.2.2").is_ok());
        let six = enter("2001:db8::1").unwrap();
        assert!(enter("2001:db8::2:1").is_err());
        assert!(enter("2001:db8:0:1::1").is_ok());
        drop((held, six));
        assert!(clients.0.open.lock().unwrap().is_empty());
        assert!(enter("192.0.2.1").is_ok());
        let any = Clients::new(None, Arc::default());
        assert!(any.connection("192.0.2.1".parse().unwrap()).unwrap().is_none(), "nothing is counted");
    }
}
