//! Periodic tasks, each at its time: requests to hubs, messages to send, inboxes to read.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use control::{Member, MemberId, Role, WatchCache, assign};
use jiff::Timestamp;
use model::{Clock, SourceId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Concurrent tasks.
const AT_A_TIME: usize = 8;
/// Minimum and maximum time between two checks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// A task that is due at a given time.
pub(crate) struct Due<K, E> {
    /// Key of the task: at most one task per key is in progress.
    pub(crate) key: K,
    pub(crate) at: Timestamp,
    pub(crate) errand: E,
}

/// A provider of periodic tasks.
pub(crate) trait Periodic: Clone + Send + Sync + 'static {
    type Key: Clone + Eq + Hash + Send + 'static;
    type Errand: Send + 'static;

    /// The tasks, now and later. Changes from here on wake [`changed`](Self::changed).
    fn look(&mut self, now: Timestamp) -> Vec<Due<Self::Key, Self::Errand>>;

    /// Waits until the tasks may have changed.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;

    /// Executes a task. On return it is due later or not at all; or the result could not be recorded, and this has
    /// waited a little.
    fn run(&self, errand: Self::Errand) -> impl Future<Output = ()> + Send;
}

/// Executes due tasks until `stop`. Unfinished tasks are dropped then: the next owner finds them due again.
pub(crate) async fn make<R: Periodic>(mut periodic: R, clock: Arc<dyn Clock>, stop: CancellationToken) {
    let mut working = JoinSet::new();
    let mut in_hand: HashSet<R::Key> = HashSet::new();
    while !stop.is_cancelled() {
        let next_look = Instant::now() + BETWEEN_LOOKS;
        let now = clock.now();
        let mut next_at = None;
        let mut held_up = false;
        for Due { key, at, errand } in periodic.look(now) {
            if in_hand.contains(&key) {
                continue;
            }
            if at > now {
                next_at = next_at.into_iter().chain([at]).min();
                continue;
            }
            if working.len() >= AT_A_TIME {
                held_up = true;
                break;
            }
            in_hand.insert(key.clone());
            let periodic = periodic.clone();
            working.spawn(async move {
                periodic.run(errand).await;
                key
            });
        }
        let wait = next_at.map_or(LONGEST_SLEEP, |at| until(at, now));
        tokio::select! {
            () = async {
                periodic.changed().await;
                sleep_until(next_look).await;
            }, if !held_up => {}
            () = sleep(wait), if !held_up => {}
            Some(ended) = working.join_next() => match ended {
                Ok(key) => {
                    in_hand.remove(&key);
                    // This process may not have received its own writes yet.
                    sleep_until(next_look).await;
                }
                // It is unknown which task failed: all that are not in progress are checked again.
                Err(error) => {
                    tracing::error!(%error, "something that was to be done at its time came upon a mistake");
                    in_hand.clear();
                    sleep(BETWEEN_LOOKS * 4).await;
                }
            },
            () = stop.cancelled() => {}
        }
    }
    working.shutdown().await;
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default().clamp(BETWEEN_LOOKS, LONGEST_SLEEP)
}

/// Whether a Source is assigned to this scheduler.
pub(crate) fn is_ours(me: &MemberId, members: &WatchCache<Member>) -> impl Fn(&SourceId) -> bool + use<> {
    let me = me.clone();
    let mut there = members.of(Role::Scheduler);
    if !there.contains(&me) {
        there.push(me.clone());
    }
    move |source| assign(&there, source) == Some(&me)
}
