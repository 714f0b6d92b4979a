//! The budget of each origin: concurrent requests, requests per second or a minimum interval, and none during
//! a cooldown. All origins of a host together have a multiple of that, since a list may name each port of it.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::Origin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::terms::{PermitProvider, SharedPermit};
use host::{Host, Hosts};

mod host;

/// Origins stored before the first search for unused ones.
const SWEEP_FIRST: usize = 256;

/// The limits of every origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Concurrent requests.
    pub(crate) at_a_time: usize,
    /// Requests per second.
    pub(crate) per_second: Option<NonZeroU32>,
    /// The longest cooldown that a request waits for.
    pub(crate) patience: Duration,
    /// The rate of a host, as a multiple of an origin's.
    pub(crate) host_share: u32,
}

/// Limits of one request beside the origin's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks<'a> {
    /// The origin of its Source's entry.
    pub(crate) entry: Option<&'a Origin>,
    /// The minimum interval between the starts of two requests that its origin requests.
    pub(crate) spacing: Duration,
    /// The minimum interval by its Source's rate.
    pub(crate) pace: Duration,
    /// Concurrent requests to all origins of its host.
    pub(crate) per_host: usize,
}

/// The origins in use and those in cooldown.
#[derive(Debug)]
pub(crate) struct Politeness {
    limits: Limits,
    /// Processes with such budgets that send requests to the same origins, this one included.
    sharers: AtomicU32,
    table: Mutex<Table>,
    hosts: Hosts,
}

/// A permit of an origin, returned when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    origin: Arc<OriginBudget>,
    _place: OwnedSemaphorePermit,
    _at_host: Option<OwnedSemaphorePermit>,
    _common: Option<SharedPermit>,
}

/// The origin's cooldown is longer than a request waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CoolingDown {
    /// The rest of the cooldown.
    pub(crate) left: Duration,
}

/// The cooldown of an origin, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CooldownUpdate {
    until: Option<Instant>,
}

/// The part of a response that affects the origin's cooldown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal {
    /// The status.
    pub(crate) status: u16,
    /// The requested wait.
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Debug)]
struct Table {
    origins: HashMap<Origin, Arc<OriginBudget>>,
    sweep_at: usize,
}

#[derive(Debug)]
struct OriginBudget {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rest: CooldownUpdate,
    last_used: Option<Instant>,
    /// The interval before the last request, which also applies before the next.
    spacing: Duration,
}

/// Whether a request may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Now,
    NotBefore(Instant),
    CoolingDown,
}

/// Updates an origin's cooldown after a response. 429 and 503 with `Retry-After` start a cooldown, and never
/// shorten one. Other responses change nothing, since they may be older.
pub(crate) fn decide(rest: CooldownUpdate, signal: Signal, now: Instant) -> CooldownUpdate {
    match signal {
        Signal { status: 429 | 503, retry_after: Some(wait) } => rest.at_least(now + wait),
        _ => rest,
    }
}

impl CooldownUpdate {
    /// Until then, or until the present end if that is later.
    fn at_least(self, until: Instant) -> Self {
        Self { until: self.until.max(Some(until)) }
    }

