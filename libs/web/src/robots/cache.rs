//! Cache of the origins' robots.txt.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::Origin;
use tokio::time::Instant;

use super::Robots;

/// Origins kept before the oldest are evicted.
const MOST_ORIGINS: usize = 1024;
/// Bytes kept before the oldest are evicted: a thousand files must not take a thousand times the largest.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Parsed files, with one fetch for all concurrent requests.
#[derive(Debug, Default)]
pub(crate) struct RobotsCache {
    origins: Mutex<HashMap<Origin, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Whether any request to the origin was made.
    is_asked: AtomicBool,
    /// Locked while its robots.txt is fetched.
    kept: tokio::sync::Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    robots: Arc<Robots>,
    until: Instant,
}

impl RobotsCache {
    /// The cached result for an origin, or else that of `fetch`, cached for as long as it says.
    pub(crate) async fn get_or<F>(&self, origin: &Origin, fetch: F) -> Arc<Robots>
    where
        F: Future<Output = (Robots, Duration)>,
    {
        let slot = self.slot(origin);
        let mut kept = slot.kept.lock().await;
        if let Some(Kept { robots, until }) = &*kept
            && Instant::now() < *until
        {
            return Arc::clone(robots);
        }
        let (robots, keep) = fetch.await;
        let robots = Arc::new(robots);
        *kept = Some(Kept { robots: Arc::clone(&robots), until: Instant::now() + keep });
        robots
    }

    /// Whether this is the first request to an origin that is not cached. True for one request only.
    pub(crate) fn is_first(&self, origin: &Origin) -> bool {
        let slot = self.slot(origin);
        let is_unknown = slot.kept.try_lock().is_ok_and(|kept| kept.is_none());
        !slot.is_asked.swap(true, Ordering::Relaxed) && is_unknown
    }

    fn slot(&self, origin: &Origin) -> Arc<Slot> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = origins.get(origin) {
            return Arc::clone(slot);
        }
        make_room(&mut origins);
        Arc::clone(origins.entry(origin.clone()).or_default())
    }
}

/// Evicts the entries that expire first, until there is room for more than one. An entry with waiting
/// requests stays.
fn make_room(origins: &mut HashMap<Origin, Arc<Slot>>) {
    let now = Instant::now();
    let mut idle: Vec<(Instant, usize, Origin)> = Vec::new();
    for (origin, slot) in origins.iter() {
        match slot.kept.try_lock().as_deref() {
            Ok(Some(Kept { robots, until })) => idle.push((*until, robots.size(), origin.clone())),
            // Requested once: it counts like an expired one.
            Ok(None) => idle.push((now, 0, origin.clone())),
            Err(_being_fetched) => {}
        }
    }
    let mut bytes: usize = idle.iter().map(|(_, size, _)| size).sum();
    if origins.len() < MOST_ORIGINS && bytes < MOST_BYTES {
        return;
    }
    idle.sort_unstable();
    for (_, size, origin) in idle {
        if origins.len() < MOST_ORIGINS / 4 * 3 && bytes < MOST_BYTES / 4 * 3 {
            return;
        }
        origins.remove(&origin);
        bytes -= size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn origin(n: usize) -> Origin {
        format!("http://host{n}.example").parse().unwrap()
    }

    async fn fetches(cache: &RobotsCache, origin: &Origin, keep: Duration, body: &str) -> bool {
        let mut fetched = false;
        let fetch = async {
            fetched = true;
            (Robots::parse(body.as_bytes(), "thresher"), keep)
        };
        cache.get_or(origin, fetch).await;
        fetched
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_is_kept_for_its_time_and_no_longer() {
        let cache = RobotsCache::default();
        assert!(fetches(&cache, &origin(1), HOUR, "").await);
        tokio::time::advance(HOUR - Duration::from_secs(1)).await;
        assert!(!fetches(&cache, &origin(1), HOUR, "").await);
        assert!(fetches(&cache, &origin(2), HOUR, "").await);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(fetches(&cache, &origin(1), HOUR, "").await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_is_the_first_and_none_where_something_is_known() {
        let cache = RobotsCache::default();
        assert!(cache.is_first(&origin(1)) && !cache.is_first(&origin(1)));
        fetches(&cache, &origin(2), HOUR, "").await;
        assert!(!cache.is_first(&origin(2)));
        for n in 0..3 * MOST_ORIGINS {
            assert!(cache.is_first(&origin(10 + n)));
        }
        assert!(cache.origins.lock().unwrap().len() <= MOST_ORIGINS, "those asked once are forgotten too");
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_at_a_time_share_one_fetch() {
        let cache = RobotsCache::default();
        let fetched = std::sync::atomic::AtomicUsize::new(0);
        let one = origin(1);
        let ask = || async {
            fetched.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            (Robots::parse(b"", "thresher"), HOUR)
        };
        futures::join!(cache.get_or(&one, ask()), cache.get_or(&one, ask()), cache.get_or(&one, ask()));
        assert_eq!(fetched.into_inner(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_are_forgotten_by_number_and_by_size() {
        let cache = RobotsCache::default();
        let kept = || cache.origins.lock().unwrap().len();
        for n in 0..3 * MOST_ORIGINS {
            fetches(&cache, &origin(n), HOUR, "").await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(kept() <= MOST_ORIGINS, "{}", kept());
        assert!(!fetches(&cache, &origin(3 * MOST_ORIGINS - 1), HOUR, "").await, "the newest was forgotten");
        let large = format!("user-agent: *\ndisallow: /{}", "a".repeat(400_000));
        for n in 0..100 {
            fetches(&cache, &origin(10_000 + n), HOUR, &large).await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(kept() <= MOST_BYTES / 400_000 + 1, "{}", kept());
    }
}
