//! Damage that readers meet: each resource is noted, so that the next publication tells it as deleted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fixity::Sha256;
use model::ResourceUri;
use publish::Publication;
use store::StoreError;
use tokio::time::Instant;

/// The most resources that are noted in an hour.
const MOST: usize = 1_000;
/// How long a resource is not noted again.
const AGAIN: Duration = Duration::from_secs(3_600);

/// What was noted of a publication.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    /// When, by the digests of URIs.
    noted: Mutex<HashMap<Sha256, Instant>>,
    is_waiting: AtomicBool,
}

impl Damage {
    /// Notes a resource whose bytes cannot be read, for this reason. One that the store cannot reach now is not noted.
    pub(crate) async fn note(&self, publication: &Publication, uri: &ResourceUri, error: &StoreError) {
        let is_damage = matches!(error, StoreError::NotFound { .. } | StoreError::Damaged { .. });
        if !is_damage || !self.is_to_be_noted(uri) {
            return;
        }
        let (resource, source) = (uri.as_str(), publication.source.source.as_str());
        match publication.note_damage(uri).await {
            Ok(true) => {
                self.is_waiting.store(true, Ordering::Relaxed);
                tracing::warn!(resource, source, %error, "a resource is damaged: it will be told as deleted");
            }
            Ok(false) => {
                tracing::warn!(source, "many resources are damaged; run `thresher scrub --repair`");
            }
            Err(failure) => tracing::warn!(resource, source, %failure, "a damaged resource cannot be noted"),
        }
    }

    /// Whether anything was noted since this was asked last.
    pub(crate) fn take_waiting(&self) -> bool {
        self.is_waiting.swap(false, Ordering::Relaxed)
    }

    /// Strangers may ask for damaged resources as often as they like.
    fn is_to_be_noted(&self, uri: &ResourceUri) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= MOST {
            noted.retain(|_, at| at.elapsed() < AGAIN);
        }
        let key = Sha256::of(uri.as_str().as_bytes());
        if noted.len() >= MOST || noted.get(&key).is_some_and(|at| at.elapsed() < AGAIN) {
            return false;
        }
        noted.insert(key, Instant::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(number: usize) -> ResourceUri {
        format!("http://e.org/{number}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_is_noted_once_an_hour_and_not_more_than_a_thousand_are() {
        let damage = Damage::default();
        assert!(damage.is_to_be_noted(&uri(0)));
        assert!(!damage.is_to_be_noted(&uri(0)));
        let more = (1..5_000).filter(|number| damage.is_to_be_noted(&uri(*number))).count();
        assert_eq!(more, MOST - 1);
        tokio::time::advance(AGAIN).await;
        assert!(damage.is_to_be_noted(&uri(0)), "it may be damaged still");
        assert!(damage.is_to_be_noted(&uri(4_999)));
    }
}
