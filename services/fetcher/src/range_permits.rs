//! Permits of an origin for ranges in parallel with the leading one: only spare permits, and never for long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bus::{Bus, OriginPermit};
use model::Origin;
use tokio::time::{Instant, timeout};

/// How long permits are kept in a row: then jobs that arrived meanwhile have a turn.
const LONGEST: Duration = Duration::from_secs(5);
/// How long the jobs have their turn, and the wait before a bus without spare permits is asked again.
const TURN: Duration = Duration::from_secs(1);
/// How long the bus may take to answer: the package does not wait for spare permits.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an origin gets no parallel ranges after it did not serve one as requested.
const LEFT_ALONE: Duration = Duration::from_secs(600);

/// Maximum delay between two requests of an origin that gets several ranges. One that wants a longer delay is better
/// served by one request at a time.
pub(crate) const LONGEST_SPACE: Duration = Duration::from_millis(100);

/// The permits of one job.
#[derive(Debug)]
pub(crate) struct RangePermits {
    bus: Arc<dyn Bus>,
    origin: Origin,
    most: usize,
    places: Vec<OriginPermit>,
    /// Since when the oldest is kept.
    since: Instant,
    not_before: Instant,
}

/// Origins that get one range of a package at a time, whatever is spare. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SingleRangeOrigins(Arc<Mutex<HashMap<Origin, Instant>>>);

impl RangePermits {
    /// No permit yet, and never more than `most`.
    pub(crate) fn new(bus: Arc<dyn Bus>, origin: Origin, most: usize) -> Self {
        let now = Instant::now();
        Self { bus, origin, most, places: Vec::new(), since: now, not_before: now }
    }

    /// Number of permits.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Releases all permits: without parallel ranges the job needs none.
    pub(crate) fn part(&mut self) {
        self.places.clear();
    }

    /// Releases all permits, and acquires none from now on.
    pub(crate) fn end(&mut self) {
        self.most = 0;
        self.places.clear();
    }

    /// Keeps one permit less from now on, since a range broke off: some servers and networks allow only so many
    /// connections. False if there was none.
    pub(crate) fn narrow(&mut self) -> bool {
        let may_have_any = self.may_have_any();
        self.most = self.most.min(self.places.len()).saturating_sub(1);
        self.places.truncate(self.most);
        may_have_any
    }

    /// Whether it may ever have a permit.
    pub(crate) fn may_have_any(&self) -> bool {
        self.most > 0
    }

    /// Whether they were kept for long enough: they take no further request, and are released when none is open.
    pub(crate) fn is_over(&self) -> bool {
        !self.places.is_empty() && self.since.elapsed() >= LONGEST
    }

    /// Whether to ask for more, now that these permits have no open request. Permits that were kept for long enough
    /// are released.
    pub(crate) fn wants_more(&mut self) -> bool {
        let now = Instant::now();
        if !self.places.is_empty() && now.duration_since(self.since) >= LONGEST {
            self.places.clear();
            self.not_before = now + TURN;
        }
        self.places.len() < self.most && now >= self.not_before
    }

    /// Acquires the spare permits.
    pub(crate) async fn gather(&mut self) {
        while self.places.len() < self.most {
            let spare = timeout(PATIENCE, self.bus.try_acquire_spare(&self.origin)).await;
            let now = Instant::now();
            match spare {
                Ok(Ok(Some(place))) => {
                    if self.places.is_empty() {
                        self.since = now;
                    }
                    self.places.push(place);
                    continue;
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::debug!(%error, origin = %self.origin, "cannot ask for a place now")
                }
                Err(_late) => tracing::debug!(origin = %self.origin, "the bus is slow to tell of places"),
            }
            self.not_before = now + TURN;
            return;
        }
    }
}

impl SingleRangeOrigins {
    /// Excludes an origin from parallel ranges for a while.
    pub(crate) fn add(&self, origin: &Origin) {
        let now = Instant::now();
        let mut origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        origins.retain(|_, until| *until > now);
        origins.insert(origin.clone(), now + LEFT_ALONE);
    }

    /// Whether an origin is excluded.
    pub(crate) fn contains(&self, origin: &Origin) -> bool {
        let origins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        origins.get(origin).is_some_and(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use bus::{ConsumerSpec, Filter, MemoryBus};

    use super::*;

    fn origin() -> Origin {
        "http://h".parse().unwrap()
    }

    async fn bus_of(limit: usize) -> Arc<dyn Bus> {
        let bus: Arc<dyn Bus> = Arc::new(MemoryBus::new(10));
        bus.open(ConsumerSpec::new(Filter::Fetch(origin()), limit, LEFT_ALONE, 5)).await.unwrap();
        bus
    }

    async fn gathered(company: &mut RangePermits) -> usize {
        if company.wants_more() {
            company.gather().await;
        }
        company.len()
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_taken_than_are_wanted_or_can_be_spared() {
        for (limit, most, expected) in [(2, 3, 0), (3, 3, 1), (4, 3, 2), (10, 3, 3), (10, 1, 1), (10, 0, 0)] {
            let mut company = RangePermits::new(bus_of(limit).await, origin(), most);
            assert_eq!(gathered(&mut company).await, expected, "limit {limit}, {most} wanted");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_range_that_breaks_off_leaves_one_fewer() {
        let bus = bus_of(5).await;
        let mut company = RangePermits::new(Arc::clone(&bus), origin(), 7);
        for expected in [3, 2, 1, 0] {
            assert_eq!(gathered(&mut company).await, expected);
            tokio::time::advance(TURN).await;
            assert_eq!(company.narrow(), expected > 0);
        }
        let mut company = RangePermits::new(bus, origin(), 7);
        assert_eq!(gathered(&mut company).await, 3, "all were given back");
        company.end();
        tokio::time::advance(LONGEST + TURN).await;
        assert_eq!((gathered(&mut company).await, company.may_have_any()), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_while_others_have_a_turn() {
        let bus = bus_of(4).await;
        let mut company = RangePermits::new(Arc::clone(&bus), origin(), 3);
        assert_eq!(gathered(&mut company).await, 2);
        tokio::time::advance(LONGEST - TURN).await;
        assert_eq!(gathered(&mut company).await, 2);
        tokio::time::advance(TURN).await;
        assert_eq!(gathered(&mut company).await, 0);
        let others = bus.try_acquire_spare(&origin()).await.unwrap().expect("all were given back");
        tokio::time::advance(TURN).await;
        assert_eq!(gathered(&mut company).await, 1);
        drop(others);
        assert_eq!(gathered(&mut company).await, 1, "the bus is not asked again at once");
        tokio::time::advance(TURN).await;
        assert_eq!(gathered(&mut company).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_origin_is_left_alone_for_a_while_and_no_other_is() {
        let loners = SingleRangeOrigins::default();
        loners.add(&origin());
        assert!(loners.contains(&origin()) && !loners.contains(&"http://other".parse().unwrap()));
        tokio::time::advance(LEFT_ALONE).await;
        assert!(!loners.contains(&origin()));
    }
}
