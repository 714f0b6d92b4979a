//! What has changed that tasks depend on.

use control::{ChangedKey, ChangedKeys, Member, MemberId, Role, SourceSpec, WatchCache, assign};
use model::SourceId;

/// The changes of the Sources and of rows, key by key, and the schedulers that share the Sources.
pub(crate) struct Feed {
    sources: ChangedKeys,
    rows: ChangedKeys,
    me: MemberId,
    members: WatchCache<Member>,
    schedulers: Vec<MemberId>,
}

impl Feed {
    /// The changes from now on. `rows`: those of the rows that have tasks.
    pub(crate) fn new(
        sources: &WatchCache<SourceSpec>,
        rows: ChangedKeys,
        me: &MemberId,
        members: &WatchCache<Member>,
    ) -> Self {
        let mut members = members.clone();
        members.mark_seen();
        let schedulers = schedulers(me, &members);
        Self { sources: sources.changed_keys(), rows, me: me.clone(), members, schedulers }
    }

    /// Waits for the next change: the key of a Source or of a row. Any, if other schedulers share the Sources now.
    pub(super) async fn next(&mut self) -> ChangedKey {
        loop {
            tokio::select! {
                changed = self.sources.next() => return changed,
                changed = self.rows.next() => return changed,
                () = self.members.changed() => {
                    let now = schedulers(&self.me, &self.members);
                    // Most changes are heartbeats.
                    if now != self.schedulers {
                        self.schedulers = now;
                        return ChangedKey::Any;
                    }
                }
            }
        }
    }

    /// Whether a Source is assigned to this scheduler.
    pub(super) fn is_ours(&self, source: &SourceId) -> bool {
        assign(&self.schedulers, source) == Some(&self.me)
    }
}

fn schedulers(me: &MemberId, members: &WatchCache<Member>) -> Vec<MemberId> {
    let mut there = members.of(Role::Scheduler);
    if !there.contains(me) {
        there.push(me.clone());
    }
    there
}
