//! A view: a copy of a bucket in memory, which follows its changes.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use crate::bucket::{Bucket, KvEvent, KvWatch, Line};
use crate::error::ControlError;
use crate::kept::Kept;
use crate::versioned::{Revision, Versioned};

/// The longest silence while the first copy is read. Its last value may have expired meanwhile, so that it never comes.
const SILENCE: Duration = Duration::from_secs(1);
/// The pause between two attempts to watch again.
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// Changed keys that are buffered for a busy reader. Beyond that, it is told that any value may have changed.
const KEYS_BUFFERED: usize = 4_096;

/// A copy of all values of one kind, which follows the changes on the server. After a lost connection it is rebuilt
/// from the complete state, so that no change is missed. Clones share the copy.
///
/// It lags behind the server by a few milliseconds. A caller that needs certainty writes with the revision that it
/// read.
#[derive(Debug)]
pub struct WatchCache<T> {
    rows: Arc<RwLock<Rows<T>>>,
    changes: watch::Receiver<u64>,
    keys: broadcast::Sender<ChangedKey>,
    /// Ends the task when the last clone is gone.
    _stop: Arc<DropGuard>,
}

impl<T> Clone for WatchCache<T> {
    fn clone(&self) -> Self {
        Self {
            rows: Arc::clone(&self.rows),
            changes: self.changes.clone(),
            keys: self.keys.clone(),
            _stop: Arc::clone(&self._stop),
        }
    }
}

/// What changed in a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedKey {
    /// The value of this key was written or removed.
    One(Arc<str>),
    /// Any value may have changed: the view was read anew, or the reader was too slow for each change.
    Any,
}

/// The changes of a view, key by key, from the moment at which this was made. A reader of thousands of values looks at
/// those that changed, and not at all of them after each change.
#[derive(Debug)]
pub struct ChangedKeys(broadcast::Receiver<ChangedKey>);

impl ChangedKeys {
    /// Waits for the next change.
    pub async fn next(&mut self) -> ChangedKey {
        match self.0.recv().await {
            Ok(changed) => changed,
            Err(broadcast::error::RecvError::Lagged(_)) => ChangedKey::Any,
            // The runtime is shutting down, so there are no more changes.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[derive(Debug)]
struct Rows<T> {
    values: BTreeMap<String, Versioned<T>>,
    unreadable: BTreeMap<String, String>,
    live: bool,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), unreadable: BTreeMap::new(), live: false }
    }
}

impl<T: Kept> WatchCache<T> {
    /// Opens a view, which is complete when this returns.
    pub(crate) async fn open(bucket: Bucket) -> Result<Self, ControlError> {
        let rows = Arc::new(RwLock::new(Rows::default()));
        let (changed, changes) = watch::channel(0);
        let keys = broadcast::Sender::new(KEYS_BUFFERED);
        let stop = CancellationToken::new();
        let mut line = bucket.line();
        line.mark_unchanged();
        let mut feed = bucket.feed().await?;
        *write(&rows) = read_all(&mut feed, bucket.name()).await?;
        let follower = Follower { bucket, rows: Arc::clone(&rows), changed, keys: keys.clone(), line };
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = follower.follow(feed) => {}
            }
        });
        Ok(Self { rows, changes, keys, _stop: Arc::new(stop.drop_guard()) })
    }

    /// The value of an ID.
    pub fn get(&self, id: &T::Id) -> Option<Versioned<T>> {
        read(&self.rows).values.get(&T::key(id)).cloned()
    }

    /// The value of a key, as [`changed_keys`](Self::changed_keys) names it.
    pub fn row(&self, key: &str) -> Option<Versioned<T>> {
        read(&self.rows).values.get(key).cloned()
    }

    /// All keys, in order.
    pub fn keys(&self) -> Vec<Arc<str>> {
        read(&self.rows).values.keys().map(|key| key.as_str().into()).collect()
    }

    /// The values that match, in the order of their keys. No other is copied. `holds` must not block.
    pub fn matching(&self, mut holds: impl FnMut(&T) -> bool) -> Vec<Versioned<T>> {
        read(&self.rows).values.values().filter(|value| holds(value)).cloned().collect()
    }

    /// All values, in the order of their keys.
    pub fn all(&self) -> Vec<Versioned<T>> {
        read(&self.rows).values.values().cloned().collect()
    }

    /// Calls `each` with every value, in the order of their keys. Nothing is copied. `each` must not block.
    pub fn for_each(&self, mut each: impl FnMut(&T)) {
        read(&self.rows).values.values().for_each(|value| each(value));
    }

    /// The changes from now on, key by key.
    pub fn changed_keys(&self) -> ChangedKeys {
        ChangedKeys(self.keys.subscribe())
    }

    /// Whether any value matches. Nothing is copied. `holds` must not block.
    pub fn any(&self, mut holds: impl FnMut(&T) -> bool) -> bool {
        read(&self.rows).values.values().any(|value| holds(value))
    }

    /// Whether the copy follows the server now. If not, it shows the last known state.
    pub fn is_live(&self) -> bool {
        read(&self.rows).live
    }

    /// The keys of unreadable values, and the reasons: written by a later version, or damaged.
    pub fn unreadable(&self) -> BTreeMap<String, String> {
        read(&self.rows).unreadable.clone()
    }

    /// Whether anything has changed since this clone marked all as seen.
    pub fn has_changed(&self) -> bool {
        // Without its sender, the runtime is shutting down.
        self.changes.has_changed().unwrap_or(false)
    }

    /// Marks all changes so far as seen: [`changed`](Self::changed) waits for a later one.
    pub fn mark_seen(&mut self) {
        self.changes.mark_unchanged();
    }

    /// Waits for a change since the last call on this clone. Several changes may be reported as one.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The runtime is shutting down, so there are no more changes.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until `look` returns a result, now or after a change.
    pub async fn wait_for<R>(&mut self, mut look: impl FnMut(&Self) -> Option<R>) -> R {
        loop {
            self.mark_seen();
            if let Some(found) = look(self) {
                return found;
            }
            self.changed().await;
        }
    }
}

