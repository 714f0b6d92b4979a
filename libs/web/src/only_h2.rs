//! Origins that speak HTTP/2 only. The first request of HTTP/1.1 to one of them fails, and tells it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use tokio::time::Instant;

/// Origins that are remembered. There are few in the world; with more, the oldest one is forgotten.
const MOST_ORIGINS: usize = 1_024;
/// How long one is remembered. Then a request of HTTP/1.1 finds out whether its server has learned that.
const LIFE: Duration = Duration::from_secs(3_600);

/// The origins of one pool that refused HTTP/1.1, and when each did so last.
#[derive(Debug, Default)]
pub(crate) struct OnlyH2(Mutex<HashMap<Authority, Instant>>);

impl OnlyH2 {
    /// Whether the origin of a URI refused HTTP/1.1 a short time ago.
    pub(crate) fn has(&self, uri: &Uri) -> bool {
        let origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = uri.authority().and_then(|origin| origins.get(origin));
        refused.is_some_and(|refused| refused.elapsed() < LIFE)
    }

    /// Remembers that it did.
    pub(crate) fn note(&self, uri: &Uri) {
        let Some(origin) = uri.authority() else { return };
        let mut origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        origins.insert(origin.clone(), Instant::now());
        if origins.len() > MOST_ORIGINS {
            let oldest = origins.iter().min_by_key(|(_, refused)| **refused);
            if let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) {
                origins.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn uri(number: usize) -> Uri {
        format!("https://h{number}/a").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_is_remembered_for_its_time_and_then_asked_again() {
        let only = OnlyH2::default();
        assert!(!only.has(&uri(0)));
        only.note(&uri(0));
        advance(LIFE - Duration::from_millis(1)).await;
        assert!(only.has(&uri(0)) && !only.has(&uri(1)));
        advance(Duration::from_millis(1)).await;
        assert!(!only.has(&uri(0)));
        only.note(&uri(0));
        assert!(only.has(&uri(0)), "it has refused again");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_origins_are_remembered_than_the_bound_and_the_oldest_one_makes_room() {
        let only = OnlyH2::default();
        for number in 0..MOST_ORIGINS {
            only.note(&uri(number));
            advance(Duration::from_millis(1)).await;
        }
        only.note(&uri(0));
        assert!(only.has(&uri(1)), "one that is known takes no other room");
        advance(Duration::from_millis(1)).await;
        only.note(&uri(MOST_ORIGINS));
        assert_eq!(only.0.lock().unwrap().len(), MOST_ORIGINS);
        let known = [0, 1, 2, MOST_ORIGINS].map(|number| only.has(&uri(number)));
        assert_eq!(known, [true, false, true, true]);
    }
}
