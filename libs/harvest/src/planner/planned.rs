//! Plans for the resources of a batch of entries, while these are decided.

use catalog::Batch;
use foldhash::fast::RandomState;
use model::{Linked, PendingRecord, ResourceUri};
use planning::ByUri;

use crate::run::RunContext;

/// Plans by resource. Several entries may be about one resource. Each sees the plan of the one before it, and only
/// the last plan is written.
#[derive(Debug, Default)]
pub(crate) struct Plans(ByUri<Slot>);

#[derive(Debug)]
struct Slot {
    /// Boxed until it is settled: it is large, and is passed from here to the window.
    plan: Option<Box<PendingRecord>>,
    is_changed: bool,
}

impl Plans {
    /// The existing plans, with capacity for one plan per entry.
    pub(crate) fn of(
        known: impl IntoIterator<Item = (ResourceUri, Option<PendingRecord>)>,
        entries: usize,
    ) -> Self {
        let mut plans = Self(ByUri::with_capacity_and_hasher(entries, RandomState::default()));
        plans.learn(known);
        plans
    }

    /// Adds existing plans.
    pub(crate) fn learn(&mut self, known: impl IntoIterator<Item = (ResourceUri, Option<PendingRecord>)>) {
        let planned = known.into_iter().filter_map(|(uri, plan)| Some((uri, plan?)));
        self.0
            .extend(planned.map(|(uri, plan)| (uri, Slot { plan: Some(Box::new(plan)), is_changed: false })));
    }

    /// Marks the plan for a resource with the link that leads to it, if it has another mark.
    pub(crate) fn mark(&mut self, uri: &ResourceUri, linked: Box<Linked>) {
        if let Some(slot) = self.0.get_mut(uri)
            && let Some(plan) = slot.plan.as_mut()
            && plan.listing.linked.as_ref() != Some(&linked)
        {
            plan.listing.linked = Some(linked);
            slot.is_changed = true;
        }
    }

    /// The plan for a resource.
    pub(crate) fn get(&self, uri: &ResourceUri) -> Option<&PendingRecord> {
        self.0.get(uri).and_then(|slot| slot.plan.as_deref())
    }

    /// The plan for a resource, mutable.
    pub(crate) fn get_mut(&mut self, uri: &ResourceUri) -> Option<&mut PendingRecord> {
        let slot = self.0.get_mut(uri)?;
        slot.is_changed = true;
        slot.plan.as_deref_mut()
    }

    /// Whether a resource has or had a plan.
    pub(crate) fn has_met(&self, uri: &ResourceUri) -> bool {
        self.0.contains_key(uri)
    }

    /// Sets a plan. Returns whether it replaces another plan.
    pub(crate) fn put(&mut self, uri: ResourceUri, plan: Box<PendingRecord>) -> bool {
        let before = self.0.insert(uri, Slot { plan: Some(plan), is_changed: true });
        before.is_some_and(|slot| slot.plan.is_some())
    }

    /// Removes a plan. Returns whether there was one.
    pub(crate) fn give_up(&mut self, uri: &ResourceUri) -> bool {
        let Some(slot) = self.0.get_mut(uri) else { return false };
        slot.is_changed = true;
        slot.plan.take().is_some()
    }

    /// Writes the changed plans, in the order of URIs.
    pub(crate) fn write(self, ctx: &mut RunContext, batch: &mut Batch) {
        let mut changed: Vec<_> = self.0.into_iter().filter(|(_, slot)| slot.is_changed).collect();
        changed.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        batch.reserve(changed.len());
        for (uri, slot) in changed {
            match slot.plan {
                Some(plan) => ctx.put_pending(batch, &uri, &plan),
                None => batch.delete_pending(&uri),
            }
        }
    }
}
