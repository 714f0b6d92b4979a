//! Earlier failures that no list contains any more.

use catalog::Batch;
use model::SetId;
use planning::{Lists, is_listed_by_others};
use reconcile::AbsentSpool;

use super::BATCH;
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;
use crate::run::problems::subject;

impl Planner {
    /// Drops earlier failures of resources that are not stored and in no list any more: the Source does not offer
    /// them. One list is enough, because no data is lost. A list that contains the resource again asks for it again.
    pub(crate) async fn settle_unlisted_failures(
        &mut self,
        ctx: &mut RunContext,
        set: &SetId,
        lists: &Lists,
        unlisted: AbsentSpool,
    ) -> Result<(), HarvestError> {
        let Ok(unlisted) = unlisted.all() else { return Ok(()) };
        let mut batch = Batch::new();
        for uri in unlisted {
            let problem = ctx.catalog().await?.problem(&subject(&uri)).await?;
            let listing = problem.and_then(|problem| problem.listing);
            if listing.is_none_or(|listing| is_listed_by_others(set, lists, &listing)) {
                continue;
            }
            let is_held =
                ctx.catalog().await?.resource(&uri).await?.is_some_and(|record| record.is_present());
            if is_held || self.is_asked_for(ctx, set, lists, &uri).await? {
                continue;
            }
            batch.delete_pending(&uri);
            batch.delete_problem(&subject(&uri));
            if batch.len() >= BATCH {
                ctx.commit(std::mem::take(&mut batch)).await?;
            }
        }
        ctx.commit(batch).await
    }
}
