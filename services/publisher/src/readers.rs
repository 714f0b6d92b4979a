//! Who may read a set: all readers, those with a token, those in a network, or those with both.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use fixity::Sha256;
use model::Network;
use publish::Admission;
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

/// The word for all readers.
const ALL: &str = "public";
/// A word that no token has.
const REMOVED: &str = "removed";

/// Which subscribers are told: those that were admitted by the readers that there are now, and by a token that is still
/// known.
#[derive(Debug)]
pub(crate) struct Admits {
    word: String,
    tokens: Option<Tokens>,
}

impl Admits {
    pub(crate) fn new(readers: &Readers) -> Self {
        Self { word: readers.word(), tokens: readers.tokens.clone() }
    }

    /// Whether what a subscriber of a set was admitted by still holds.
    pub(crate) fn holds(&self, admission: &Admission, set: &SourceMarker) -> bool {
        // Earlier versions noted no readers where all read, and no token.
        let readers = if admission.readers.is_empty() { ALL } else { &admission.readers };
        let is_known = |tokens: &Tokens| admission.token.is_empty() || tokens.knows(&admission.token, set);
        readers == self.word && self.tokens.as_ref().is_none_or(is_known)
    }
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

    /// Whether these are the same readers as others of this server, which has one file of tokens.
    pub(crate) fn are(&self, others: &Self) -> bool {
        self.word() == others.word()
    }

    /// Which readers these are, in a word that changes with them.
    fn word(&self) -> String {
        let networks = self.networks.as_ref().map(|networks| {
            let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
            format!("networks-{}", &Sha256::of(networks.join(" ").as_bytes()).to_string()[..12])
        });
        let words: Vec<String> = self.tokens.iter().map(|_| "tokens".to_owned()).chain(networks).collect();
        if words.is_empty() { ALL.to_owned() } else { words.join("-") }
    }

    /// What a request is admitted by that is not refused.
    pub(crate) fn admission(&self, headers: &HeaderMap) -> Admission {
        // Its token may have been removed a moment ago.
        let mark = |tokens: &Tokens| tokens.mark(headers).unwrap_or_else(|| REMOVED.to_owned());
        Admission { readers: self.word(), token: self.tokens.as_ref().map(mark).unwrap_or_default() }
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
    fn the_word_for_the_readers_changes_with_them() {
        let networks = |text: &str| Some(text.split(' ').map(|one| one.parse().unwrap()).collect());
        let tokens = || Some(Tokens::none());
        let mut words = std::collections::BTreeSet::new();
        for (tokens, networks) in [
            (None, None),
            (tokens(), None),
            (None, networks("10.2.0.0/16")),
            (None, networks("10.2.0.0/16 10.3.0.0/16")),
            (tokens(), networks("10.2.0.0/16")),
        ] {
            assert!(words.insert(Readers { tokens, networks }.word()), "{words:?}");
        }
        assert!(words.contains("public") && words.contains("tokens"), "{words:?}");
    }

    #[test]
    fn a_subscriber_is_told_while_its_readers_and_its_token_are_admitted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let both = "- {name: a, token: correct horse battery}\n- {name: b, token: another long token}\n";
        std::fs::write(file.path(), both).unwrap();
        let tokens = Tokens::of_file(file.path()).unwrap();
        let with_tokens = Readers { tokens: Some(tokens.clone()), networks: None };
        let set = SourceMarker::new("one".parse().unwrap(), "http://one.test/");
        let headers = HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::from_static("Bearer correct horse battery"),
        )]);
        let admission = with_tokens.admission(&headers);
        assert!(!admission.token.is_empty() && !format!("{admission:?}").contains("horse"));
        let holds = |readers: &Readers, admission: &Admission| Admits::new(readers).holds(admission, &set);
        assert!(holds(&with_tokens, &admission));
        assert!(!holds(&Readers::default(), &admission), "it is for all readers now");

        // Those of an earlier version noted nothing, where all read.
        for all in [Admission::default(), Readers::default().admission(&HeaderMap::new())] {
            assert!(holds(&Readers::default(), &all) && !holds(&with_tokens, &all));
        }
        let earlier = Admission { readers: "tokens".to_owned(), token: String::new() };
        assert!(holds(&with_tokens, &earlier));
        assert!(
            !holds(&with_tokens, &with_tokens.admission(&HeaderMap::new())),
            "its token was removed meanwhile"
        );

        tokens.take("- {name: a, token: correct horse battery, sets: [two]}\n").unwrap();
        assert!(!holds(&with_tokens, &admission), "it is a token for another set");
        tokens.take("- {name: b, token: another long token}\n").unwrap();
        assert!(!holds(&with_tokens, &admission), "it was removed");
        tokens.take(both).unwrap();
        assert!(holds(&with_tokens, &admission));
    }

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
