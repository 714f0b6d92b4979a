//! Who may read a set: all readers, those with a token, those in a network, or those with both.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use model::Network;
use store::SourceMarker;

use crate::access::{Tokens, refusal};

/// Who may read a set. The default: all readers. Documents, bytes, packages, the topic and the hub have the same readers.
#[derive(Debug, Clone, Default)]
pub struct Readers {
    /// Readers have a token of this file; none if they need no token.
    pub tokens: Option<Tokens>,
    /// Readers are in one of these networks; none if they may be anywhere.
    pub networks: Option<Arc<[Network]>>,
}

/// The sender of a request, as far as access depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// Its address, behind the proxies that are trusted.
    pub(crate) address: IpAddr,
    /// The headers of its request.
    pub(crate) headers: &'a HeaderMap,
}

impl Readers {
    /// The answer to a reader that may not read a set; none if it may. Without a set: what is above the sets.
    pub(crate) fn refusal(&self, reader: Reader<'_>, set: Option<&SourceMarker>) -> Option<Response> {
        let is_within = |networks: &Arc<[Network]>| networks.iter().any(|one| one.contains(reader.address));
        if self.networks.as_ref().is_some_and(|networks| !is_within(networks)) {
            return Some(elsewhere());
        }
        self.tokens.as_ref().and_then(|tokens| refusal(tokens.access(reader.headers, set)))
    }

    /// Whether shared caches must not keep what these readers get.
    pub(crate) fn are_some(&self) -> bool {
        self.tokens.is_some() || self.networks.is_some()
    }
}

/// The answer to a reader outside the networks.
fn elsewhere() -> Response {
    (StatusCode::FORBIDDEN, "This is published for readers in other networks.\n").into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, header};

    use super::*;

    #[test]
    fn a_reader_needs_each_of_what_is_asked_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "- {name: a, token: correct horse battery}\n").unwrap();
        let tokens = Some(Tokens::of_file(file.path()).unwrap());
        let networks: Option<Arc<[Network]>> = Some(["10.2.0.0/16".parse().unwrap()].into());
        let token = HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer correct horse battery"),
        )]);
        let status = |readers: &Readers, address: &str, headers: &HeaderMap| {
            let reader = Reader { address: address.parse().unwrap(), headers };
            readers.refusal(reader, None).map(|answer| answer.status().as_u16())
        };
        let none = HeaderMap::new();
        let near = Readers { tokens: None, networks: networks.clone() };
        assert_eq!(status(&near, "10.2.9.9", &none), None);
        assert_eq!(status(&near, "10.3.0.1", &token), Some(403));
        assert_eq!(status(&near, "2001:db8::1", &none), Some(403));
        let both = Readers { tokens, networks };
        assert_eq!(status(&both, "10.2.9.9", &none), Some(401));
        assert_eq!(status(&both, "10.2.9.9", &token), None);
        assert_eq!(status(&both, "10.3.0.1", &token), Some(403));
        assert_eq!(status(&Readers::default(), "10.3.0.1", &none), None);
        let closed = Readers { tokens: Some(Tokens::none()), networks: None };
        assert_eq!(status(&closed, "10.2.9.9", &token), Some(401), "without a file, no token is known");
    }
}
