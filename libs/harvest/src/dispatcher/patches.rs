//! Patches of the resources in a job: the stored versions that they are applied to, and when to stop trying.

use model::{
    Assurance, FetchItem, MOST_PATCHES_IN_VAIN, PatchBase, PatchItem, PatchPlan, PatchUnused, PatchUse,
    ResourceUri,
};

use crate::error::HarvestError;
use crate::run::RunContext;

/// How many patches in a row were tried in vain.
#[derive(Debug, Default)]
pub(crate) struct PatchStreak {
    in_vain: u32,
}

/// The patches of a plan for the fetcher, without what they are applied to.
pub(crate) fn item(plan: &PatchPlan) -> PatchItem {
    PatchItem { base: None, steps: plan.steps.clone(), unused: plan.unused }
}

impl PatchStreak {
    /// Records what became of patches.
    pub(crate) fn note(&mut self, used: Option<&PatchUse>) {
        if let Some(used) = used {
            self.in_vain = used.in_vain_after(self.in_vain);
        }
    }

    /// Why a patch is not tried any more in this run.
    fn given_up(&self) -> Option<PatchUnused> {
        (self.in_vain >= MOST_PATCHES_IN_VAIN).then_some(PatchUnused::GivenUp)
    }

    /// Adds the stored versions that patches are applied to, to the items of a job that is about to be sent. They are
    /// read now, because another set may have settled a version since the patches were planned.
    pub(crate) async fn prepare(
        &self,
        ctx: &mut RunContext,
        items: &mut [FetchItem],
    ) -> Result<(), HarvestError> {
        let is_tried = |item: &FetchItem| item.patch.as_ref().is_some_and(|patch| patch.unused.is_none());
        let tried: Vec<usize> = (0..items.len()).filter(|&n| is_tried(&items[n])).collect();
        let uris: Vec<ResourceUri> = match self.given_up() {
            None => tried.iter().map(|&n| items[n].uri.clone()).collect(),
            Some(_) => Vec::new(),
        };
        let mut records = ctx.records_of(&uris).await?.into_iter();
        for n in tried {
            let Some(patch) = items[n].patch.as_mut() else { continue };
            let held = records.next().flatten().and_then(|record| record.bitstream);
            match held.filter(|held| held.assurance == Assurance::Digest) {
                Some(held) => {
                    let (location, computed) = (held.location, held.computed);
                    patch.base = Some(PatchBase { location, computed, media_type: held.media_type });
                }
                None => {
                    patch.steps = Vec::new();
                    patch.unused = self.given_up().or(Some(PatchUnused::NoBase));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_in_a_row_that_were_tried_are_enough() {
        let mut streak = PatchStreak::default();
        let applied = PatchUse::Applied { patches: Vec::new(), bytes: 1, saved: 1 };
        let failed = PatchUse::Unused(PatchUnused::OtherResult);
        let not_tried = PatchUse::Unused(PatchUnused::UnknownType);
        for used in [&failed, &failed, &applied, &failed, &failed, &failed, &not_tried, &failed] {
            streak.note(Some(used));
        }
        assert_eq!(streak.given_up(), None);
        streak.note(Some(&failed));
        streak.note(None);
        assert_eq!(streak.given_up(), Some(PatchUnused::GivenUp));
    }
}
