//! The bus inside one process.

mod fair_queue;
mod permit;
mod receipt;
mod seen;
mod stage;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use model::{Origin, SourceId};
use tokio::sync::watch;
use tokio::time::Instant;

use self::permit::MemoryPermit;
use self::receipt::MemoryReceipt;
use self::seen::SeenIds;
use self::stage::{Handed, Stage, Stored};
use crate::dead::{self, DeadLetter};
use crate::{
    Bus, BusError, ConsumerSpec, Delivery, Depth, Filter, MessageId, OriginPermit, OriginQueues, Payload,
    Published, Queue,
};

/// The bus inside one process: it keeps every promise of [`Bus`], but its messages end with the process.
///
/// Sources take turns within an origin queue. The bus notices at once when a worker drops a message.
///
/// Messages are passed on without serialization: a reader gets the very message that was sent.
#[derive(Debug, Clone)]
pub struct MemoryBus {
    shared: Arc<Shared>,
    by_wire: bool,
}

#[derive(Debug)]
struct Shared {
    capacity: usize,
    state: Mutex<State>,
    origins: watch::Sender<OriginQueues>,
}

#[derive(Debug, Default)]
struct State {
    stages: HashMap<Filter, Stage>,
    seen: SeenIds,
}

impl MemoryBus {
    /// A bus whose queues hold up to `capacity` messages each, including those in flight.
    ///
    /// Dead letters may never be read. If there are more, the oldest is dropped, and the log says so.
    pub fn new(capacity: usize) -> Self {
        let origins = watch::Sender::new(OriginQueues::default());
        let shared = Shared { capacity: capacity.max(1), state: Mutex::default(), origins };
        Self { shared: Arc::new(shared), by_wire: false }
    }

    /// Serializes every message, and passes it on as bytes, as the bus of a fleet does. Tests use it to cover
    /// serialization.
    #[must_use]
    pub fn by_wire(self) -> Self {
        Self { by_wire: true, ..self }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Code under this lock never leaves a stage half changed, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a stage, and wakes the tasks that wait for a change.
    fn change<T>(&self, filter: &Filter, change: impl FnOnce(&mut Stage) -> T) -> Option<T> {
        let mut state = self.state();
        let stage = state.stages.get_mut(filter)?;
        let changed = change(stage);
        stage.notify();
        Some(changed)
    }

    fn return_permit(&self, filter: &Filter) {
        let mut state = self.state();
        let Entry::Occupied(mut entry) = state.stages.entry(filter.clone()) else { return };
        entry.get_mut().return_permit();
        entry.get().notify();
        if entry.get().is_forgettable() {
            entry.remove();
        }
    }

    fn set_origin(&self, filter: &Filter, spec: Option<ConsumerSpec>) {
        let Filter::Fetch(origin) = filter else { return };
        self.origins.send_if_modified(|origins| {
            if origins.get(origin) == spec.as_ref() {
                return false;
            }
            update(Arc::make_mut(origins), origin, spec);
            true
        });
    }
}

impl State {
    /// The stage of a filter, created on first use.
    fn stage(&mut self, filter: Filter) -> &mut Stage {
        self.stages.entry(filter).or_default()
    }

    /// Moves a message that was delivered too often to the dead letters.
    fn bury(&mut self, stored: Stored, capacity: usize) {
        let message = stored.message(stored.deliveries);
        let (letter, why) = DeadLetter::worn(&message);
        let (queue, id, payload) = letter.addressed(message.queue.source());
        if self.seen.insert(id.clone(), Instant::now()) {
            self.put(Stored { id, queue, payload, deliveries: 0 }, capacity);
        }
        dead::log(&message, &why);
    }

    /// Queues a message. If the dead letters are full, the oldest is dropped.
    fn put(&mut self, stored: Stored, capacity: usize) {
        let stage = self.stage(stored.queue.filter());
        let full = stage.count(stored.queue.source()) >= capacity;
        if full
            && matches!(stored.queue, Queue::Dead { .. })
            && let Some(lost) = stage.drop_oldest()
        {
            tracing::error!(message.id = %lost.id, queue = %lost.queue, "too many dead letters: the oldest is gone");
        }
        stage.put(stored);
    }
}

#[async_trait]
impl Bus for MemoryBus {
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        let mut state = self.shared.state();
        let stage = state.stage(spec.filter().clone());
        stage.open(spec.clone());
        stage.notify();
        // Under the lock, so that origin queues are announced in the order in which they were opened and closed.
        self.shared.set_origin(&spec.filter().clone(), Some(spec));
        Ok(())
    }

    async fn close(&self, filter: &Filter) -> Result<bool, BusError> {
        let mut state = self.shared.state();
        if let Entry::Occupied(entry) = state.stages.entry(filter.clone()) {
            if !entry.get().is_empty() {
                return Ok(false);
            }
            if entry.get().is_unused() {
                entry.remove().notify();
            } else {
                let stage = entry.into_mut();
                stage.close();
                stage.notify();
            }
            self.shared.set_origin(filter, None);
        }
        Ok(true)
    }

