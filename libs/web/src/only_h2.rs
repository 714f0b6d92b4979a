//! Origins that speak HTTP/2 only. The first request of HTTP/1.1 to one of them fails, and tells it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use http::Uri;
use http::uri::Authority;

/// Origins that are remembered. There are few in the world; with more, all are forgotten.
const MOST_ORIGINS: usize = 1_024;

/// The origins of one pool that refused HTTP/1.1.
#[derive(Debug, Default)]
pub(crate) struct OnlyH2(Mutex<HashSet<Authority>>);

impl OnlyH2 {
    /// Whether the origin of a URI refused HTTP/1.1.
    pub(crate) fn has(&self, uri: &Uri) -> bool {
        let origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uri.authority().is_some_and(|origin| origins.contains(origin))
    }

    /// Remembers that it did.
    pub(crate) fn note(&self, uri: &Uri) {
        let Some(origin) = uri.authority() else { return };
        let mut origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.len() >= MOST_ORIGINS {
            origins.clear();
        }
        origins.insert(origin.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_remembered_up_to_a_bound() {
        let only = OnlyH2::default();
        let uri = |n: usize| format!("https://h{n}/a").parse().unwrap();
        for n in 0..=MOST_ORIGINS {
            assert!(!only.has(&uri(n)));
            only.note(&uri(n));
            assert!(only.has(&uri(n)));
        }
        assert!(!only.has(&uri(0)), "all before the last were forgotten");
    }
}
