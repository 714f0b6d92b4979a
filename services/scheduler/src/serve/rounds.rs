//! What is done again and again, each thing at its time: hubs that are to be asked, messages that are to be sent, inboxes
//! that are to be read.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use control::{Member, MemberId, Role, View, assign};
use jiff::Timestamp;
use model::{Clock, SourceId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Things that are in hand at a time.
const AT_A_TIME: usize = 8;
/// The least time between two looks, and the longest.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Something that is to be done at its time.
pub(super) struct Due<K, E> {
    /// What it is known by: of each, one is in hand at a time.
    pub(super) key: K,
    pub(super) at: Timestamp,
    pub(super) errand: E,
}

/// Whoever has things to do.
pub(super) trait Rounds: Clone + Send + Sync + 'static {
    type Key: Clone + Eq + Hash + Send + 'static;
    type Errand: Send + 'static;

    /// What is to be done, now and later. What changes from here on wakes [`changed`](Self::changed).
    fn look(&mut self, now: Timestamp) -> Vec<Due<Self::Key, Self::Errand>>;

    /// Waits until there may be something else to do.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;

    /// Does it. When this returns, it is due later or not at all; or it could not be written down, and this has waited a little.
    fn run(&self, errand: Self::Errand) -> impl Future<Output = ()> + Send;
}

/// Does what is due until `stop`. What is in hand then is let go: whoever does it next finds it due again.
pub(super) async fn make<R: Rounds>(mut rounds: R, clock: Arc<dyn Clock>, stop: CancellationToken) {
    let mut working = JoinSet::new();
    let mut in_hand: HashSet<R::Key> = HashSet::new();
    while !stop.is_cancelled() {
        let next_look = Instant::now() + BETWEEN_LOOKS;
        let now = clock.now();
        let (mut next_at, mut held_up) = (None, false);
        for Due { key, at, errand } in rounds.look(now) {
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
            let rounds = rounds.clone();
            working.spawn(async move {
                rounds.run(errand).await;
                key
            });
        }
        let wait = next_at.map_or(LONGEST_SLEEP, |at| until(at, now));
        tokio::select! {
            () = async {
                rounds.changed().await;
                sleep_until(next_look).await;
            }, if !held_up => {}
            () = sleep(wait), if !held_up => {}
            Some(ended) = working.join_next() => match ended {
                Ok(key) => {
                    in_hand.remove(&key);
                    // What it has written may not have been heard of here.
                    sleep_until(next_look).await;
                }
                // Nobody knows whose it was: all that is not under way is looked at again.
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

/// Whether a Source falls to this scheduler.
pub(super) fn is_ours(me: &MemberId, members: &View<Member>) -> impl Fn(&SourceId) -> bool + use<> {
    let me = me.clone();
    let mut there = members.of(Role::Scheduler);
    if !there.contains(&me) {
        there.push(me.clone());
    }
    move |source| assign(&there, source) == Some(&me)
}
