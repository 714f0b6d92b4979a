//! Keeps jobs of slow origins from taking all slots of a worker.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::Origin;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// Origins whose speed is remembered in one of two halves. When a half is full, the older half is forgotten. An origin
/// that is forgotten counts as unknown.
const KNOWN: usize = 2_048;
/// A new measurement is this part of the mean.
const WEIGHT: u32 = 4;

/// The limit of slots for jobs of slow origins. Cheap to clone; clones share the limit.
///
/// The handler reports its requests with [`begin`](Self::begin). An origin is slow if its requests take longer than a
/// limit in the mean, or if one takes longer right now. It is unknown until its first request has ended. All other
/// origins are quick, and their jobs start without a limit.
#[derive(Clone)]
pub struct OriginShares(Arc<Shared>);

struct Shared {
    limits: Limits,
    state: Mutex<State>,
    /// Something has changed that jobs may wait for.
    changed: Notify,
    /// Jobs of slow origins wait in order, and those of unknown ones beside them.
    turns: [Semaphore; 2],
}

/// How many jobs may be in work.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Jobs of slow origins.
    slow: usize,
    /// Jobs of slow and unknown origins together.
    not_quick: usize,
    /// The time of a request from which an origin is slow.
    slow_request: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Jobs in work; no more than a worker has slots, and those that wait for one.
    jobs: HashMap<Origin, usize>,
    /// Requests in progress, by number. A job has one at a time.
    requests: HashMap<u64, (Origin, Instant)>,
    next_request: u64,
    /// The mean time of a request at recent origins.
    means: HashMap<Origin, Duration>,
    means_before: HashMap<Origin, Duration>,
}

/// What is known of an origin's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speed {
    Quick,
    Slow,
    Unknown,
}

/// Jobs in work at origins that are not quick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    slow: usize,
    unknown: usize,
}

/// A job in work, until it is dropped.
pub(super) struct JobShare {
    shared: Arc<Shared>,
    origin: Origin,
}

/// A request in progress, until it is dropped.
pub struct RequestTimer {
    shared: Arc<Shared>,
    number: u64,
    is_measured: bool,
}

impl OriginShares {
    /// Of `slots` jobs at a time, at most `most` are those of slow origins. Those of unknown origins may take half of
    /// the other slots too, so that slow origins do not keep new ones waiting. An origin is slow if its requests take
    /// longer than `slow_request`.
    pub fn new(slots: usize, most: usize, slow_request: Duration) -> Self {
        let slow = most.clamp(1, slots.max(1));
        let limits = Limits { slow, not_quick: (slow + slots).div_ceil(2), slow_request };
        Self(Arc::new(Shared {
            limits,
            state: Mutex::default(),
            changed: Notify::new(),
            turns: [Semaphore::new(1), Semaphore::new(1)],
        }))
    }

    /// Notes the begin of a request. Its end is the end of the returned value.
    pub fn begin(&self, origin: &Origin) -> RequestTimer {
        let mut state = self.0.state();
        let number = state.next_request;
        state.next_request += 1;
        state.requests.insert(number, (origin.clone(), Instant::now()));
        RequestTimer { shared: Arc::clone(&self.0), number, is_measured: true }
    }

    /// Jobs of slow origins in work now.
    pub fn slow_jobs(&self) -> usize {
        self.0.state().counts(self.0.limits.slow_request).slow
    }

    /// Waits until a job of the origin could start. Returns how many could.
    pub(super) async fn room(&self, origin: &Origin) -> usize {
        self.wait(origin, |state, speed| match speed {
            Speed::Quick => Some(usize::MAX),
            speed => Some(self.0.limits.left(state.counts(self.0.limits.slow_request), speed))
                .filter(|left| *left > 0),
        })
        .await
    }

    /// Starts a job of the origin, as soon as it may.
    pub(super) async fn take(&self, origin: &Origin) -> JobShare {
        self.wait(origin, |state, speed| {
            let counts = state.counts(self.0.limits.slow_request);
            let starts = speed == Speed::Quick || self.0.limits.left(counts, speed) > 0;
            starts.then(|| {
                *state.jobs.entry(origin.clone()).or_default() += 1;
                JobShare { shared: Arc::clone(&self.0), origin: origin.clone() }
            })
        })
        .await
    }

