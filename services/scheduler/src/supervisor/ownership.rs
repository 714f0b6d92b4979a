//! Which Sources this scheduler looks after, as Sources and schedulers come and go.

use std::collections::HashSet;

use control::{ChangedKey, Role, assign};
use model::SourceId;

use super::{Owned, Supervisor, jobs};
use crate::source_line::SourceLine;

impl Supervisor {
    /// Takes and leaves Sources as schedulers come and go.
    pub(super) fn share(&mut self) {
        let members = self.live_members();
        let mut ours = HashSet::new();
        self.context.sources.for_each(|source| {
            if assign(&members, &source.id) == Some(&self.context.me) {
                ours.insert(source.id.clone());
            }
        });
        let left: Vec<SourceId> =
            self.owned.keys().filter(|source| !ours.contains(*source)).cloned().collect();
        left.iter().for_each(|source| self.leave(source));
        for source in ours {
            self.take(&source);
        }
        self.context.metrics.sources(self.owned.len());
    }

    pub(super) fn live_members(&self) -> Vec<control::MemberId> {
        let mut there = self.members.of(Role::Scheduler);
        if !there.contains(&self.context.me) {
            // Other schedulers may see this one late, and so may its own view.
            there.push(self.context.me.clone());
        }
        there
    }

    pub(super) fn sources_changed(&mut self, changed: &ChangedKey) {
        let ChangedKey::One(key) = changed else {
            self.share();
            return self.changed(changed);
        };
        let Ok(source) = key.parse::<SourceId>() else { return };
        let is_there = self.context.sources.get(&source).is_some();
        let is_ours = is_there && assign(&self.live_members(), &source) == Some(&self.context.me);
        if is_ours {
            self.take(&source);
            self.look_at(&source);
        } else {
            self.leave(&source);
        }
        self.context.metrics.sources(self.owned.len());
    }

    /// Takes a Source into this scheduler's care. What is known of its past is read first.
    pub(super) fn take(&mut self, source: &SourceId) {
        if self.owned.get(source).is_some_and(|owned| !owned.keep.is_cancelled()) {
            return;
        }
        let keep = self.stop.child_token();
        // A job of an earlier ownership may still end.
        let is_busy = self.owned.get(source).is_some_and(|owned| owned.is_busy);
        let line = SourceLine { polled_at: self.context.clock.now(), ..SourceLine::default() };
        self.owned.insert(source.clone(), Owned { line, keep, is_busy, task: None, is_noticed: false });
        if !is_busy {
            self.look_back(source);
        }
    }

    /// Releases a Source. A job in progress ends first.
    pub(super) fn leave(&mut self, source: &SourceId) {
        let Some(owned) = self.owned.get(source) else { return };
        owned.keep.cancel();
        let is_busy = owned.is_busy;
        self.agenda.clear(source);
        self.places.withdraw(source);
        self.notices.end(source);
        if !is_busy {
            self.forget(source);
        }
    }

    pub(super) fn forget(&mut self, source: &SourceId) {
        self.owned.remove(source);
        self.limits.polls.forget(source);
        // The next owner counts them.
        self.context.metrics.forget(source);
    }

    pub(super) fn look_back(&mut self, source: &SourceId) {
        let context = self.context.clone();
        let limit = self.limits.submissions.clone();
        let id = source.clone();
        self.spawn(source, |keep| jobs::look_back(context, id, limit, keep));
    }
}
