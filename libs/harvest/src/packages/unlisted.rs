//! Packages that no Resource Dump lists any more.

use std::collections::{HashMap, HashSet};

use catalog::Batch;
use futures::TryStreamExt;
use model::{PackageState, SetId};

use super::names;
use crate::error::HarvestError;
use crate::planner::kept_names::are_kept;
use crate::run::RunContext;

/// Forgets settled packages that the dumps of their set no longer list, or whose dump the set no longer offers: their
/// records, the names that they list, and the problems with their entries. `dumps` are those that this run found
/// modified and read whole, with their sets.
pub(super) async fn forget_unlisted(
    ctx: &mut RunContext,
    dumps: &HashMap<String, SetId>,
) -> Result<(), HarvestError> {
    if dumps.is_empty() {
        return Ok(());
    }
    let sets: HashSet<&SetId> = dumps.values().collect();
    let mut packages = ctx.catalog().await?.scan_packages().await?;
    while let Some((uri, record)) = packages.try_next().await? {
        let is_settled = record.state == PackageState::Done && record.run != ctx.run.id;
        if !is_settled || !are_kept(&record) || !sets.contains(&record.set) {
            continue;
        }
        if dumps.contains_key(&record.document) || !is_offered(ctx, &record.document).await? {
            ctx.forget_entry_problems(&uri).await?;
            let mut batch = Batch::new();
            names::forget(ctx, &mut batch, &uri).await?;
            batch.delete_package(&uri);
            ctx.commit(batch).await?;
        }
    }
    Ok(())
}

/// Whether this run found a dump among those of its set.
async fn is_offered(ctx: &mut RunContext, dump: &str) -> Result<bool, HarvestError> {
    let known = ctx.catalog().await?.document(dump).await?;
    Ok(known.is_some_and(|known| known.run == ctx.run.id))
}
