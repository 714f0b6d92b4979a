//! URIs of the usual kind, which need no parser.

use std::net::Ipv4Addr;

/// Whether a text is a URI of the usual kind, which every parser accepts. This check is much faster than
/// parsing, where millions are read.
pub(crate) fn is_usual(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with("xn--")
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    // A host that ends in a number is an address.
    let is_name = host.split('.').all(is_label)
        && !host.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    (is_name || host.parse::<Ipv4Addr>().is_ok()) && port.is_none_or(is_port)
}
