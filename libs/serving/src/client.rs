//! The address of a client, perhaps behind proxies.

use std::net::IpAddr;

use axum::http::HeaderMap;
use model::Network;

/// The header in which a proxy names the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The client behind a connection. `X-Forwarded-For` counts only if the peer is one of `proxies`.
pub fn address(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> IpAddr {
    let is_proxy = |address: &IpAddr| proxies.iter().any(|network| network.contains(*address));
    let peer = peer.to_canonical();
    if !is_proxy(&peer) {
        return peer;
    }
    let said = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let said: Vec<&str> = said.flat_map(|value| value.split(',')).map(str::trim).collect();
    // Each proxy appends an address. A client can forge all addresses before the first untrusted one.
    let addresses = said.iter().rev().map_while(|text| text.parse::<IpAddr>().ok());
    let client = addresses.map(|address| address.to_canonical()).find(|address| !is_proxy(address));
    client.unwrap_or(peer)
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
        address(peer.parse().unwrap(), &headers, &proxies).to_string()
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
}
