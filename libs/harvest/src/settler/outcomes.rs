//! Settles outcomes: commits them as records in one atomic batch, and only then acknowledges them. The next ones are
//! settled while a batch is written.

use std::sync::Arc;

use bus::Delivery;
use catalog::Batch;
use futures::future::try_join_all;
use jiff::Timestamp;
use model::{
    Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Disposition, Evidence, Failure, Listing,
    Origin, Outcome, OutcomeResult, Outcomes, PatchUse, PendingRecord, ProblemReason, ProblemRecord,
    Provenance, ResourceRecord, ResourceUri, SetId, StoredBitstream, Versions,
};
use resourcesync::Change;

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::run::problems::subject;
use crate::settler::Settler;
use crate::settler::candidate::{Step, next_step};
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

    fn settle_one(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        outcome: Outcome,
        mut before: PriorRecords,
        follow_up: &mut FollowUp,
    ) {
        let is_verified = matches!(outcome.result, OutcomeResult::Verified { .. });
        note_patches(ctx, &mut before.pending, outcome.patch, is_verified);
        let step = next_step(&before.pending);
        if is_verified {
            self.note_mirror(&before.pending, None);
        }
        match outcome.result {
            OutcomeResult::Verified { stored, .. } if before.pending.is_at_memento() => {
                self.settle_memento(ctx, batch, &outcome.uri, Arc::unwrap_or_clone(stored), before);
            }
            OutcomeResult::NotModified if before.pending.is_at_memento() => {
                let failure = nothing_sent(&outcome.uri);
                self.settle_failed(ctx, batch, &outcome.uri, failure, before, follow_up);
            }
            OutcomeResult::NotModified if matches!(step, Step::Confirm(_)) => {
                self.settle_waiting(ctx, batch, &outcome.uri, before, follow_up);
            }
            OutcomeResult::Failed(failure) if matches!(step, Step::Judge(_)) => {
                self.drop_candidate(ctx, batch, &outcome.uri, &failure, *before.pending, follow_up);
            }
            OutcomeResult::Verified { stored, assurance } => {
                self.settle_verified(
                    ctx,
                    batch,
                    &outcome.uri,
                    Arc::unwrap_or_clone(stored),
                    assurance,
                    before,
                );
            }
            OutcomeResult::NotModified if before.pending.repair => {
                let failure = nothing_sent(&outcome.uri);
                self.settle_failed(ctx, batch, &outcome.uri, failure, before, follow_up);
            }
            OutcomeResult::NotModified => self.settle_not_modified(ctx, batch, &outcome.uri, before),
            OutcomeResult::Deferred => follow_up.any = true,
            OutcomeResult::Failed(failure) => {
                self.settle_failed(ctx, batch, &outcome.uri, failure, before, follow_up)
            }
        }
    }

    fn settle_verified(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        stored: StoredBitstream,
        assurance: Assurance,
        before: PriorRecords,
    ) {
        if !matches!(next_step(&before.pending), Step::Judge(_)) {
            // Of a version that patches made, only those were received.
            ctx.run.counters.bytes += match before.pending.account.patch.as_deref() {
                Some(PatchUse::Applied { bytes, .. }) => *bytes,
                _ => stored.computed.length(),
            };
        }
        self.take_verified(ctx, batch, uri, stored, assurance, before);
    }

    /// Stores a verified bitstream as the current version.
    pub(crate) fn take_verified(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        stored: StoredBitstream,
        assurance: Assurance,
        before: PriorRecords,
    ) {
        ctx.push.note_settled(&before.pending.listing);
        let now = ctx.clock.now();
        let sha256 = stored.computed.sha256();
        let held = before.record.as_ref().and_then(|record| record.bitstream.as_ref());
        let known =
            before.record.as_ref().and_then(|record| record.bitstream.as_ref().or(record.deleted.as_ref()));
        // A repaired object keeps its name.
        let mut freed = known.map(|known| known.location.clone()).filter(|known| *known != stored.location);
        let repair = before.pending.repair;
        let event = match held.map(|held| held.computed.sha256()) {
            Some(before) if repair => Some(ChangeEvent::Healed { sha256, before }),
            Some(before) if before == sha256 => None,
            Some(before) => Some(ChangeEvent::Updated { sha256, before }),
            None => Some(ChangeEvent::Created { sha256 }),
        };
        let mut fresh = bitstream(stored, assurance, now);
        if let (None, Some(held)) = (&event, held) {
            // The bytes are equal: the stored object stays at its location; only the metadata is new.
            fresh.location = held.location.clone();
            fresh.stored_at = held.stored_at;
        }
        if let Some(adopted) = &before.pending.account.adopted
            && before.pending.candidate.as_ref().is_some_and(|taken| taken.location == fresh.location)
        {
            fresh.stored_at = adopted.stored_at;
        }
        // A repair is no evidence that a list contains the resource.
        let absent =
            before.record.as_ref().filter(|record| repair && record.listing == before.pending.listing);
        let (account, document) = provenance_of(&before.pending);
        ctx.run.counters.mirrored += u64::from(event.is_some() && account.mirror.is_some());
        if let (Some(_), Some(PatchUse::Applied { saved, .. })) = (&event, account.patch.as_deref()) {
            ctx.run.counters.patched += 1;
            ctx.run.counters.bytes_saved += saved;
        }
        let record = ResourceRecord {
            bitstream: Some(fresh),
            deleted: None,
            collected: None,
            absent: absent.and_then(|record| record.absent.clone()),
            sets: sets_of(before.record.as_deref(), &before.pending.listing.set),
            declaration: before.pending.declaration,
            listing: there_after_all(before.pending.listing, before.record.as_deref()),
            settled_at: now,
        };
        match event {
            None => {
                ctx.run.counters.unchanged += 1;
                confirm(ctx, batch, uri, sha256, &account, &document, before.problem.is_some());
            }
            Some(event) => {
                ctx.run.counters.stored += 1;
                ctx.run.counters.healed += u64::from(matches!(event, ChangeEvent::Healed { .. }));
                let mut freed_versions = Vec::new();
                if let (ChangeEvent::Updated { .. }, Some(ended)) = (&event, &before.record) {
                    freed_versions = self.end_version(batch, uri, ended, before.versions, now);
                    // Kept versions are not freed.
                    freed = freed.filter(|freed| freed_versions.contains(freed));
                    freed_versions.retain(|gone| Some(gone) != freed.as_ref());
                }
                let change = ctx.log(uri, event, &document, account);
                batch.append_change(&ChangeLogEntry { freed, freed_versions, ..change });
            }
        }
        batch.put_resource(uri, &record);
        settled(ctx, batch, uri, before.problem.is_some());
    }

    fn settle_not_modified(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        before: PriorRecords,
    ) {
        ctx.push.note_settled(&before.pending.listing);
        ctx.run.counters.unchanged += 1;
        if let Some(record) = before.record {
            let record = *record;
            if let Some(held) = &record.bitstream {
                let (account, document) = provenance_of(&before.pending);
                let sha256 = held.computed.sha256();
                confirm(ctx, batch, uri, sha256, &account, &document, before.problem.is_some());
            }
            let record = ResourceRecord {
                sets: sets_of(Some(&record), &before.pending.listing.set),
                declaration: before.pending.declaration,
                listing: there_after_all(before.pending.listing, Some(&record)),
                settled_at: ctx.clock.now(),
                absent: None,
                ..record
            };
            batch.put_resource(uri, &record);
        }
        settled(ctx, batch, uri, before.problem.is_some());
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

/// Confirms that the stored version is current. The change log records that if it was in doubt.
fn confirm(
    ctx: &RunContext,
    batch: &mut Batch,
    uri: &ResourceUri,
    sha256: fixity::Sha256,
    account: &Provenance,
    document: &Arc<str>,
    was_problem: bool,
) {
    if was_problem || !account.tried.is_empty() {
        let event = ChangeEvent::Confirmed { sha256 };
        batch.append_change(&ctx.log(uri, event, document, account.clone()));
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

/// Records what became of the patches of a resource. Those that were of no use are not tried again: another attempt
/// requests the resource itself.
fn note_patches(
    ctx: &mut RunContext,
    pending: &mut PendingRecord,
    used: Option<Box<PatchUse>>,
    is_verified: bool,
) {
    let Some(used) = used else { return };
    if matches!(*used, PatchUse::Applied { .. }) && !is_verified {
        // What they made is lost.
        return;
    }
    if matches!(*used, PatchUse::Unused(_)) {
        ctx.run.counters.patches_unused += 1;
        pending.patch = None;
    }
    pending.account.patch = Some(used);
}

fn settled(ctx: &RunContext, batch: &mut Batch, uri: &ResourceUri, had_problem: bool) {
    ctx.end_plan(batch, uri);
    if had_problem {
        batch.delete_problem(&subject(uri));
    }
}

/// Failure of a server that answers "not modified" to an unconditional request: no bytes came to replace the stored
/// ones.
fn nothing_sent(uri: &ResourceUri) -> Failure {
    Failure {
        reason: ProblemReason::HttpUnexpected,
        message: format!(
            "{uri} was answered with 304 Not Modified though no condition was set; it was not sent"
        ),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence { status: Some(304), ..Evidence::default() },
    }
}

/// A deletion without a date did not happen, or did not last: the known listing stays.
fn there_after_all(listing: Listing, before: Option<&ResourceRecord>) -> Listing {
    if listing.change != Some(Change::Deleted) {
        return listing.inheriting(before.map(|record| &record.listing));
    }
    before.map_or(Listing { change: None, ..listing }, |record| record.listing.clone())
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

pub(crate) fn bitstream(stored: StoredBitstream, assurance: Assurance, stored_at: Timestamp) -> Bitstream {
    let StoredBitstream { location, computed, media_type, encoding, validators, final_url, .. } = stored;
    Bitstream { location, computed, assurance, media_type, encoding, validators, final_url, stored_at }
}