    fn origins(&self) -> watch::Receiver<OriginQueues> {
        self.shared.origins.subscribe()
    }

    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError> {
        let payload = if self.by_wire { payload.written() } else { payload };
        payload.fits(&queue)?;
        let never_full = matches!(queue, Queue::Dead { .. });
        loop {
            let changed = {
                let mut state = self.shared.state();
                if state.seen.contains(&id, Instant::now()) {
                    return Ok(Published { duplicate: true });
                }
                let stage = state.stage(queue.filter());
                if never_full || stage.count(queue.source()) < self.shared.capacity {
                    state.seen.insert(id.clone(), Instant::now());
                    state.put(Stored { id, queue, payload, deliveries: 0 }, self.shared.capacity);
                    return Ok(Published { duplicate: false });
                }
                // Created under the lock, so that no change is missed.
                stage.changed()
            };
            changed.await;
        }
    }

    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        let end = later(Instant::now(), wait);
        loop {
            let (changed, due) = {
                let now = Instant::now();
                let mut state = self.shared.state();
                let not_open = || BusError::NotOpen { filter: filter.clone() };
                let stage = state.stages.get_mut(filter).ok_or_else(not_open)?;
                let Handed { deliveries, buried } = stage.take(max, now).ok_or_else(not_open)?;
                let changed = stage.changed();
                let due = stage.next_due(now);
                if !buried.is_empty() {
                    stage.notify();
                }
                for stored in buried {
                    state.bury(stored, self.shared.capacity);
                }
                if !deliveries.is_empty() || now >= end || max == 0 {
                    drop(state);
                    let wrap = |(key, message)| {
                        let receipt = MemoryReceipt::new(Arc::clone(&self.shared), filter.clone(), key);
                        Delivery::new(message, Box::new(receipt))
                    };
                    return Ok(deliveries.into_iter().map(wrap).collect());
                }
                (changed, due)
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(due.map_or(end, |due| due.min(end))) => {}
            }
        }
    }

    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<OriginPermit, BusError> {
        let filter = Filter::Fetch(origin.clone());
        let mut taken = None;
        loop {
            let changed = {
                let mut state = self.shared.state();
                let stage = state.stage(filter.clone());
                if taken.is_none() && stage.take_permit(limit) {
                    taken = Some(MemoryPermit::new(Arc::clone(&self.shared), filter.clone()));
                }
                if stage.has_room(limit)
                    && let Some(taken) = taken
                {
                    return Ok(OriginPermit::new(taken));
                }
                stage.changed()
            };
            changed.await;
        }
    }

    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<OriginPermit>, BusError> {
        let filter = Filter::Fetch(origin.clone());
        let is_taken = self.shared.state().stages.get_mut(&filter).is_some_and(Stage::take_spare_permit);
        Ok(is_taken.then(|| OriginPermit::new(MemoryPermit::new(Arc::clone(&self.shared), filter))))
    }

    async fn caught_up(&self, filter: &Filter) -> Result<(), BusError> {
        loop {
            let changed = {
                let state = self.shared.state();
                match state.stages.get(filter) {
                    Some(stage) if !stage.is_empty() => stage.changed(),
                    _ => return Ok(()),
                }
            };
            changed.await;
        }
    }

    async fn purge(&self, source: &SourceId) -> Result<usize, BusError> {
        let mut state = self.shared.state();
        let fetch = state.stages.iter_mut().filter(|(filter, _)| matches!(filter, Filter::Fetch(_)));
        Ok(fetch
            .map(|(_, stage)| {
                let dropped = stage.purge(source);
                stage.notify();
                dropped
            })
            .sum())
    }

    async fn depth(&self, filter: &Filter) -> Result<Depth, BusError> {
        Ok(self.shared.state().stages.get(filter).map(Stage::depth).unwrap_or_default())
    }

    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError> {
        let state = self.shared.state();
        let stages =
            state.stages.iter().filter(|(filter, _)| !matches!(filter, Filter::Notices(_) | Filter::Dead(_)));
        Ok(stages.map(|(_, stage)| stage.count(source)).sum())
    }
}

fn update(origins: &mut BTreeMap<Origin, ConsumerSpec>, origin: &Origin, spec: Option<ConsumerSpec>) {
    match spec {
        Some(spec) => origins.insert(origin.clone(), spec),
        None => origins.remove(origin),
    };
}

/// The moment `wait` after `start`. A wait without end becomes one of years.
fn later(start: Instant, wait: Duration) -> Instant {
    const YEARS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
    start + wait.min(YEARS)
}

#[cfg(test)]
mod tests;
