//! Settles outcomes: commits them as records in one atomic batch, and only then acknowledges them. The next ones are
//! settled while a batch is written.

use std::sync::Arc;

use bus::Delivery;
use catalog::Batch;
use futures::future::try_join_all;
use jiff::Timestamp;
use model::{
    Action, Bitstream, ChangeEvent, ChangeLogEntry, Listing, Origin, Outcome, OutcomeResult, Outcomes,
    PendingRecord, ProblemRecord, Provenance, ResourceRecord, ResourceUri, SetId, StoredBitstream, Versions,
};

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::run::problems::subject;
use crate::settler::Settler;
use crate::settler::one_outcome::bitstream;
use crate::settler::tombstone::tombstone;

/// Follow-up work of a batch.
#[derive(Debug, Default)]
pub(crate) struct FollowUp {
    /// Whether a record is left for another attempt.
    pub(crate) any: bool,
    /// The earliest time of such an attempt.
    pub(crate) due: Option<Timestamp>,
    /// Origins that requested a longer cooldown than a run allows, and its end.
    pub(crate) resting: Vec<(Origin, Timestamp)>,
}

/// Prior records of a resource when its outcome arrives. Records are large, most outcomes have only one of them, and
/// all are passed on several times. So each is boxed.
pub(crate) struct PriorRecords {
    pub(crate) pending: Box<PendingRecord>,
    pub(crate) record: Option<Box<ResourceRecord>>,
    pub(crate) problem: Option<Box<ProblemRecord>>,
    pub(crate) versions: Option<Versions>,
}

impl Settler {
    /// Settles outcomes. Their messages are acknowledged once the batch is durable, by the next call or by
    /// [`Self::acknowledge`]. A message that was settled before a crash settles nothing again: its plan is gone.
    /// `plan_of` returns pending records that are in memory.
    pub(crate) async fn settle(
        &mut self,
        ctx: &mut RunContext,
        messages: Vec<(Delivery, Outcomes)>,
        plan_of: impl FnMut(&ResourceUri) -> Option<Box<PendingRecord>>,
    ) -> Result<FollowUp, HarvestError> {
        let mut follow_up = FollowUp::default();
        if messages.is_empty() {
            return Ok(follow_up);
        }
        let mut deliveries = Vec::with_capacity(messages.len());
        let mut outcomes = Vec::new();
        let mut requests = 0;
        for (delivery, job) in messages {
            deliveries.push(delivery);
            requests += job.requests;
            outcomes.extend(job.items);
        }
        let current = self.with_prior_records(ctx, outcomes, plan_of).await?;
        if self.view.is_some() {
            let now = ctx.clock.now();
            // Bytes of a memento are an earlier version.
            let current = current.iter().filter(|(_, prior)| !prior.pending.is_at_memento());
            let verified: Vec<_> = current.filter_map(|(outcome, _)| verified(outcome, now)).collect();
            self.place_in_view(ctx, &verified).await?;
        }

        let mut batch = Batch::new();
        // The record, and the completed plan.
        batch.reserve(2 * current.len());
        for (outcome, prior) in current {
            self.settle_one(ctx, &mut batch, outcome, prior, &mut follow_up);
        }
        ctx.run.counters.requests += requests;
        // Ends when all earlier batches are durable.
        ctx.commit_next(batch).await?;
        let durable = std::mem::replace(&mut self.unacknowledged, deliveries);
        try_join_all(durable.iter().map(Delivery::ack)).await?;
        Ok(follow_up)
    }

    /// Waits until all that was settled is durable, and acknowledges its messages.
    pub(crate) async fn acknowledge(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        if self.unacknowledged.is_empty() {
            return Ok(());
        }
        ctx.catalog().await?;
        let durable = std::mem::take(&mut self.unacknowledged);
        try_join_all(durable.iter().map(Delivery::ack)).await?;
        Ok(())
    }

