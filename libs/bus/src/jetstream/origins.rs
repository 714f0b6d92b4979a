//! The list of open origin queues: a bucket on the server, and a copy of it in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::kv::{Operation, Store};
use futures::StreamExt;
use model::{Origin, Persisted};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::connection::{Failure, Link};
use crate::{BusError, ConsumerSpec, Filter, OriginQueues};

/// Matches all keys.
const ALL_KEYS: &str = ">";
/// The wait before the list is read again after a failure.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest wait for the next entry while the whole list is read.
const SILENCE: Duration = Duration::from_secs(5);
/// How many closed origin queues are remembered, so that a late and older update does not reopen them.
const CLOSED_KNOWN: usize = 2_048;

/// An open origin queue, as the bucket stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OriginRecord {
    #[serde(rename = "lane")]
    origin: Origin,
    max_in_flight: usize,
    ack_wait_ms: u64,
    max_deliver: u32,
}

/// The copy of the list. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct OriginList {
    bucket: Store,
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    origins: watch::Sender<OriginQueues>,
}

/// The state of one key: its latest revision, and its origin queue if open.
#[derive(Debug, Clone)]
struct Known {
    revision: u64,
    spec: Option<(Origin, ConsumerSpec)>,
}

impl model::Message for OriginRecord {
    const KIND: &'static str = "lane";
    const VERSION: u16 = Persisted::OriginQueues.version();
}

impl OriginRecord {
    fn new(origin: &Origin, spec: &ConsumerSpec) -> Self {
        Self {
            origin: origin.clone(),
            max_in_flight: spec.max_in_flight(),
            ack_wait_ms: u64::try_from(spec.ack_wait().as_millis()).unwrap_or(u64::MAX),
            max_deliver: spec.max_deliver(),
        }
    }

    fn read(key: &str, value: &[u8]) -> Option<(Origin, ConsumerSpec)> {
        let record: Self = model::decode(value)
            .inspect_err(|error| tracing::error!(key, %error, "cannot read an origin queue of the list: it gets no worker here"))
            .ok()?;
        let ack_wait = Duration::from_millis(record.ack_wait_ms);
        let filter = Filter::Fetch(record.origin.clone());
        Some((record.origin, ConsumerSpec::new(filter, record.max_in_flight, ack_wait, record.max_deliver)))
    }
}

