//! A look at a Source: what has changed is published, under the lease of the publication.

use std::time::Duration;

use control::{Claim, Leases, MemberId};
use model::{Clock as _, SourceId, SystemClock};
use tokio::time::timeout;

use super::agenda::{Look, Looked};
use crate::follow::{self, Found};
use crate::harvest::is_missing;
use crate::turns::Turns;

/// What every look needs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Looker {
    pub(crate) turns: Turns,
    pub(crate) leases: Leases,
    pub(crate) me: MemberId,
}

impl Looker {
    /// Looks at a Source in its turn. Returns what came of it, and whether it took long. It may be dropped at any time.
    pub(crate) async fn look(&self, source: &SourceId, look: &Look) -> (Looked, bool) {
        let (looked, is_slow) = self.turns.run(look.is_slow, |time| self.look_now(source, look, time)).await;
        // A new Resource List takes long, and the next look tells changes: it waits for no turn of those that take long.
        let is_quick =
            matches!(looked, Looked::Published { until_told, .. } if self.turns.are_longer_than(until_told));
        (looked, is_slow && !is_quick)
    }

    /// A look that ends after this time. None if it was not enough: what was done by then stays.
    async fn look_now(&self, source: &SourceId, look: &Look, time: Duration) -> Option<Looked> {
        // Boxed here and below: nested futures would overflow the stack of a worker thread.
        let lease = match Box::pin(self.leases.acquire(source, &self.me, SystemClock.now())).await {
            Ok(Claim::Taken(lease)) => lease,
            Ok(Claim::Held(record)) => {
                tracing::debug!(source.id = %source, holder = %record.holder, "another publisher writes it");
                return Some(Looked::Held);
            }
            Err(error) => {
                tracing::warn!(source.id = %source, %error, "the lease of a publication cannot be had");
                return Some(Looked::Failed);
            }
        };
        let work = Box::pin(follow::look(&look.set.shared, look.published));
        let looked = tokio::select! {
            looked = timeout(time, work) => match looked {
                Err(_) => None,
                Ok(Ok(Found { next_change, changes, until_told, in_all })) => {
                    Some(Looked::Published { changes, next_change, until_told, in_all })
                }
                Ok(Err(error)) if is_missing(&error) => Some(Looked::Empty),
                Ok(Err(error)) => {
                    tracing::error!(source.id = %source, %error, "a Source cannot be published now: it is tried again");
                    Some(Looked::Failed)
                }
            },
            // Another publisher may write soon.
            () = lease.lost().cancelled() => {
                tracing::warn!(source.id = %source, "the lease of a publication is lost: it is tried again");
                Some(Looked::Failed)
            }
        };
        lease.release().await;
        looked
    }
}