    /// Outcomes with their prior records, without those whose plans were settled or replaced meanwhile.
    async fn with_prior_records(
        &self,
        ctx: &mut RunContext,
        outcomes: Vec<Outcome>,
        plan_of: impl FnMut(&ResourceUri) -> Option<Box<PendingRecord>>,
    ) -> Result<Vec<(Outcome, PriorRecords)>, HarvestError> {
        let uris: Vec<ResourceUri> = outcomes.iter().map(|outcome| outcome.uri.clone()).collect();
        let mut pending = pending_of(ctx, &uris, plan_of).await?.into_iter();
        let mut records = self.prior_resources(ctx, &uris).await?.into_iter();
        let mut problems = ctx.problems_of(&uris).await?.into_iter();
        let mut versions = self.versions_of(ctx, &uris).await?.into_iter();
        let mut current = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            let record = records.next().flatten();
            let problem = problems.next().flatten();
            let versions = versions.next().flatten();
            if let Some(pending) = pending.next().flatten().filter(|pending| pending.seq == outcome.seq) {
                current.push((outcome, PriorRecords { pending, record, problem, versions }));
            }
        }
        Ok(current)
    }

    /// The stored records of these resources. In a first harvest there are none.
    async fn prior_resources(
        &self,
        ctx: &mut RunContext,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<Box<ResourceRecord>>>, HarvestError> {
        if self.is_first_dispatch {
            Ok(uris.iter().map(|_| None).collect())
        } else {
            ctx.records_of(uris).await
        }
    }

    /// Settles deletions: they need no fetch. The bytes stay until garbage collection; the tombstone stays.
    pub(crate) async fn settle_deletions(
        &mut self,
        ctx: &mut RunContext,
        deletions: Vec<(ResourceUri, Box<PendingRecord>)>,
    ) -> Result<(), HarvestError> {
        if deletions.is_empty() {
            return Ok(());
        }
        let uris: Vec<ResourceUri> = deletions.iter().map(|(uri, _)| uri.clone()).collect();
        let records = ctx.records_of(&uris).await?;
        let versions = self.versions_of(ctx, &uris).await?;
        self.remove_from_view(&uris).await?;
        let now = ctx.clock.now();
        let mut batch = Batch::new();
        for (((uri, pending), before), versions) in deletions.into_iter().zip(records).zip(versions) {
            debug_assert_eq!(pending.action, Action::Delete);
            ctx.push.note_settled(&pending.listing);
            let absent = pending.listing.change.is_none();
            if let Some(ended) = before.as_deref().filter(|record| record.is_present()) {
                ctx.run.counters.deleted += 1;
                // The tombstone keeps the last version, whether that is a kept version too or not.
                let held = ended.bitstream.as_ref().map(|held| &held.location);
                let mut freed_versions = self.end_version(&mut batch, &uri, ended, versions, now);
                freed_versions.retain(|location| Some(location) != held);
                let (account, document) = provenance_of(&pending);
                let change = ctx.log(&uri, ChangeEvent::Deleted { absent }, &document, account);
                batch.append_change(&ChangeLogEntry { freed_versions, ..change });
            } else {
                ctx.run.counters.superseded += 1;
            }
            let tombstone = tombstone(before, &pending, now);
            batch.put_resource(&uri, &tombstone);
            settled(ctx, &mut batch, &uri, ctx.problems.any);
        }
        ctx.commit(batch).await
    }
}

/// The pending records of these resources. Most are in memory, where they were read from the catalog; only this process
/// writes it. For jobs of an earlier process, and for duplicates, the catalog is read.
async fn pending_of(
    ctx: &mut RunContext,
    uris: &[ResourceUri],
    plan_of: impl FnMut(&ResourceUri) -> Option<Box<PendingRecord>>,
) -> Result<Vec<Option<Box<PendingRecord>>>, HarvestError> {
    let mut plans: Vec<_> = uris.iter().map(plan_of).collect();
    let unknown: Vec<usize> = (0..uris.len()).filter(|&n| plans[n].is_none()).collect();
    if unknown.is_empty() {
        return Ok(plans);
    }
    let asked: Vec<ResourceUri> = unknown.iter().map(|&n| uris[n].clone()).collect();
    for (n, plan) in unknown.into_iter().zip(ctx.plans_of(&asked).await?) {
        plans[n] = plan.map(Box::new);
    }
    Ok(plans)
}

/// Provenance of the settled state, and the document that asked for it.
pub(crate) fn provenance_of(pending: &PendingRecord) -> (Provenance, Arc<str>) {
    let Listing { change, as_of, document, .. } = &pending.listing;
    let mirror = pending.at_mirror().cloned();
    (Provenance { change: *change, as_of: *as_of, mirror, ..pending.account.clone() }, Arc::clone(document))
}

/// Ends the plan of a resource, and its problem if there was one.
pub(super) fn settled(ctx: &RunContext, batch: &mut Batch, uri: &ResourceUri, had_problem: bool) {
    ctx.end_plan(batch, uri);
    if had_problem {
        batch.delete_problem(&subject(uri));
    }
}

pub(super) fn sets_of(before: Option<&ResourceRecord>, set: &SetId) -> Vec<SetId> {
    let mut sets = before.map(|record| record.sets.clone()).unwrap_or_default();
    if !sets.contains(set) {
        sets.push(set.clone());
    }
    sets
}

fn verified(outcome: &Outcome, now: Timestamp) -> Option<(ResourceUri, Bitstream)> {
    match &outcome.result {
        OutcomeResult::Verified { stored, assurance } => {
            Some((outcome.uri.clone(), bitstream(StoredBitstream::clone(stored), *assurance, now)))
        }
        _ => None,
    }
}
