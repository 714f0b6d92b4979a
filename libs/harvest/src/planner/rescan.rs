//! Selects sets that need a full rescan although their changes are followed. Reasons: absences wait for a second
//! list, lists were read and not compared, or part of a list or dump could not be read.

use std::collections::{HashMap, HashSet};

use catalog::Batch;
use futures::TryStreamExt;
use model::{
    Absent, DocumentRecord, DocumentState, PackageState, PendingRescan, ProblemReason, SetId, Subject,
};
use planning::{Lists, is_due, is_listed_elsewhere, is_retried, strategy};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::{RunContext, document_queue};

impl Planner {
    /// The sets that a run that starts now rescans in full.
    pub(crate) async fn sets_again(&self, ctx: &mut RunContext) -> Result<HashSet<SetId>, HarvestError> {
        let now = ctx.clock.now();
        let waiting = ctx.sets.iter().filter(|(_, set)| is_due(set, &ctx.options, now));
        let mut again: HashSet<SetId> = waiting.map(|(id, _)| id.clone()).collect();
        if !ctx.problems.any {
            return Ok(again);
        }
        let documents = document_queue::by_set(&*ctx.catalog().await?).await?;
        let mut problems = ctx.catalog().await?.scan_problems().await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            let Subject::Document(uri) = subject else { continue };
            if is_retried(&problem, now)
                && let Some(set) = self.set_left_unread(ctx, &uri, problem.reason, &documents).await?
            {
                again.insert(set);
            }
        }
        Ok(again)
    }

    /// The set of a list, dump or package that could not be read or compared and that covers the whole set.
    async fn set_left_unread(
        &self,
        ctx: &mut RunContext,
        uri: &str,
        reason: ProblemReason,
        documents: &HashMap<SetId, Vec<DocumentRecord>>,
    ) -> Result<Option<SetId>, HarvestError> {
        if let Some(record) = ctx.catalog().await?.document(uri).await? {
            let is_unread = record.state == DocumentState::Failed || reason == ProblemReason::Uncompared;
            return Ok((is_unread && strategy::is_baseline(&record.capability)).then_some(record.set));
        }
        let Some(record) = ctx.catalog().await?.package(uri).await? else { return Ok(None) };
        let is_unread = record.state == PackageState::Failed && record.capability == Capability::ResourceDump;
        Ok((is_unread && !is_listed_elsewhere(&record, documents)).then_some(record.set))
    }

    /// Records for a set whose lists were compared with the catalog whether an absence waits for the next lists.
    pub(crate) fn note_waiting(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        id: &SetId,
        lists: &Lists,
        waits: bool,
        is_guarded: bool,
    ) {
        let now = ctx.clock.now();
        let percent = ctx.options.max_deletes_percent;
        // A list without a date never confirms an absence.
        let waits = waits && lists.at.is_some();
        self.note(ctx, batch, id, |before| {
            waits.then(|| PendingRescan {
                since: before.map_or(now, |before| before.since),
                looked_at: now,
                uncompared: false,
                guarded_percent: is_guarded.then_some(percent),
            })
        });
    }

    /// Records the sets whose lists were requested in this run, but not compared with the catalog: a later run must
    /// compare them. `compared` are the other sets.
    pub(crate) async fn note_uncompared(
        &mut self,
        ctx: &mut RunContext,
        compared: &HashSet<SetId>,
    ) -> Result<(), HarvestError> {
        let now = ctx.clock.now();
        let mut read: HashSet<SetId> = HashSet::new();
        let mut asked: HashSet<SetId> = HashSet::new();
        let mut doubtful: HashSet<SetId> = HashSet::new();
        for (uri, record) in document_queue::documents(&*ctx.catalog().await?).await? {
            if record.run != ctx.run.id || !strategy::is_baseline(&record.capability) {
                continue;
            }
            // No conclusion is possible from a doubtful document or its parts, however often it is read.
            if record.doubtful {
                doubtful.insert(record.set.clone());
            }
            let is_news = !self.reading.unmodified.contains(&uri) && record.is_read_whole();
            if is_news {
                read.insert(record.set.clone());
            }
            asked.insert(record.set);
        }
        let mut batch = Batch::new();
        for id in asked.iter().filter(|id| !compared.contains(*id)) {
            let Some(set) = ctx.sets.get(id) else { continue };
            let may_tell = set.may_be_held() && !set.doubtful && !doubtful.contains(id);
            let uncompared = may_tell && read.contains(id);
            self.note(ctx, &mut batch, id, |before| match before {
                Some(before) => {
                    let uncompared = before.uncompared || uncompared;
                    Some(PendingRescan { looked_at: now, uncompared, ..before })
                }
                None => uncompared.then_some(PendingRescan {
                    since: now,
                    looked_at: now,
                    uncompared,
                    guarded_percent: None,
                }),
            });
        }
        ctx.commit(batch).await
    }

    fn note(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        id: &SetId,
        waiting: impl FnOnce(Option<PendingRescan>) -> Option<PendingRescan>,
    ) {
        let Some(set) = ctx.sets.get_mut(id) else { return };
        let before = set.waiting;
        set.waiting = waiting(before);
        if set.waiting != before {
            batch.put_set(id, set);
        }
    }

    /// Whether a set's lists must be read whole even if the server says that they did not change.
    pub(crate) fn is_uncompared(&self, ctx: &mut RunContext, set: &SetId) -> bool {
        let waiting = ctx.sets.get(set).and_then(|set| set.waiting);
        ctx.options.absent != Absent::Keep && waiting.is_some_and(|waiting| waiting.uncompared)
    }
}

/// Records that a set's lists must be read again, although its changes are followed: an absence waits for them. A set
/// without lists has none that could be read.
pub(crate) fn wait_for_lists(ctx: &mut RunContext, batch: &mut Batch, id: &SetId) {
    let now = ctx.clock.now();
    let Some(set) = ctx.sets.get_mut(id) else { return };
    let has_lists = set.capabilities.iter().any(|link| strategy::is_baseline(&link.capability));
    if has_lists && set.waiting.is_none() {
        set.waiting =
            Some(PendingRescan { since: now, looked_at: now, uncompared: false, guarded_percent: None });
        batch.put_set(id, set);
    }
}
