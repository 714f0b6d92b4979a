//! The end of a run.

use std::collections::HashSet;

use catalog::Batch;
use futures::TryStreamExt;
use model::{DocumentRecord, DocumentState, Phase, SetId, Subject};
use planning::strategy;

use crate::dispatcher::dead_letters;
use crate::error::HarvestError;
use crate::packages;
use crate::planner::missed_notifications;
use crate::run::{RunContext, document_queue};

/// Ends an audit without repair: only its record is written.
pub(crate) async fn end_audit(ctx: &mut RunContext) -> Result<(), HarvestError> {
    ctx.run.phase = Phase::Finished;
    ctx.run.finished_at = Some(ctx.clock.now());
    ctx.commit(Batch::new()).await
}

/// Advances the sets, now that every change is settled or recorded as a problem.
pub(crate) async fn finish(ctx: &mut RunContext) -> Result<(), HarvestError> {
    missed_notifications::judge_missed(ctx).await?;
    let mut batch = Batch::new();
    let (mut documents, notices) = document_queue::by_set_with_notices(&*ctx.catalog().await?).await?;
    let mut listed = HashSet::new();
    let mut synced = HashSet::new();
    let mut followed = HashSet::new();
    for (id, set) in &mut ctx.sets {
        let documents = documents.remove(id).unwrap_or_default();
        if strategy::advance(set, ctx.run.id, &documents) {
            batch.put_set(id, set);
        }
        if strategy::is_followed(set, ctx.run.id, &documents) {
            followed.insert(id.clone());
        }
        if strategy::is_listed(ctx.run.id, &documents) {
            listed.insert(id.clone());
        }
        if strategy::is_told_whole(ctx.run.id, &documents) {
            synced.insert(id.clone());
        }
    }
    packages::forget_packages(ctx, &mut batch, &listed, &followed).await?;
    forget_documents(ctx, &mut batch, &synced, &followed).await?;
    forget_notices(ctx, &mut batch, notices, &followed);
    dead_letters::forget_letters(ctx, &mut batch).await?;
    ctx.run.phase = Phase::Finished;
    ctx.run.finished_at = Some(ctx.clock.now());
    ctx.commit(batch).await
}

/// Forgets what hubs delivered once its set is synchronized up to the end of it; unreadable deliveries once other
/// documents cover the same changes.
pub(crate) fn forget_notices(
    ctx: &mut RunContext,
    batch: &mut Batch,
    notices: Vec<(String, DocumentRecord)>,
    followed: &HashSet<SetId>,
) {
    for (uri, record) in notices {
        let Some(set) = ctx.sets.get(&record.set) else { continue };
        let end = record.until_latest.max(record.until);
        let is_past = record.is_read_whole() && end <= set.synchronized_to;
        let is_told = record.run != ctx.run.id && followed.contains(&record.set);
        if is_past || is_told {
            batch.delete_document(&uri);
        }
        if is_told && ctx.problems.any {
            batch.delete_problem(&Subject::Document(uri));
        }
    }
}

/// Forgets a document that an earlier run could not read and this run did not request, once other documents cover
/// its whole set. Example: a dump whose list is read. The same holds for a change document, once other documents
/// cover all its changes.
pub(crate) async fn forget_documents(
    ctx: &mut RunContext,
    batch: &mut Batch,
    synced: &HashSet<SetId>,
    followed: &HashSet<SetId>,
) -> Result<(), HarvestError> {
    if !ctx.problems.any || synced.is_empty() && followed.is_empty() {
        return Ok(());
    }
    let mut documents = ctx.catalog().await?.scan_documents().await?;
    while let Some((uri, record)) = documents.try_next().await? {
        let was_failed = record.state == DocumentState::Failed && record.run != ctx.run.id;
        let is_followed = strategy::is_changes(&record.capability) && followed.contains(&record.set);
        if was_failed && (is_followed || synced.contains(&record.set)) {
            batch.delete_problem(&Subject::Document(uri));
        }
    }
    Ok(())
}
