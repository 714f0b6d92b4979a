//! What is planned of the resources that a batch of entries names, while it is decided about them.

use catalog::Batch;
use foldhash::fast::RandomState;
use model::{PendingRecord, ResourceUri};

use crate::by_uri::ByUri;
use crate::fresh::Fresh;

/// Plans by their resources. Several entries may speak of one resource: each sees what the one before it planned, and only what the last one leaves is written.
#[derive(Debug, Default)]
pub(crate) struct Plans(ByUri<Slot>);

#[derive(Debug)]
struct Slot {
    /// In a place of its own, where it stays until it is settled: it is large, and is handed on from here to the window.
    plan: Option<Box<PendingRecord>>,
    is_changed: bool,
}

impl Plans {
    /// What is planned already; with room for as many plans as entries may ask for.
    pub(crate) fn of(
        known: impl IntoIterator<Item = (ResourceUri, Option<PendingRecord>)>,
        entries: usize,
    ) -> Self {
        let mut plans = ByUri::with_capacity_and_hasher(entries, RandomState::default());
        let planned = known.into_iter().filter_map(|(uri, plan)| Some((uri, plan?)));
        plans
            .extend(planned.map(|(uri, plan)| (uri, Slot { plan: Some(Box::new(plan)), is_changed: false })));
        Self(plans)
    }

    /// The plan for a resource.
    pub(crate) fn get(&self, uri: &ResourceUri) -> Option<&PendingRecord> {
        self.0.get(uri).and_then(|slot| slot.plan.as_deref())
    }

    /// The plan for a resource, to be changed.
    pub(crate) fn get_mut(&mut self, uri: &ResourceUri) -> Option<&mut PendingRecord> {
        let slot = self.0.get_mut(uri)?;
        slot.is_changed = true;
        slot.plan.as_deref_mut()
    }

    /// Whether there is or was a plan for a resource.
    pub(crate) fn has_met(&self, uri: &ResourceUri) -> bool {
        self.0.contains_key(uri)
    }

    /// Plans something. Returns whether it takes the place of another plan.
    pub(crate) fn put(&mut self, uri: ResourceUri, plan: Box<PendingRecord>) -> bool {
        let before = self.0.insert(uri, Slot { plan: Some(plan), is_changed: true });
        before.is_some_and(|slot| slot.plan.is_some())
    }

    /// Plans nothing any more. Returns whether there was a plan.
    pub(crate) fn give_up(&mut self, uri: &ResourceUri) -> bool {
        let Some(slot) = self.0.get_mut(uri) else { return false };
        slot.is_changed = true;
        slot.plan.take().is_some()
    }

    /// Writes what has changed, in the order of URIs.
    pub(crate) fn write(self, batch: &mut Batch, fresh: &mut Fresh) {
        let mut changed: Vec<_> = self.0.into_iter().filter(|(_, slot)| slot.is_changed).collect();
        changed.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        batch.reserve(changed.len());
        for (uri, slot) in changed {
            match slot.plan {
                Some(plan) => {
                    batch.put_pending(&uri, &plan);
                    fresh.note(uri, plan);
                }
                None => batch.delete_pending(&uri),
            }
        }
    }
}
