//! Which Sources hubs tell of, and what follows from their deliveries.

use std::collections::{HashMap, HashSet};

use control::SubscriptionState;
use model::SourceId;

use super::{Supervisor, jobs};

impl Supervisor {
    /// Listens for what hubs deliver, while no run of the Source is under way. A task gives way to it.
    pub(super) fn listen(&mut self, source: &SourceId) {
        let Some(owned) = self.owned.get(source) else { return };
        let last = self.context.runs.get(source);
        let is_free = !owned.is_busy || owned.task.is_some();
        let is_idle = is_free && last.as_ref().is_none_or(|run| run.state.is_over());
        let is_enabled = self.context.sources.get(source).is_some_and(|spec| spec.enabled);
        if is_idle && is_enabled && self.subscribed.contains_key(source) {
            let pause = self.context.settings.hint_pause();
            let last = last.as_ref().map(|run| &*run.value);
            self.notices.listen(source, crate::due::held_back(last, pause, self.context.clock.now()));
        } else {
            self.notices.end(source);
        }
    }

    /// A hub has delivered something for an idle Source.
    pub(super) fn noticed(&mut self, source: &SourceId) {
        self.notices.end(source);
        let Some(owned) = self.owned.get_mut(source).filter(|owned| !owned.keep.is_cancelled()) else {
            return;
        };
        if let Some(task) = &owned.task {
            owned.is_noticed = true;
            task.cancel();
        } else if !owned.is_busy {
            let context = self.context.clone();
            let limit = self.limits.submissions.clone();
            let id = source.clone();
            let asked_by = control::AskedBy::Notification;
            self.spawn(source, |keep| jobs::submit(context, id, asked_by, limit, keep));
        }
    }

    /// Which Sources hubs tell of.
    pub(super) fn check_subscriptions(&mut self) {
        let mut subscribed: HashMap<SourceId, bool> = HashMap::new();
        self.context.subscriptions.for_each(|one| {
            let is_ending = one.state == SubscriptionState::Ending;
            subscribed.entry(one.source.clone()).and_modify(|all| *all &= is_ending).or_insert(is_ending);
        });
        let before = std::mem::replace(&mut self.subscribed, subscribed);
        let all = before.keys().chain(self.subscribed.keys());
        let changed: HashSet<SourceId> =
            all.filter(|source| before.get(*source) != self.subscribed.get(*source)).cloned().collect();
        changed.iter().for_each(|source| self.look_at(source));
    }
}
