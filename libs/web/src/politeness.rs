//! The budget of each origin: so many requests at a time, so many a second or so long between two, and none while it
//! rests. All origins of a host have a multiple of that together: a list may name each port of it.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::Lane;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::terms::{CommonPlace, Places};
use host::{Host, Hosts};

mod host;

/// Origins kept before the first look for unused ones.
const SWEEP_FIRST: usize = 256;

/// What every origin is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Requests at a time.
    pub(crate) at_a_time: usize,
    /// Requests in a second.
    pub(crate) per_second: Option<NonZeroU32>,
    /// The longest rest that a request waits for.
    pub(crate) patience: Duration,
    /// How many times the rate of an origin all origins of its host have together.
    pub(crate) host_share: u32,
}

/// What a request keeps to beside what every origin is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks<'a> {
    /// The origin of its Source's entry.
    pub(crate) entry: Option<&'a Lane>,
    /// The space that its origin asks for between the beginnings of two requests.
    pub(crate) spacing: Duration,
    /// The space that its Source's rate asks for.
    pub(crate) pace: Duration,
    /// Requests at a time to all origins of its host.
    pub(crate) per_host: usize,
}

/// The origins in use and those that rest.
#[derive(Debug)]
pub(crate) struct Politeness {
    limits: Limits,
    /// Processes with such budgets that ask the same origins, this one included.
    sharers: AtomicU32,
    table: Mutex<Table>,
    hosts: Hosts,
}

/// A place in an origin's budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    origin: Arc<Origin>,
    _place: OwnedSemaphorePermit,
    _at_host: Option<OwnedSemaphorePermit>,
    _common: Option<CommonPlace>,
}

/// The origin rests for longer than a request waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    /// How much longer.
    pub(crate) left: Duration,
}

/// Whether an origin wants its rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rest {
    until: Option<Instant>,
}

/// What of an answer bears on the origin's rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The status.
    pub(crate) status: u16,
    /// The wait asked for.
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Debug)]
struct Table {
    origins: HashMap<Lane, Arc<Origin>>,
    sweep_at: usize,
}

#[derive(Debug)]
struct Origin {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rest: Rest,
    last_used: Option<Instant>,
    /// The space that was left before the last request, and is to be left before the next.
    spacing: Duration,
}

/// Whether a request may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Now,
    NotBefore(Instant),
    Resting,
}

/// The rest of an origin after an answer: 429 and 503 with `Retry-After` put it to rest, and never
/// shorten a rest; other answers, which may have been under way before, change nothing.
pub(crate) fn decide(rest: Rest, signal: Signal, now: Instant) -> Rest {
    match signal {
        Signal { status: 429 | 503, retry_after: Some(wait) } => rest.at_least(now + wait),
        _ => rest,
    }
}

impl Rest {
    /// Until then, or as long as before if that is longer.
    fn at_least(self, until: Instant) -> Self {
        Self { until: self.until.max(Some(until)) }
    }

