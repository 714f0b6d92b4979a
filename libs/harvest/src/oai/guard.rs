//! The deletion guard for records that a repository shows as deleted. A repository may do so by mistake, for all its
//! records at once. So many deletions wait for the operator, as many absences do.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Action, ResourceUri, SetId};
use planning::{AbsenceCount, Lists};
use resourcesync::Change;

use crate::error::HarvestError;
use crate::oai::BATCH;
use crate::planner::Planner;
use crate::run::RunContext;

/// Deletions that are never too many.
const FEW: u64 = 100;

/// Deletions of one list.
#[derive(Debug, Default)]
struct Told {
    deletions: u64,
    /// The oldest of them.
    oldest: Option<Timestamp>,
}

/// Holds back deletions of stored records, if a list shows more of them than a run may delete. Its cursor goes back
/// to the oldest of them, so that the next run reads them again.
pub(crate) async fn guard_deletions(ctx: &mut RunContext, planner: &mut Planner) -> Result<(), HarvestError> {
    let percent = ctx.options.max_deletes_percent;
    let is_any = ctx.sets.values().any(|set| set.oai.is_some() && set.has_baseline);
    if !is_any || percent >= 100 || !ctx.is_anything_planned() {
        return Ok(());
    }
    let told = count(ctx).await?;
    for (set, Told { deletions, oldest }) in told {
        if deletions <= FEW {
            continue;
        }
        let held = held(ctx, &set).await?;
        let count = AbsenceCount { held, absent: deletions, to_delete: deletions };
        if !ctx.deletion_guard().stops(&count) {
            continue;
        }
        hold_back(ctx, &set).await?;
        let mut batch = Batch::new();
        if let Some(known) = ctx.sets.get_mut(&set)
            && let Some(list) = &mut known.oai
        {
            list.progress.cursor = list.progress.cursor.min(oldest);
            batch.put_set(&set, known);
        }
        ctx.commit(batch).await?;
        // Its problem is settled when the changes are read again.
        let document = format!("{set}#changes");
        let lists = Lists { uris: vec![document.clone()], document, at: None, set };
        planner.trip(ctx, &lists, &count).await?;
    }
    Ok(())
}

/// The deletions of stored records, by list.
async fn count(ctx: &mut RunContext) -> Result<HashMap<SetId, Told>, HarvestError> {
    let mut told: HashMap<SetId, Told> = HashMap::new();
    let mut after: Option<ResourceUri> = None;
    loop {
        let found = deletions(ctx, after.as_ref()).await?;
        let Some((uri, _, _)) = found.last() else { return Ok(told) };
        after = Some(uri.clone());
        let uris: Vec<ResourceUri> = found.iter().map(|(uri, _, _)| uri.clone()).collect();
        let records = ctx.records_of(&uris).await?;
        for ((_, set, at), record) in found.into_iter().zip(records) {
            if record.is_some_and(|record| record.is_present()) {
                let told = told.entry(set).or_default();
                told.deletions += 1;
                told.oldest = [told.oldest, at].into_iter().flatten().min();
            }
        }
    }
}

/// Removes the planned deletions of a list.
async fn hold_back(ctx: &mut RunContext, set: &SetId) -> Result<(), HarvestError> {
    let mut after: Option<ResourceUri> = None;
    loop {
        let found = deletions(ctx, after.as_ref()).await?;
        let Some((uri, _, _)) = found.last() else { return Ok(()) };
        after = Some(uri.clone());
        let mut batch = Batch::new();
        for (uri, _, _) in found.iter().filter(|(_, of, _)| of == set) {
            batch.delete_pending(uri);
        }
        ctx.commit(batch).await?;
    }
}

/// The next planned deletions that lists of repositories show, with their times.
async fn deletions(
    ctx: &mut RunContext,
    after: Option<&ResourceUri>,
) -> Result<Vec<(ResourceUri, SetId, Option<Timestamp>)>, HarvestError> {
    let catalog = ctx.catalog().await?;
    let mut pending = catalog.scan_pending(after).await?;
    let mut found = Vec::new();
    while found.len() < BATCH
        && let Some((uri, record)) = pending.try_next().await?
    {
        let is_told = record.action == Action::Delete && record.listing.change == Some(Change::Deleted);
        if is_told && super::is_list(ctx, &record.listing.set) {
            found.push((uri, record.listing.set, record.listing.as_of));
        }
    }
    Ok(found)
}

/// The number of stored records of a list.
async fn held(ctx: &mut RunContext, set: &SetId) -> Result<u64, HarvestError> {
    let catalog = ctx.catalog().await?;
    let mut resources = catalog.scan_resources(None, None).await?;
    let mut held = 0;
    while let Some((_, record)) = resources.try_next().await? {
        held += u64::from(record.is_present() && record.sets.contains(set));
    }
    Ok(held)
}
