//! Chooses packages instead of the resources of a list, if they need fewer requests.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use model::{Action, PackageState, SetId, Validators};
use planning::{Cost, FEW_RESOURCES, Pace, is_dump_cheaper, queued_document};
use resourcesync::Capability;

use super::{names, uploads};
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// For each set whose Resource List was read and that also offers a Resource Dump: chooses the strategy that
/// brings the pending resources sooner. Members of packages settle the pending records of the list; the rest is
/// requested one by one.
pub(crate) async fn choose_dumps(ctx: &mut RunContext, planner: &mut Planner) -> Result<(), HarvestError> {
    if ctx.options.prefer.is_some() || !ctx.is_anything_planned() {
        return Ok(());
    }
    let sets: Vec<(SetId, Vec<String>)> = ctx
        .sets
        .iter()
        .map(|(id, set)| (id.clone(), set.documents(&Capability::ResourceDump).map(str::to_owned).collect()))
        .filter(|(_, dumps): &(SetId, Vec<String>)| !dumps.is_empty())
        .collect();
    if sets.is_empty() {
        return Ok(());
    }
    let wanted = pending_by_set(ctx).await?;
    for (set, dumps) in sets {
        // A dump of an earlier time does not contain the changes.
        if !has_read_list(ctx, &set).await? {
            continue;
        }
        let Some(&list) = wanted.get(&set).filter(|list| list.requests >= FEW_RESOURCES) else {
            continue;
        };
        queue_dumps(ctx, &set, &dumps).await?;
        planner.read_queued(ctx).await?;
        let dump = packages_of(ctx, &set).await?;
        let pace =
            Pace { wait: planner.reading.latencies.mean(), at_once: ctx.options.jobs_per_origin.get() };
        let share = list.requests as f64 / listed_of(ctx, &set).await?.max(1) as f64;
        let is_chosen = dump.requests > 0 && is_dump_cheaper(dump, list, share, pace);
        tracing::info!(
            set.id = %set, ?dump, ?list, ?pace,
            "{}", if is_chosen { "the dump is read" } else { "each resource is asked for by itself" }
        );
        if !is_chosen {
            let_go_of_packages(ctx, &set).await?;
        }
    }
    Ok(())
}

/// Whether a Resource List of a set was read in this run.
pub(crate) async fn has_read_list(ctx: &mut RunContext, set: &SetId) -> Result<bool, HarvestError> {
    let catalog = ctx.catalog().await?;
    let Some(known) = ctx.sets.get(set) else { return Ok(false) };
    for uri in known.documents(&Capability::ResourceList) {
        if catalog.document(uri).await?.is_some_and(|list| list.run == ctx.run.id) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number of resources in a set's Resource Lists, as far as they were read in this run.
pub(crate) async fn listed_of(ctx: &mut RunContext, set: &SetId) -> Result<u64, HarvestError> {
    let mut listed = 0;
    let mut documents = ctx.catalog().await?.scan_documents().await?;
    while let Some((_, record)) = documents.try_next().await? {
        if record.run == ctx.run.id && record.set == *set && record.capability == Capability::ResourceList {
            listed += record.entries.saturating_sub(record.documents);
        }
    }
    Ok(listed)
}

/// Queues a set's dumps. Dumps that this run already read before a crash are not read again: their packages are
/// known.
pub(crate) async fn queue_dumps(
    ctx: &mut RunContext,
    set: &SetId,
    dumps: &[String],
) -> Result<(), HarvestError> {
    let mut batch = Batch::new();
    for uri in dumps {
        let before = ctx.catalog().await?.document(uri).await?;
        if before.as_ref().is_some_and(|record| record.run == ctx.run.id) {
            continue;
        }
        let mut dump = queued_document(ctx.run.id, set, &Capability::ResourceDump, before);
        dump.validators = Validators::default();
        batch.put_document(uri, &dump);
    }
    ctx.commit(batch).await
}

/// Cost of requesting each pending resource, by set.
pub(crate) async fn pending_by_set(ctx: &mut RunContext) -> Result<HashMap<SetId, Cost>, HarvestError> {
    let mut costs: HashMap<SetId, Cost> = HashMap::new();
    let mut pending = ctx.catalog().await?.scan_pending(None).await?;
    while let Some((_, record)) = pending.try_next().await? {
        if matches!(record.action, Action::Fetch { .. }) {
            costs.entry(record.listing.set).or_insert(Cost::ZERO).add(record.declaration.length);
        }
    }
    Ok(costs)
}

/// Cost of receiving the unsettled packages of a set.
pub(crate) async fn packages_of(ctx: &mut RunContext, set: &SetId) -> Result<Cost, HarvestError> {
    let mut cost = Cost::ZERO;
    let mut packages = ctx.catalog().await?.scan_packages().await?;
    while let Some((_, record)) = packages.try_next().await? {
        if record.run == ctx.run.id && record.set == *set && record.state == PackageState::Wanted {
            cost.add(record.declaration.length);
        }
    }
    Ok(cost)
}

/// Drops packages that are not received after all. The next dump lists them again.
pub(crate) async fn let_go_of_packages(ctx: &mut RunContext, set: &SetId) -> Result<(), HarvestError> {
    let mut batch = Batch::new();
    let mut packages = ctx.catalog().await?.scan_packages().await?;
    while let Some((uri, record)) = packages.try_next().await? {
        if record.run == ctx.run.id && record.set == *set && record.state == PackageState::Wanted {
            if record.kept || ctx.progress.is_resumed() {
                uploads::forget_upload(ctx, &uri, record.seq).await;
            }
            names::forget(ctx, &mut batch, &uri).await?;
            batch.delete_package(&uri);
            if batch.len() >= super::BATCH {
                ctx.commit(std::mem::take(&mut batch)).await?;
            }
        }
    }
    drop(packages);
    ctx.commit(batch).await
}
