//! The client address of a request.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use model::Network;

/// The header in which a proxy names the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of a client. IPv6 addresses count by their /64 network, because one client controls all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// An address that is unknown, or not counted by itself.
    pub(crate) const UNKNOWN: Self = Self(IpAddr::V6(Ipv6Addr::UNSPECIFIED));

    /// The client behind a connection. `X-Forwarded-For` counts only if the peer is one of `proxies`.
    pub(crate) fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> Self {
        let is_proxy = |address: &IpAddr| proxies.iter().any(|network| network.contains(*address));
        let peer = peer.to_canonical();
        if !is_proxy(&peer) {
            return Self(narrowed(peer));
        }
        let said = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
        let said: Vec<&str> = said.flat_map(|value| value.split(',')).map(str::trim).collect();
        // Each proxy appends an address. A client can forge all addresses before the first untrusted one.
        let addresses = said.iter().rev().map_while(|text| text.parse::<IpAddr>().ok());
        let client = addresses.map(|address| address.to_canonical()).find(|address| !is_proxy(address));
        Self(narrowed(client.unwrap_or(peer)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::UNKNOWN))
    }
}

fn narrowed(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(peer: &str, forwarded: &[&'static str]) -> String {
        let proxies = ["10.0.0.0/8", "192.0.2.7"].map(|text| text.parse().unwrap());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
        }
        ClientAddress::of(peer.parse().unwrap(), &headers, &proxies).0.to_string()
    }

    #[test]
    fn only_a_trusted_proxy_may_say_for_whom_it_speaks() {
        assert_eq!(client("198.51.100.1", &["203.0.113.9"]), "198.51.100.1");
        assert_eq!(client("10.1.1.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("::ffff:10.1.1.1", &["1.1.1.1, 203.0.113.9", "192.0.2.7"]), "203.0.113.9");
        assert_eq!(
            client("10.1.1.1", &["1.1.1.1, nonsense"]),
            "10.1.1.1",
            "what cannot be read ends the chain"
        );
        assert_eq!(client("10.1.1.1", &[]), "10.1.1.1");
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_client() {
        assert_eq!(client("2001:db8:1:2::3", &[]), client("2001:db8:1:2:ffff::4", &[]));
        assert_ne!(client("2001:db8:1:2::3", &[]), client("2001:db8:1:3::3", &[]));
        assert!("10.0.0.0/40".parse::<Network>().is_err());
    }
}
