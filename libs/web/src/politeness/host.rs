//! The budget of each host: all its ports together have a multiple of one origin's budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::Origin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Hosts stored before the first search for unused ones.
const SWEEP_FIRST: usize = 256;

/// The hosts in use.
#[derive(Debug)]
pub(super) struct Hosts(Mutex<Table>);

#[derive(Debug)]
struct Table {
    /// The budgets of each host by its name.
    hosts: HashMap<String, Vec<Arc<Host>>>,
    sweep_at: usize,
}

/// The budget of a host for the requests of one Source. Other Sources have budgets of their own there, so
/// that one Source's links cannot delay another. The budgets of origins are shared by all Sources.
#[derive(Debug)]
pub(super) struct Host {
    /// The origin of the Source's entry.
    entry: Option<Origin>,
    /// Concurrent requests.
    at_a_time: usize,
    /// The interval between the starts of two requests.
    spacing: Duration,
    places: Arc<Semaphore>,
    last_used: Mutex<Option<Instant>>,
}

impl Hosts {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Table { hosts: HashMap::new(), sweep_at: SWEEP_FIRST }))
    }

    /// The budget of a host: concurrent requests, and the interval between the starts of two. It is looked up
    /// for each request, and created only if it is missing.
    pub(super) fn of(
        &self,
        name: &str,
        entry: Option<&Origin>,
        at_a_time: usize,
        spacing: Duration,
    ) -> Arc<Host> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |host: &&Arc<Host>| {
            host.at_a_time == at_a_time && host.spacing == spacing && host.entry.as_ref() == entry
        };
        if let Some(host) = table.hosts.get(name).and_then(|budgets| budgets.iter().find(is_it)) {
            return Arc::clone(host);
        }
        if table.hosts.len() >= table.sweep_at {
            // New users come only through this table, which is locked: a count of one stays one.
            table.hosts.retain(|_, budgets| {
                budgets.retain(|host| Arc::strong_count(host) > 1 || host.turn().is_some());
                !budgets.is_empty()
            });
            table.sweep_at = SWEEP_FIRST.max(table.hosts.len() * 2);
        }
        let places = Arc::new(Semaphore::new(at_a_time.clamp(1, Semaphore::MAX_PERMITS)));
        let entry = entry.cloned();
        let host = Arc::new(Host { entry, at_a_time, spacing, places, last_used: Mutex::new(None) });
        table.hosts.entry(name.to_owned()).or_default().push(Arc::clone(&host));
        host
    }
}

#[cfg(test)]
impl Hosts {
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).hosts.len()
    }
}

impl Host {
    /// Waits for a permit.
    pub(super) async fn acquire_permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// When its next request may start, if not now.
    pub(super) fn turn(&self) -> Option<Instant> {
        let last = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        last.map(|last| last + self.spacing).filter(|at| *at > Instant::now())
    }

    /// Starts a request, if `begin` does.
    ///
    /// # Errors
    /// When its turn is, if not now.
    pub(super) fn begin<T>(&self, begin: impl FnOnce() -> Option<T>) -> Result<Option<T>, Instant> {
        let mut last_used = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(at) = last_used.map(|last| last + self.spacing).filter(|at| *at > now) {
            return Err(at);
        }
        let begun = begin();
        if begun.is_some() {
            *last_used = Some(now);
        }
        Ok(begun)
    }
}
