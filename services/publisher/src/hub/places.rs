//! Places at the origins of subscribers. One that waits for a slow origin has no memory and no turn meanwhile, so that
//! it holds up no subscriber at another origin.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

/// Deliveries under way to one origin, as many as its client sends at a time.
pub(super) const AT_ONE_ORIGIN: usize = 4;
/// How many times as many go to all origins of one host.
pub(super) const HOST_SHARE: usize = 4;
/// Origins and hosts that are known before the first search for unused ones.
const SWEEP_FIRST: usize = 256;

/// The places at all origins, and at all hosts.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Table>);

/// A place at an origin and its host, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    _origin: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
}

#[derive(Debug, Default)]
struct Table {
    places: HashMap<String, Arc<Semaphore>>,
    sweep_at: usize,
}

impl Places {
    /// Waits for a place at the origin of a callback, then for one at its host.
    pub(super) async fn enter(&self, callback: &Url) -> Option<Place> {
        let host = callback.host_str().unwrap_or_default();
        let port = callback.port_or_known_default().unwrap_or_default();
        let origin = format!("{}://{host}:{port}", callback.scheme());
        // The semaphores are never closed.
        let origin = self.at(origin, AT_ONE_ORIGIN).acquire_owned().await.ok()?;
        let host = self.at(host.to_owned(), AT_ONE_ORIGIN * HOST_SHARE).acquire_owned().await.ok()?;
        Some(Place { _origin: origin, _host: host })
    }

    fn at(&self, name: String, most: usize) -> Arc<Semaphore> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.places.get(&name) {
            return Arc::clone(known);
        }
        if table.places.len() >= table.sweep_at {
            // Permits and those that wait for one have a reference each.
            table.places.retain(|_, places| Arc::strong_count(places) > 1);
            // The next search only after as many again were added, so that each costs little.
            table.sweep_at = SWEEP_FIRST.max(table.places.len() * 2);
        }
        let places = Arc::new(Semaphore::new(most));
        table.places.insert(name, Arc::clone(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn callback(host: &str, port: usize) -> Url {
        format!("http://{host}:{port}/x").parse().unwrap()
    }

    #[test]
    fn an_origin_has_a_few_places_its_host_some_more_and_others_have_their_own() {
        let places = Places::default();
        let enter = |host: &str, port: usize| places.enter(&callback(host, port)).now_or_never().flatten();
        let mut taken: Vec<Place> = (0..AT_ONE_ORIGIN).map(|_| enter("slow.test", 80).unwrap()).collect();
        assert!(enter("slow.test", 80).is_none());
        assert!(enter("other.test", 80).is_some());
        for port in 1..HOST_SHARE {
            taken.extend((0..AT_ONE_ORIGIN).map(|_| enter("slow.test", port).unwrap()));
        }
        assert!(enter("slow.test", 9_000).is_none(), "the host has no more");
        taken.pop();
        assert!(enter("slow.test", 9_000).is_some());
    }

    #[test]
    fn places_that_are_not_used_any_more_are_forgotten() {
        let places = Places::default();
        let kept = places.enter(&callback("kept.test", 80)).now_or_never().flatten();
        for number in 0..10 * SWEEP_FIRST {
            assert!(places.enter(&callback(&format!("h{number}.test"), 80)).now_or_never().is_some());
        }
        let table = places.0.lock().unwrap();
        assert!(kept.is_some() && table.places.contains_key("kept.test"));
        assert!(table.places.len() <= SWEEP_FIRST + 2, "{}", table.places.len());
    }
}