    /// Waits in order until `look` returns a result.
    async fn wait<T>(&self, origin: &Origin, mut look: impl FnMut(&mut State, Speed) -> Option<T>) -> T {
        let Shared { limits, changed, turns, .. } = &*self.0;
        loop {
            let speed = self.0.state().speed(origin, limits.slow_request);
            let turn = match speed {
                Speed::Quick => None,
                Speed::Slow => Some(&turns[0]),
                Speed::Unknown => Some(&turns[1]),
            };
            // The semaphores are never closed.
            let _turn = match turn {
                Some(turn) => turn.acquire().await.ok(),
                None => None,
            };
            loop {
                let mut changes = std::pin::pin!(changed.notified());
                // From here on, no change is missed.
                changes.as_mut().enable();
                {
                    let mut state = self.0.state();
                    // It has become known, or slow, while it waited: it is another's turn.
                    if state.speed(origin, limits.slow_request) != speed {
                        break;
                    }
                    if let Some(found) = look(&mut state, speed) {
                        return found;
                    }
                }
                changes.await;
            }
        }
    }
}

impl Limits {
    /// How many more jobs may start.
    fn left(self, now: Counts, speed: Speed) -> usize {
        let left = self.not_quick.saturating_sub(now.slow + now.unknown);
        match speed {
            Speed::Slow => left.min(self.slow.saturating_sub(now.slow)),
            Speed::Quick | Speed::Unknown => left,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn speed(&self, origin: &Origin, slow: Duration) -> Speed {
        if self.requests.values().any(|(other, since)| other == origin && since.elapsed() > slow) {
            return Speed::Slow;
        }
        self.mean_speed(origin, slow)
    }

    fn mean_speed(&self, origin: &Origin, slow: Duration) -> Speed {
        match self.means.get(origin).or_else(|| self.means_before.get(origin)) {
            None => Speed::Unknown,
            Some(mean) if *mean > slow => Speed::Slow,
            Some(_) => Speed::Quick,
        }
    }

    fn counts(&self, slow: Duration) -> Counts {
        let late: HashSet<&Origin> = self
            .requests
            .values()
            .filter(|(_, since)| since.elapsed() > slow)
            .map(|(origin, _)| origin)
            .collect();
        let mut counts = Counts::default();
        for (origin, jobs) in &self.jobs {
            let speed = if late.contains(origin) { Speed::Slow } else { self.mean_speed(origin, slow) };
            match speed {
                Speed::Quick => {}
                Speed::Slow => counts.slow += jobs,
                Speed::Unknown => counts.unknown += jobs,
            }
        }
        counts
    }

    fn measure(&mut self, origin: Origin, took: Duration) {
        let before = self.means.get(&origin).or_else(|| self.means_before.get(&origin));
        let mean = before.map_or(took, |mean| (*mean * (WEIGHT - 1) + took) / WEIGHT);
        if self.means.len() >= KNOWN && !self.means.contains_key(&origin) {
            self.means_before = std::mem::take(&mut self.means);
        }
        self.means.insert(origin, mean);
    }
}

impl RequestTimer {
    /// Leaves the mean of its origin as it is: this takes long for what it brings, and not because the origin is slow.
    #[must_use]
    pub fn unmeasured(mut self) -> Self {
        self.is_measured = false;
        self
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        let slow = self.shared.limits.slow_request;
        let mut state = self.shared.state();
        let Some((origin, since)) = state.requests.get(&self.number).cloned() else { return };
        let before = state.speed(&origin, slow);
        state.requests.remove(&self.number);
        if self.is_measured {
            state.measure(origin.clone(), since.elapsed());
        }
        let is_other = state.speed(&origin, slow) != before;
        drop(state);
        if is_other {
            self.shared.changed.notify_waiters();
        }
    }
}

impl Drop for JobShare {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(jobs) = state.jobs.get_mut(&self.origin) {
            *jobs -= 1;
            if *jobs == 0 {
                state.jobs.remove(&self.origin);
            }
        }
        drop(state);
        self.shared.changed.notify_waiters();
    }
}

impl fmt::Debug for OriginShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginShares").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

impl fmt::Debug for RequestTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTimer").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_origins_is_bounded_and_a_slow_one_becomes_quick_again() {
        let mut state = State::default();
        let slow = Duration::from_secs(5);
        let origin = |n: usize| Origin::of(&format!("http://h{n}/").parse().unwrap()).unwrap();
        state.measure(origin(0), Duration::from_secs(60));
        assert_eq!(state.speed(&origin(0), slow), Speed::Slow);
        let mut quick_after = 0;
        while state.speed(&origin(0), slow) == Speed::Slow {
            state.measure(origin(0), Duration::from_millis(10));
            quick_after += 1;
        }
        assert_eq!((quick_after, state.speed(&origin(0), slow)), (9, Speed::Quick));
        for n in 1..3 * KNOWN {
            state.measure(origin(n), Duration::from_millis(10));
            assert!(state.means.len() <= KNOWN && state.means_before.len() <= KNOWN);
        }
        assert_eq!(state.speed(&origin(0), slow), Speed::Unknown, "it is forgotten");
        assert_eq!(state.speed(&origin(3 * KNOWN - 1), slow), Speed::Quick);
    }
}