/// Updates the copy.
struct Follower<T> {
    bucket: Bucket,
    rows: Arc<RwLock<Rows<T>>>,
    changed: watch::Sender<u64>,
    keys: broadcast::Sender<ChangedKey>,
    line: watch::Receiver<Line>,
}

impl<T: Kept> Follower<T> {
    async fn follow(mut self, feed: KvWatch) {
        let mut feed = Some(feed);
        loop {
            match feed.take() {
                Some(mut following) => {
                    tokio::select! {
                        // Changes that were sent to the old connection may be lost.
                        _ = self.line.changed() => {}
                        fact = following.next() => match fact {
                            Ok(fact) => {
                                let key = ChangedKey::One(fact.key.as_str().into());
                                note(&mut write(&self.rows), fact, self.bucket.name());
                                // Without a reader of keys there is no receiver.
                                let _ = self.keys.send(key);
                                feed = Some(following);
                            }
                            Err(error) => debug!(bucket = self.bucket.name(), %error, "watching ended"),
                        },
                    }
                    if feed.is_none() {
                        write(&self.rows).live = false;
                    }
                }
                None if !self.line.borrow_and_update().up => {
                    if self.line.changed().await.is_err() {
                        return;
                    }
                    continue;
                }
                None => match self.again().await {
                    Ok(again) => {
                        let _ = self.keys.send(ChangedKey::Any);
                        feed = Some(again);
                    }
                    Err(error) => {
                        debug!(bucket = self.bucket.name(), %error, "cannot watch");
                        sleep(BETWEEN_TRIES).await;
                        continue;
                    }
                },
            }
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Reads the complete state again.
    async fn again(&mut self) -> Result<KvWatch, ControlError> {
        self.line.mark_unchanged();
        let mut feed = self.bucket.feed().await?;
        let rows = tokio::select! {
            rows = read_all(&mut feed, self.bucket.name()) => rows?,
            _ = self.line.changed() => {
                let source = "the connection was lost again".into();
                return Err(ControlError::Unavailable { action: "watch".to_owned(), source });
            }
        };
        *write(&self.rows) = rows;
        Ok(feed)
    }
}

/// Reads the first copy.
async fn read_all<T: Kept>(feed: &mut KvWatch, bucket: &str) -> Result<Rows<T>, ControlError> {
    let mut rows = Rows { live: true, ..Rows::default() };
    let mut left = feed.held;
    while left > 0 {
        let Ok(fact) = timeout(SILENCE, feed.next()).await else { break };
        let fact = fact?;
        left = if fact.behind == 0 { 0 } else { left - 1 };
        note(&mut rows, fact, bucket);
    }
    Ok(rows)
}

fn note<T: Kept>(rows: &mut Rows<T>, fact: KvEvent, bucket: &str) {
    let KvEvent { key, value, revision, .. } = fact;
    rows.unreadable.remove(&key);
    let Some(bytes) = value else {
        rows.values.remove(&key);
        return;
    };
    match model::decode::<T>(&bytes) {
        Ok(value) => {
            rows.values.insert(key, Versioned { value: Arc::new(value), revision: Revision::new(revision) });
        }
        Err(error) => {
            warn!(bucket, key, %error, "a value cannot be read, and is left as it is");
            rows.values.remove(&key);
            rows.unreadable.insert(key, error.to_string());
        }
    }
}

fn read<T>(rows: &RwLock<Rows<T>>) -> RwLockReadGuard<'_, Rows<T>> {
    // Every write under this lock leaves consistent data, so a poisoned lock is safe to use.
    rows.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write<T>(rows: &RwLock<Rows<T>>) -> RwLockWriteGuard<'_, Rows<T>> {
    rows.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}
