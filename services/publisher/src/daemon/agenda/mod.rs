//! Which publication is looked at when.

mod item;
mod pauses;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::SourceId;
use tokio::time::Instant;

use super::mark::Mark;
use crate::set::Set;

pub(crate) use item::{Item, Look, Looked};

/// All publications, and the times of their next looks.
#[derive(Default)]
pub(crate) struct Agenda {
    items: BTreeMap<SourceId, Item>,
    due: BTreeSet<(Instant, SourceId)>,
}

impl Agenda {
    pub(crate) fn items(&self) -> impl Iterator<Item = (&SourceId, &Item)> {
        self.items.iter()
    }

    pub(crate) fn sources(&self) -> Vec<SourceId> {
        self.items.keys().cloned().collect()
    }

    pub(crate) fn get(&mut self, source: &SourceId) -> Option<&mut Item> {
        self.items.get_mut(source)
    }

    pub(crate) fn add(&mut self, source: SourceId, set: Set) {
        self.items.insert(source, Item::new(set));
    }

    /// Removes a publication. A look under way ends by itself, and counts for nothing.
    pub(crate) fn remove(&mut self, source: &SourceId) {
        self.plan(source, None);
        if let Some(hubs) = self.items.remove(source).and_then(|item| item.hubs) {
            hubs.cancel();
        }
    }

    /// Has a Source looked at as soon as it may be.
    pub(crate) fn look_soon(&mut self, source: &SourceId) {
        self.look_after(source, Duration::ZERO);
    }

    fn look_after(&mut self, source: &SourceId, pause: Duration) {
        let Some(item) = self.items.get(source).filter(|item| item.is_mine) else { return };
        let at = (Instant::now() + pause).max(item.not_before);
        let at = item.due.map_or(at, |due| due.min(at));
        self.plan(source, Some(at));
    }

    /// The same, also if its catalog has not changed.
    pub(crate) fn look_anew(&mut self, source: &SourceId) {
        self.look_anew_after(source, Duration::ZERO);
    }

    /// Has all Sources looked at anew: those with such a URL first.
    pub(crate) fn look_anew_first(&mut self, is_first: impl Fn(&str) -> bool) {
        for source in self.sources() {
            let item = self.items.get(&source);
            let is_first = item.is_some_and(|item| is_first(&item.set.shared.publication().source.url));
            self.look_anew_after(&source, if is_first { Duration::ZERO } else { pauses::AFTER_FIRST });
        }
    }

    fn look_anew_after(&mut self, source: &SourceId, pause: Duration) {
        if let Some(item) = self.items.get_mut(source) {
            item.is_stale = true;
        }
        self.look_after(source, pause);
    }

    /// Looks at a Source no more, since it is another publisher's.
    pub(crate) fn look_no_more(&mut self, source: &SourceId) {
        self.plan(source, None);
    }

    /// What a run tells: the Source is looked at if there is news.
    pub(crate) fn note_run(&mut self, source: &SourceId, mark: &Mark) {
        if self.items.get(source).is_some_and(|item| item.has_news(mark)) {
            self.look_soon(source);
        }
    }

    /// When the next look is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A Source that is due now. One whose look is still under way is due again after it.
    pub(crate) fn take_due(&mut self) -> Option<SourceId> {
        let (at, source) = self.due.first()?.clone();
        if at > Instant::now() {
            return None;
        }
        self.plan(&source, None);
        Some(source)
    }

    /// Begins a look at what runs tell by now. None if one is under way: another one follows it.
    pub(crate) fn begin(&mut self, source: &SourceId, mark: Option<Mark>) -> Option<Look> {
        let look = self.items.get_mut(source)?.begin(mark);
        if look.is_none() {
            self.plan(source, Some(Instant::now() + pauses::LEAST));
        }
        look
    }

    /// Notes what came of a look, and plans the next one, if the Source is still published.
    pub(crate) fn end(&mut self, source: &SourceId, looked: Looked, is_slow: bool) {
        let Some(item) = self.items.get_mut(source) else { return };
        let now = Instant::now();
        let pause = item.end(looked, is_slow, now);
        if item.is_mine {
            let at = item.due.map_or(now + pause, |due| due.max(item.not_before).min(now + pause));
            self.plan(source, Some(at));
        }
    }

    fn plan(&mut self, source: &SourceId, at: Option<Instant>) {
        let Some(item) = self.items.get_mut(source) else { return };
        if let Some(before) = std::mem::replace(&mut item.due, at) {
            self.due.remove(&(before, source.clone()));
        }
        if let Some(at) = at {
            self.due.insert((at, source.clone()));
        }
    }
}