impl OriginList {
    pub(super) fn new(bucket: Store) -> Self {
        Self { bucket, known: Arc::default(), origins: watch::Sender::new(OriginQueues::default()) }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<OriginQueues> {
        self.origins.subscribe()
    }

    /// The consumer of an origin, as far as this copy knows.
    pub(super) fn get(&self, origin: &Origin) -> Option<ConsumerSpec> {
        self.origins.borrow().get(origin).cloned()
    }

    /// Lists an origin queue. Later reads in this process see it at once.
    pub(super) async fn put(
        &self,
        link: &Link,
        origin: &Origin,
        spec: &ConsumerSpec,
    ) -> Result<(), BusError> {
        let key = origin.token();
        let value = model::encode(&OriginRecord::new(origin, spec));
        let action = || format!("announce origin {origin}");
        let put = || async { self.bucket.put(&key, value.clone().into()).await.map_err(Failure::temporary) };
        let revision = link.with_retries(action, put).await?;
        self.learn(&key, revision, Some((origin.clone(), spec.clone())));
        Ok(())
    }

    /// Removes an origin queue from the list.
    pub(super) async fn remove(&self, link: &Link, origin: &Origin) -> Result<(), BusError> {
        let key = origin.token();
        let action = || format!("withdraw origin {origin}");
        link.with_retries(action, || async { self.bucket.delete(&key).await.map_err(Failure::temporary) })
            .await?;
        // The watch brings its new revision. Until then, no revision older than the known one can list it again.
        let mut known = self.known();
        if let Some(entry) = known.get_mut(&key) {
            entry.spec = None;
        }
        self.publish(&known);
        Ok(())
    }

    /// The current entry of an origin queue on the server.
    pub(super) async fn ask(&self, link: &Link, origin: &Origin) -> Result<Option<ConsumerSpec>, BusError> {
        let key = origin.token();
        let action = || format!("look up origin {origin}");
        let entry = || async { self.bucket.get(&key).await.map_err(Failure::temporary) };
        let value = link.with_retries(action, entry).await?;
        Ok(value.and_then(|value| OriginRecord::read(&key, &value)).map(|(_, spec)| spec))
    }

    /// Follows the list for ever: reads all of it at the start and after each new connection or failure, and then its
    /// changes. Notifies `ready` after the first complete read.
    pub(super) async fn follow(self, link: Link, ready: watch::Sender<bool>) {
        loop {
            let connections = link.connections();
            tokio::select! {
                ended = self.read(&ready) => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "cannot follow the list of origin queues: reading it again");
                    }
                    sleep(AGAIN).await;
                }
                // Changes may be missing from a time without a connection.
                () = link.reconnected(connections) => {}
            }
        }
    }

    async fn read(
        &self,
        ready: &watch::Sender<bool>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.doubt_all();
        let mut entries = self.bucket.watch_with_history(ALL_KEYS).await?;
        let mut whole = self.bucket.status().await?.values() == 0;
        if whole {
            self.drop_doubted();
            ready.send_replace(true);
        }
        loop {
            let next = if whole {
                entries.next().await
            } else {
                // If an entry is overwritten during the read, it never comes, and neither does the end of the list.
                timeout(SILENCE, entries.next()).await?
            };
            let Some(entry) = next.transpose()? else { return Err("the server ended it".into()) };
            let spec = match entry.operation {
                Operation::Put => OriginRecord::read(&entry.key, &entry.value),
                Operation::Delete | Operation::Purge => None,
            };
            self.learn(&entry.key, entry.revision, spec);
            if !whole && entry.delta == 0 {
                whole = true;
                self.drop_doubted();
                ready.send_replace(true);
            }
        }
    }

    /// Applies a revision, unless a later one is known.
    fn learn(&self, key: &str, revision: u64, spec: Option<(Origin, ConsumerSpec)>) {
        let mut known = self.known();
        if known.get(key).is_some_and(|known| known.revision >= revision) {
            return;
        }
        known.insert(key.to_owned(), Known { revision, spec });
        forget_oldest_closed(&mut known);
        self.publish(&known);
    }

    /// Before a complete read: its content counts, even if the bucket was recreated and its revisions start at 1.
    fn doubt_all(&self) {
        for known in self.known().values_mut() {
            known.revision = 0;
        }
    }

    /// After a complete read: drops the entries that it did not confirm.
    fn drop_doubted(&self) {
        let mut known = self.known();
        known.retain(|_, known| known.revision > 0);
        self.publish(&known);
    }

    fn publish(&self, known: &BTreeMap<String, Known>) {
        let now: BTreeMap<Origin, ConsumerSpec> =
            known.values().filter_map(|known| known.spec.clone()).collect();
        self.origins.send_if_modified(|origins| {
            let changed = **origins != now;
            if changed {
                *origins = Arc::new(now);
            }
            changed
        });
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        // Each change is one insertion or a retain of whole entries, so the map is consistent even after a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the origin queues that were closed longest ago, if there are many. A late update could list them again, but
/// such updates come soon or never.
fn forget_oldest_closed(known: &mut BTreeMap<String, Known>) {
    let is_closed = |known: &Known| known.spec.is_none();
    if known.len() <= CLOSED_KNOWN || known.values().filter(|known| is_closed(known)).count() <= CLOSED_KNOWN
    {
        return;
    }
    let mut revisions: Vec<u64> =
        known.values().filter(|known| is_closed(known)).map(|known| known.revision).collect();
    revisions.sort_unstable();
    let middle = revisions[revisions.len() / 2];
    known.retain(|_, known| !is_closed(known) || known.revision > middle);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_origins_that_are_closed_only_the_last_ones_are_known() {
        let mut known = BTreeMap::new();
        for revision in 1..=3 * CLOSED_KNOWN as u64 {
            known.insert(format!("{revision:06}"), Known { revision, spec: None });
            forget_oldest_closed(&mut known);
            assert!(known.len() <= CLOSED_KNOWN, "{}", known.len());
        }
        let (key, _) = known.last_key_value().unwrap();
        assert_eq!(*key, format!("{:06}", 3 * CLOSED_KNOWN));
    }
}
