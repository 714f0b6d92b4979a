//! Protects a gateway without tokens from DNS rebinding. A page of another site can let a browser connect here under a
//! name of its own, but it cannot forge the header `Host`. So only requests whose `Host` is this machine are served.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

use crate::api_error::ApiError;
use crate::config::Settings;

/// Checks that the request names this machine.
///
/// # Errors
/// [`ApiError::misdirected`], where no tokens are required and the request names another host.
pub(crate) fn check(settings: &Settings, headers: &HeaderMap) -> Result<(), ApiError> {
    if !settings.allow_anonymous || names_this_machine(headers) {
        return Ok(());
    }
    Err(ApiError::misdirected(
        "gateway.allow_anonymous is set, so only requests to this machine's own names are answered: use http://127.0.0.1 or \
         http://localhost, or name a file in gateway.tokens",
    ))
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let mut named = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_loopback_addresses_and_localhost_name_this_machine() {
        let names = |hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_static(host));
            }
            names_this_machine(&headers)
        };
        for good in
            ["127.0.0.1", "127.0.0.1:8080", "127.9.9.9", "localhost:8080", "LocalHost.", "[::1]", "[::1]:80"]
        {
            assert!(names(&[good]), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "[::2]",
            "0.0.0.0",
            "192.0.2.1",
        ] {
            assert!(!names(&[bad]), "{bad}");
        }
        assert!(!names(&[]) && !names(&["localhost", "evil.example"]));
    }
}
