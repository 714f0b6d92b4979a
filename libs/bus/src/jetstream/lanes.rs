//! The list of open lanes: a bucket on the server, and what this process has read of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::kv::{Operation, Store};
use futures::StreamExt;
use model::Lane;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::link::{Failure, Link};
use crate::{BusError, ConsumerSpec, Filter, Lanes};

/// What all keys match.
const ALL_KEYS: &str = ">";
/// The wait before the list is read again after a failure.
const AGAIN: Duration = Duration::from_millis(500);
/// The longest wait for the next entry while the list is read whole.
const SILENCE: Duration = Duration::from_secs(5);
/// Closed lanes that are remembered, so that nothing older that is heard of them late opens them again.
const CLOSED_KNOWN: usize = 2_048;

/// An open lane, as the bucket keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LaneRecord {
    lane: Lane,
    max_in_flight: usize,
    ack_wait_ms: u64,
    max_deliver: u32,
}

/// What is known of the list. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct LaneList {
    bucket: Store,
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    lanes: watch::Sender<Lanes>,
}

/// What is known of one key: its latest revision, and the lane where it is open.
#[derive(Debug, Clone)]
struct Known {
    revision: u64,
    spec: Option<(Lane, ConsumerSpec)>,
}

impl model::Message for LaneRecord {
    const KIND: &'static str = "lane";
    const VERSION: u16 = 1;
}

impl LaneRecord {
    fn new(lane: &Lane, spec: &ConsumerSpec) -> Self {
        Self {
            lane: lane.clone(),
            max_in_flight: spec.max_in_flight(),
            ack_wait_ms: u64::try_from(spec.ack_wait().as_millis()).unwrap_or(u64::MAX),
            max_deliver: spec.max_deliver(),
        }
    }

    fn read(key: &str, value: &[u8]) -> Option<(Lane, ConsumerSpec)> {
        let record: Self = model::decode(value)
            .inspect_err(|error| tracing::error!(key, %error, "cannot read a lane of the list: it gets no worker here"))
            .ok()?;
        let ack_wait = Duration::from_millis(record.ack_wait_ms);
        let filter = Filter::Fetch(record.lane.clone());
        Some((record.lane, ConsumerSpec::new(filter, record.max_in_flight, ack_wait, record.max_deliver)))
    }
}

impl LaneList {
    pub(super) fn new(bucket: Store) -> Self {
        Self { bucket, known: Arc::default(), lanes: watch::Sender::new(Lanes::default()) }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Lanes> {
        self.lanes.subscribe()
    }

    /// Whether a lane is listed, as far as this process has heard.
    pub(super) fn get(&self, lane: &Lane) -> Option<ConsumerSpec> {
        self.lanes.borrow().get(lane).cloned()
    }

    /// Lists a lane. Who asks this process afterwards sees it at once.
    pub(super) async fn put(&self, link: &Link, lane: &Lane, spec: &ConsumerSpec) -> Result<(), BusError> {
        let key = lane.token();
        let value = model::encode(&LaneRecord::new(lane, spec));
        let action = || format!("announce lane {lane}");
        let put = || async { self.bucket.put(&key, value.clone().into()).await.map_err(Failure::temporary) };
        let revision = link.patiently(action, put).await?;
        self.learn(&key, revision, Some((lane.clone(), spec.clone())));
        Ok(())
    }

    /// Takes a lane off the list.
    pub(super) async fn remove(&self, link: &Link, lane: &Lane) -> Result<(), BusError> {
        let key = lane.token();
        let action = || format!("withdraw lane {lane}");
        link.patiently(action, || async { self.bucket.delete(&key).await.map_err(Failure::temporary) })
            .await?;
        // Its revision comes with the watch; until then, nothing older than what is known can list it again.
        let mut known = self.known();
        if let Some(entry) = known.get_mut(&key) {
            entry.spec = None;
        }
        self.publish(&known);
        Ok(())
    }

    /// What the server says of a lane now.
    pub(super) async fn ask(&self, link: &Link, lane: &Lane) -> Result<Option<ConsumerSpec>, BusError> {
        let key = lane.token();
        let action = || format!("look up lane {lane}");
        let entry = || async { self.bucket.get(&key).await.map_err(Failure::temporary) };
        let value = link.patiently(action, entry).await?;
        Ok(value.and_then(|value| LaneRecord::read(&key, &value)).map(|(_, spec)| spec))
    }

    /// Follows the list for ever: reads it whole at the start and after each new connection or failure, and then what
    /// changes. `ready` is told when the list was read for the first time.
    pub(super) async fn follow(self, link: Link, ready: watch::Sender<bool>) {
        loop {
            let connections = link.connections();
            tokio::select! {
                ended = self.read(&ready) => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "cannot follow the list of lanes: reading it again");
                    }
                    sleep(AGAIN).await;
                }
                // What came while there was no connection may be missing.
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
                // Entries that are overwritten while they are read never come, and the end of the list with them.
                timeout(SILENCE, entries.next()).await?
            };
            let Some(entry) = next.transpose()? else { return Err("the server ended it".into()) };
            let spec = match entry.operation {
                Operation::Put => LaneRecord::read(&entry.key, &entry.value),
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

    /// Notes what a revision says, unless a later one is known.
    fn learn(&self, key: &str, revision: u64, spec: Option<(Lane, ConsumerSpec)>) {
        let mut known = self.known();
        if known.get(key).is_some_and(|known| known.revision >= revision) {
            return;
        }
        known.insert(key.to_owned(), Known { revision, spec });
        forget_oldest_closed(&mut known);
        self.publish(&known);
    }

    /// The list is about to be read whole: what it says holds, also if the bucket was made anew and counts from 1 again.
    fn doubt_all(&self) {
        for known in self.known().values_mut() {
            known.revision = 0;
        }
    }

    /// The list was read whole: what it did not confirm is gone.
    fn drop_doubted(&self) {
        let mut known = self.known();
        known.retain(|_, known| known.revision > 0);
        self.publish(&known);
    }

    fn publish(&self, known: &BTreeMap<String, Known>) {
        let now: BTreeMap<Lane, ConsumerSpec> =
            known.values().filter_map(|known| known.spec.clone()).collect();
        self.lanes.send_if_modified(|lanes| {
            let changed = **lanes != now;
            if changed {
                *lanes = Arc::new(now);
            }
            changed
        });
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        // Each change is one insertion or a retain of whole entries: what a panicking thread left is whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the lanes that were closed longest ago, where they are many: what is said of them late would list them
/// again, but that comes soon or never.
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
    fn of_the_lanes_that_are_closed_only_the_last_ones_are_known() {
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
