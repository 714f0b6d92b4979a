//! Permits for a scheduler's own requests, kept for a moment for the next request. So a run that reads a hundred
//! lists in a row asks the bus once, and not a hundred times.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bus::{Bus, OriginPermit};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use model::Origin;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};
use web::SharedPermit;

/// How long a permit is kept without a request.
const KEPT: Duration = Duration::from_millis(500);
/// How long one permit serves consecutive requests: then jobs and other schedulers have their turn.
const LONGEST: Duration = Duration::from_secs(5);
/// How long it is left to them before the scheduler asks again.
const TURN: Duration = Duration::from_secs(1);
/// Wait before an unreachable bus is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// The permits of one scheduler.
#[derive(Debug)]
pub(crate) struct OriginPermits {
    bus: Arc<dyn Bus>,
    /// What each origin's permits without a request are kept for: as many as it had requests at the same time.
    origins: Mutex<HashMap<Origin, Vec<Kept>>>,
}

/// The same, for a Source with a limit of its own.
#[derive(Debug)]
pub(crate) struct CappedPermits {
    pub(crate) places: Arc<OriginPermits>,
    /// Maximum open requests at one of its origins.
    pub(crate) limit: NonZeroUsize,
}

/// State of one of an origin's permits between two requests.
#[derive(Debug)]
struct Kept {
    /// A permit, with the time at which it was acquired; without one, others have their turn.
    place: Option<(OriginPermit, Instant)>,
    /// Until when.
    until: Instant,
}

/// A permit with an open request.
#[derive(Debug)]
struct Used {
    places: Arc<OriginPermits>,
    origin: Origin,
    place: Option<OriginPermit>,
    given: Instant,
}

impl OriginPermits {
    pub(crate) fn new(bus: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self { bus, origins: Mutex::default() })
    }

    async fn take(self: &Arc<Self>, origin: &Origin, limit: NonZeroUsize) -> Used {
        let used = |place, given| Used {
            places: Arc::clone(self),
            origin: origin.clone(),
            place: Some(place),
            given,
        };
        match self.kept(origin) {
            Some(Kept { place: Some((place, given)), .. }) => return used(place, given),
            Some(Kept { place: None, until }) => sleep_until(until).await,
            None => {}
        }
        loop {
            match self.bus.acquire_permit(origin, limit.get()).await {
                Ok(place) => return used(place, Instant::now()),
                Err(error) => {
                    tracing::warn!(%error, %origin, "nobody can say whether this origin has a place: its documents wait");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// A kept permit, or else the turn of others that one was given up for.
    fn kept(&self, origin: &Origin) -> Option<Kept> {
        let mut origins = self.origins();
        let all = origins.get_mut(origin)?;
        let at = all.iter().position(|kept| kept.place.is_some()).unwrap_or(0);
        let kept = (at < all.len()).then(|| all.swap_remove(at));
        if all.is_empty() {
            origins.remove(origin);
        }
        kept
    }

    fn origins(&self) -> MutexGuard<'_, HashMap<Origin, Vec<Kept>>> {
        // Only single insertions and removals, so the map is valid even after a panicking thread.
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was kept until this time.
    fn forget(&self, origin: &Origin, until: Instant) {
        let mut origins = self.origins();
        if let Some(all) = origins.get_mut(origin) {
            all.retain(|kept| kept.until != until);
            if all.is_empty() {
                origins.remove(origin);
            }
        }
    }
}

impl web::PermitProvider for CappedPermits {
    fn acquire_permit<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, SharedPermit> {
        async move { Box::new(self.places.take(origin, self.limit).await) as SharedPermit }.boxed()
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        let (Some(place), Ok(runtime)) = (self.place.take(), Handle::try_current()) else { return };
        let now = Instant::now();
        // A permit that is not kept is released first; only then does a request wait for the end of the others' turn.
        let place = (now.duration_since(self.given) < LONGEST).then_some((place, self.given));
        let until = now + if place.is_some() { KEPT } else { TURN };
        self.places.origins().entry(self.origin.clone()).or_default().push(Kept { place, until });
        let places = Arc::clone(&self.places);
        let origin = self.origin.clone();
        runtime.spawn(async move {
            sleep_until(until).await;
            places.forget(&origin, until);
        });
    }
}

#[cfg(test)]
mod tests {
    use bus::{ConsumerSpec, Filter, MemoryBus};

    use super::*;

    fn origin() -> Origin {
        "http://h".parse().unwrap()
    }

    /// One request of a tenth of a second.
    async fn request(within: &CappedPermits) {
        let _place = web::PermitProvider::acquire_permit(within, &origin()).await;
        sleep(Duration::from_millis(100)).await;
    }

    fn one() -> (Arc<dyn Bus>, CappedPermits) {
        let bus: Arc<dyn Bus> = Arc::new(MemoryBus::new(10));
        let within = CappedPermits { places: OriginPermits::new(Arc::clone(&bus)), limit: NonZeroUsize::MIN };
        (bus, within)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_in_a_row_have_one_place_which_is_given_back_a_moment_after_the_last() {
        let (bus, within) = one();
        let start = Instant::now();
        for _ in 0..10 {
            request(&within).await;
            sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(start.elapsed().as_millis(), 3_000, "none of them waits");
        let other = bus.acquire_permit(&origin(), 1).await.unwrap();
        assert_eq!(start.elapsed().as_millis(), 3_300, "half a second after the last one ended");
        drop(other);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_at_the_same_time_have_a_place_each_as_long_as_they_follow_each_other() {
        let bus: Arc<dyn Bus> = Arc::new(MemoryBus::new(10));
        let limit = NonZeroUsize::new(3).unwrap();
        let within = CappedPermits { places: OriginPermits::new(Arc::clone(&bus)), limit };
        let start = Instant::now();
        let row = async |pause| {
            for _ in 0..10 {
                request(&within).await;
                sleep(Duration::from_millis(pause)).await;
            }
        };
        let others = async {
            sleep(Duration::from_millis(50)).await;
            let _place = bus.acquire_permit(&origin(), 3).await.unwrap();
            start.elapsed().as_millis()
        };
        let ((), (), waited) = tokio::join!(row(30), row(70), others);
        // The first row ends after 1.27 s.
        assert!(waited >= 1_270 + 500, "{waited} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn somebody_elses_turn_comes_however_many_requests_follow_each_other() {
        let (bus, within) = one();
        let start = Instant::now();
        let others = async {
            sleep(Duration::from_millis(10)).await;
            let _place = bus.acquire_permit(&origin(), 1).await.unwrap();
            let waited = start.elapsed();
            sleep(Duration::from_secs(2)).await;
            waited
        };
        let ours = async {
            for _ in 0..60 {
                request(&within).await;
            }
            start.elapsed()
        };
        let (waited, done) = tokio::join!(others, ours);
        assert_eq!((waited.as_secs(), done.as_secs()), (5, 8), "{waited:?} {done:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_are_handed_out_again_when_nothing_is_read_any_more() {
        let (bus, within) = one();
        let filter = Filter::Fetch(origin());
        bus.open(ConsumerSpec::new(filter.clone(), 1, Duration::from_secs(60), 5)).await.unwrap();
        let queue = bus::Queue::Fetch { origin: origin(), source: "s".parse().unwrap() };
        let start = Instant::now();
        request(&within).await;
        bus.publish(queue, bus::MessageId::new("a"), "".into()).await.unwrap();
        let pulled = bus.pull(&filter, 1, Duration::from_secs(60)).await.unwrap();
        assert_eq!((pulled.len(), start.elapsed().as_millis()), (1, 600));
    }
}