    /// The rest of the cooldown, if any.
    fn left(self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

impl Politeness {
    pub(crate) fn new(limits: Limits) -> Self {
        let table = Table { origins: HashMap::new(), sweep_at: SWEEP_FIRST };
        Self { limits, sharers: AtomicU32::new(1), table: Mutex::new(table), hosts: Hosts::new() }
    }

    /// Waits for a permit of the origin, its turn (the interval after the last request), and the end of its
    /// cooldown. Then it waits for a permit of the host, and for one of `places`, if there are any.
    ///
    /// # Errors
    /// [`CoolingDown`] when the cooldown is longer than a request waits.
    pub(crate) async fn enter(
        &self,
        origin: &Origin,
        asks: Asks<'_>,
        places: Option<&dyn PermitProvider>,
    ) -> Result<Permit, CoolingDown> {
        let budget = self.budget(origin);
        loop {
            // Checked before a permit is taken: no request holds a permit while it waits.
            while let Some(left) = budget.rest_left() {
                if left > self.limits.patience {
                    return Err(CoolingDown { left });
                }
                tokio::time::sleep(left).await;
            }
            let place =
                Arc::clone(&budget.places).acquire_owned().await.expect("the semaphore is never closed");
            let host_spacing = self.share(asks.pace) / self.limits.host_share;
            let host = self.hosts.of(origin.host(), asks.entry, asks.per_host, host_spacing);
            let mut at_host = None;
            let mut common = None;
            loop {
                let spacing = self.share(asks.spacing.max(asks.pace));
                let mut turn = budget.look(spacing);
                if let (Turn::Now, Some(at)) = (turn, host.turn()) {
                    turn = Turn::NotBefore(at);
                }
                if turn == Turn::Now {
                    // Not earlier: other requests would wait for this one's remaining wait.
                    if at_host.is_none() {
                        at_host = Some(host.acquire_permit().await);
                    }
                    if let Some(places) = places
                        && common.is_none()
                    {
                        common = Some(places.acquire_permit(origin).await);
                    }
                    turn = budget.turn(&host, spacing);
                }
                match turn {
                    Turn::Now => {
                        return Ok(Permit {
                            origin: budget,
                            _place: place,
                            _at_host: at_host,
                            _common: common,
                        });
                    }
                    // A waiter for this permit would have to wait for that time too.
                    Turn::NotBefore(at) => tokio::time::sleep_until(at).await,
                    // A cooldown began while this request waited.
                    Turn::CoolingDown => break,
                }
            }
        }
    }

    /// This process's interval between the starts of two requests to an origin that requests `spacing`. It is
    /// multiplied by the number of processes, and never shorter than its share of the rate. Requests are
    /// spaced evenly: a server that allows ten per second does not want ten at once.
    pub(crate) fn share(&self, spacing: Duration) -> Duration {
        let sharers = self.sharers.load(Ordering::Relaxed);
        let pace = self
            .limits
            .per_second
            .map_or(Duration::ZERO, |per_second| Duration::from_secs(1) / per_second.get());
        spacing.max(pace).saturating_mul(sharers)
    }

    /// Sets how many processes share the origins, at least this one. Also applies to waiting requests.
    pub(crate) fn set_sharers(&self, sharers: usize) {
        self.sharers.store(u32::try_from(sharers.max(1)).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    pub(crate) fn sharers(&self) -> u32 {
        self.sharers.load(Ordering::Relaxed)
    }

    /// Puts an origin into cooldown on another process's report. A longer cooldown stays as it is.
    pub(crate) fn rest(&self, origin: &Origin, wait: Duration) {
        let budget = self.budget(origin);
        let mut state = lock(&budget.state);
        state.rest = state.rest.at_least(Instant::now() + wait);
    }

    /// The rest of an origin's cooldown, if any.
    pub(crate) fn resting(&self, origin: &Origin) -> Option<Duration> {
        lock(&self.table).origins.get(origin)?.rest_left()
    }

    fn budget(&self, origin: &Origin) -> Arc<OriginBudget> {
        let mut table = lock(&self.table);
        if let Some(budget) = table.origins.get(origin) {
            return Arc::clone(budget);
        }
        if table.origins.len() >= table.sweep_at {
            // New users come only through this table, which is locked: a count of one stays one.
            table.origins.retain(|_, budget| Arc::strong_count(budget) > 1 || !budget.is_forgettable());
            // The next search only after as many again were added, so that each costs little.
            table.sweep_at = SWEEP_FIRST.max(table.origins.len() * 2);
        }
        let budget = Arc::new(OriginBudget {
            places: Arc::new(Semaphore::new(self.limits.at_a_time)),
            state: Mutex::default(),
        });
        table.origins.insert(origin.clone(), Arc::clone(&budget));
        budget
    }
}

impl OriginBudget {
    fn rest_left(&self) -> Option<Duration> {
        lock(&self.state).rest.left(Instant::now())
    }

    /// Starts a request, if the origin and the host allow it.
    fn turn(&self, host: &Host, spacing: Duration) -> Turn {
        let mut turn = Turn::Now;
        let begun = host.begin(|| {
            let mut state = lock(&self.state);
            let now = Instant::now();
            turn = state.turn(spacing, now);
            (turn == Turn::Now).then(|| {
                state.last_used = Some(now);
                state.spacing = spacing;
            })
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
            _ if self.rest.left(now).is_some() => Turn::CoolingDown,
            Some(at) if at > now => Turn::NotBefore(at),
            _ => Turn::Now,
        }
    }
}

impl Permit {
    /// Records a response. Returns the origin's cooldown if this response started or extended it.
    pub(crate) fn note(&self, signal: Signal) -> Option<Duration> {
        let mut state = lock(&self.origin.state);
        let before = state.rest;
        let now = Instant::now();
        state.rest = decide(before, signal, now);
        state.rest.left(now).filter(|_| state.rest != before)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data under these locks is consistent at every moment.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests;