    /// How much longer, if at all.
    fn left(self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

impl Politeness {
    pub(crate) fn new(limits: Limits) -> Self {
        let table = Table { origins: HashMap::new(), sweep_at: SWEEP_FIRST };
        Self { limits, sharers: AtomicU32::new(1), table: Mutex::new(table), hosts: Hosts::new() }
    }

    /// Waits for a place in the lane's budget, its turn (so much space after the last request began), and the end of its
    /// rest; then for a place at its host, and for one among those of `places`, if there are any.
    ///
    /// # Errors
    /// [`Resting`] when the rest is longer than a request waits.
    pub(crate) async fn enter(
        &self,
        lane: &Lane,
        asks: Asks<'_>,
        places: Option<&dyn Places>,
    ) -> Result<Permit, Resting> {
        let origin = self.origin(lane);
        loop {
            // Before a place is taken: nobody holds one while waiting.
            while let Some(left) = origin.rest_left() {
                if left > self.limits.patience {
                    return Err(Resting { left });
                }
                tokio::time::sleep(left).await;
            }
            let place =
                Arc::clone(&origin.places).acquire_owned().await.expect("the semaphore is never closed");
            let host_spacing = self.share(asks.pace) / self.limits.host_share;
            let host = self.hosts.of(lane.host(), asks.entry, asks.per_host, host_spacing);
            let (mut at_host, mut common) = (None, None);
            loop {
                let spacing = self.share(asks.spacing.max(asks.pace));
                let mut turn = origin.look(spacing);
                if let (Turn::Now, Some(at)) = (turn, host.turn()) {
                    turn = Turn::NotBefore(at);
                }
                if turn == Turn::Now {
                    // Not earlier: others would wait for the time to pass that is still to pass.
                    if at_host.is_none() {
                        at_host = Some(host.place().await);
                    }
                    if let (Some(places), None) = (places, &common) {
                        common = Some(places.place(lane).await);
                    }
                    turn = origin.turn(&host, spacing);
                }
                match turn {
                    Turn::Now => {
                        return Ok(Permit { origin, _place: place, _at_host: at_host, _common: common });
                    }
                    // Whoever waits for this place would have to wait for that time too.
                    Turn::NotBefore(at) => tokio::time::sleep_until(at).await,
                    // It began while this request waited.
                    Turn::Resting => break,
                }
            }
        }
    }

    /// What this process leaves between the beginnings of two requests to an origin that wants `spacing` between any two: so
    /// many times that as there are processes, and never less than its share of the rate. Evenly, without a burst: a server
    /// that allows ten a second does not want ten at once.
    pub(crate) fn share(&self, spacing: Duration) -> Duration {
        let sharers = self.sharers.load(Ordering::Relaxed);
        let pace = self
            .limits
            .per_second
            .map_or(Duration::ZERO, |per_second| Duration::from_secs(1) / per_second.get());
        spacing.max(pace).saturating_mul(sharers)
    }

    /// From now on so many processes share the origins, at least this one. Holds for requests that wait already.
    pub(crate) fn set_sharers(&self, sharers: usize) {
        self.sharers.store(u32::try_from(sharers.max(1)).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    pub(crate) fn sharers(&self) -> u32 {
        self.sharers.load(Ordering::Relaxed)
    }

    /// Puts a lane to rest on somebody else's word. A rest that lasts longer already is left as it is.
    pub(crate) fn rest(&self, lane: &Lane, wait: Duration) {
        let origin = self.origin(lane);
        let mut state = lock(&origin.state);
        state.rest = state.rest.at_least(Instant::now() + wait);
    }

    /// How much longer a lane rests, if at all.
    pub(crate) fn resting(&self, lane: &Lane) -> Option<Duration> {
        lock(&self.table).origins.get(lane)?.rest_left()
    }

    fn origin(&self, lane: &Lane) -> Arc<Origin> {
        let mut table = lock(&self.table);
        if let Some(origin) = table.origins.get(lane) {
            return Arc::clone(origin);
        }
        if table.origins.len() >= table.sweep_at {
            // New users come only through this table, which is locked: a count of one stays one.
            table.origins.retain(|_, origin| Arc::strong_count(origin) > 1 || !origin.is_forgettable());
            // The next look only when as many again have come, so that each one costs little.
            table.sweep_at = SWEEP_FIRST.max(table.origins.len() * 2);
        }
        let origin = Arc::new(Origin {
            places: Arc::new(Semaphore::new(self.limits.at_a_time)),
            state: Mutex::new(State { rest: Rest::default(), last_used: None, spacing: Duration::ZERO }),
        });
        table.origins.insert(lane.clone(), Arc::clone(&origin));
        origin
    }
}

impl Origin {
    fn rest_left(&self) -> Option<Duration> {
        lock(&self.state).rest.left(Instant::now())
    }

    /// Begins a request, if origin and host let it.
    fn turn(&self, host: &Host, spacing: Duration) -> Turn {
        let mut turn = Turn::Now;
        let begun = host.begin(|| {
            let mut state = lock(&self.state);
            let now = Instant::now();
            turn = state.turn(spacing, now);
            (turn == Turn::Now).then(|| (state.last_used, state.spacing) = (Some(now), spacing))
        });
        begun.map_or_else(Turn::NotBefore, |_| turn)
    }

    /// Whether a request may begin.
    fn look(&self, spacing: Duration) -> Turn {
        lock(&self.state).turn(spacing, Instant::now())
    }

    fn is_forgettable(&self) -> bool {
        let state = lock(&self.state);
        state.rest.left(Instant::now()).is_none()
            && state.last_used.is_none_or(|last| last.elapsed() >= state.spacing)
    }
}

impl State {
    fn turn(&self, spacing: Duration, now: Instant) -> Turn {
        match self.last_used.map(|last| last + spacing) {
            _ if self.rest.left(now).is_some() => Turn::Resting,
            Some(at) if at > now => Turn::NotBefore(at),
            _ => Turn::Now,
        }
    }
}

impl Permit {
    /// Takes note of an answer. How long the origin rests now, if this answer made its rest begin or last longer.
    pub(crate) fn note(&self, signal: Signal) -> Option<Duration> {
        let mut state = lock(&self.origin.state);
        let (before, now) = (state.rest, Instant::now());
        state.rest = decide(before, signal, now);
        state.rest.left(now).filter(|_| state.rest != before)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is written under these locks is whole at every moment.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests;
