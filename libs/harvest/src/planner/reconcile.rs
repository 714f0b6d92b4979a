//! Reconciles entries with the catalog by a merge join (docs/adr/0038). Entries of documents about possibly stored
//! resources are spooled and sorted by URI. Then they are joined with the catalog, which has the same order. An entry
//! that matches its stored record is settled by the join. The others are decided as usual. Absences, stored resources
//! without any entry, are found in the same pass.
//!
//! Until then the catalog does not record these documents as read: after a crash they are read again.

mod pass;
pub(crate) mod spool;

use std::sync::Arc;

use catalog::Batch;
use model::SetId;
use pass::Pass;
use planning::Filter;
use reconcile::{AbsenceSearch, Absences, Counting, EntrySorter, Joined, MergeJoin, Records, SpooledEntry};
use spool::Spool;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::document::ReadDocument;
use crate::planner::entries::note_contradictions;
use crate::run::RunContext;

/// Entries decided per batch.
const BATCH: usize = 4096;
/// Bytes of entries decided per batch: links can make an entry much longer than usual.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Documents that may wait for the merge join.
const MAX_DOCUMENTS: usize = 4096;
/// Resources settled between two progress reports.
const SHOWN_EVERY: u64 = 16_384;

impl Planner {
    /// Keeps a document that was read to its end. It is recorded as read when its entries are planned.
    pub(crate) async fn await_plans(
        &mut self,
        ctx: &mut RunContext,
        read: ReadDocument,
    ) -> Result<(), HarvestError> {
        self.reconciler.spool.read.push(read);
        if self.reconciler.spool.read.len() >= MAX_DOCUMENTS {
            Box::pin(self.reconcile(ctx)).await?;
        }
        Ok(())
    }

    /// Joins the spooled entries with the catalog and plans them. Returns whether that worked; if not, the documents
    /// must be read again.
    pub(crate) async fn reconcile(&mut self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        if self.reconciler.spool.has_entries() {
            return self.reconcile_spool(ctx).await;
        }
        ctx.release_held_back();
        Ok(true)
    }

    /// Joins names with the catalog that were not joined yet. This finds the absences.
    pub(crate) async fn reconcile_names(&mut self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        let is_fresh = |absences: &Option<Absences>| absences.as_ref().is_some_and(|one| one.is_fresh);
        if self.reconciler.absences.values().any(is_fresh) {
            self.reconcile_spool(ctx).await
        } else {
            Ok(true)
        }
    }

    async fn reconcile_spool(&mut self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        let Spool { entries, documents, read, .. } = std::mem::take(&mut self.reconciler.spool);
        match self.join(ctx, entries.unwrap_or_else(EntrySorter::new), documents).await {
            Err(HarvestError::Spool(error)) => {
                self.reconciler.give_up(ctx, &error);
                return Ok(false);
            }
            joined => joined?,
        }
        let mut batch = Batch::new();
        for read in read {
            self.note_read(ctx, &mut batch, read).await?;
        }
        ctx.release_held_back();
        ctx.commit(batch).await?;
        Ok(true)
    }

    pub(crate) async fn join(
        &mut self,
        ctx: &mut RunContext,
        entries: EntrySorter,
        documents: Vec<(Arc<str>, SetId)>,
    ) -> Result<(), HarvestError> {
        let mut searches = Vec::new();
        for (set, absences) in &mut self.reconciler.absences {
            if let Some(absences) = absences.as_mut().filter(|absences| absences.is_fresh) {
                searches.push((set.clone(), AbsenceSearch::after(absences.found.take())?));
            }
        }
        let records = if searches.is_empty() { Records::Named } else { Records::All(Filter::default()) };
        let sorted = entries.sorted(Counting::All).await?;
        let mut join = MergeJoin::begin(&*ctx.catalog().await?, sorted, records).await?;
        let mut pass = Box::new(Pass::begin(ctx, documents, searches).await?);
        while let Some(joined) = join.next().await? {
            let is_pending = pass.is_pending(joined.uri()).await?;
            let has_failed = pass.has_failed(&joined).await?;
            pass.search(&joined, has_failed)?;
            if !is_pending
                && !has_failed
                && let Some(settled) = pass.settled(&joined)?
            {
                ctx.hold_back_unchanged(settled);
            } else {
                self.take(ctx, &mut pass, joined, is_pending).await?;
            }
            pass.resources += 1;
            if pass.resources.is_multiple_of(SHOWN_EVERY) {
                ctx.show();
            }
        }
        pass.end().await?;
        self.decide_taken(ctx, &mut pass).await?;
        note_contradictions(ctx, pass.contradicting);
        for (set, search) in pass.searches {
            let absences = Absences { is_fresh: false, found: Some(search.finish()) };
            self.reconciler.absences.insert(set, Some(absences));
        }
        Ok(())
    }

    /// Takes the entries of a resource, to decide about them.
    async fn take(
        &mut self,
        ctx: &mut RunContext,
        pass: &mut Pass,
        joined: Joined,
        is_pending: bool,
    ) -> Result<(), HarvestError> {
        let Joined { entries, known, goes_on } = joined;
        // The first of many entries have marked what links lead to as shared. The others say nothing more.
        let is_decided = |entry: &SpooledEntry| !(entry.is_name() || goes_on && entry.is_linked());
        let undecided = || entries.iter().filter(|entry| is_decided(entry));
        if goes_on {
            ctx.run.counters.superseded += entries.iter().filter(|entry| entry.is_linked()).count() as u64;
        }
        let Some(first) = undecided().next() else { return Ok(()) };
        let uri = first.read(&pass.documents)?.uri;
        let record = match known {
            Some(known) => Some(known.unread.read()?.1),
            None if goes_on => {
                // The entries before may have planned something, and recorded the resource's sets.
                self.decide_taken(ctx, pass).await?;
                pass.entries.may_be_pending.push(uri.clone());
                ctx.catalog().await?.resource(&uri).await?
            }
            None => None,
        };
        if is_pending && !goes_on {
            pass.entries.may_be_pending.push(uri.clone());
        }
        pass.entries.records.extend(record.map(|record| (uri, record)));
        for entry in undecided() {
            pass.entries.bytes += entry.size();
            pass.entries.planned.push(entry.read(&pass.documents)?);
        }
        if pass.entries.planned.len() >= BATCH || pass.entries.bytes >= BATCH_BYTES {
            self.decide_taken(ctx, pass).await?;
        }
        Ok(())
    }

    /// Decides about the taken entries. The result is committed with what follows, unless the catalog is read before.
    async fn decide_taken(&mut self, ctx: &mut RunContext, pass: &mut Pass) -> Result<(), HarvestError> {
        let before = ctx.counted();
        self.decide_all(ctx, &mut pass.batch, std::mem::take(&mut pass.entries)).await?;
        ctx.hold_back(before);
        if pass.batch.is_empty() {
            return Ok(());
        }
        ctx.commit_behind(std::mem::take(&mut pass.batch)).await
    }
}

#[cfg(test)]
mod tests;
