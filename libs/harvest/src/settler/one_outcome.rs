//! Settles one outcome: what it makes of the records of its resource.

use std::sync::Arc;

use catalog::Batch;
use jiff::Timestamp;
use model::{
    Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Disposition, Evidence, Failure, Listing, Outcome,
    OutcomeResult, PatchUse, PendingRecord, ProblemReason, Provenance, ResourceRecord, ResourceUri,
    StoredBitstream,
};
use resourcesync::Change;

use crate::run::RunContext;
use crate::settler::Settler;
use crate::settler::candidate::{Step, next_step};
use crate::settler::outcomes::{FollowUp, PriorRecords, provenance_of, sets_of, settled};

impl Settler {
    /// Settles one outcome in a batch.
    pub(super) fn settle_one(
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

/// The record of a stored bitstream.
pub(crate) fn bitstream(stored: StoredBitstream, assurance: Assurance, stored_at: Timestamp) -> Bitstream {
    let StoredBitstream { location, computed, media_type, encoding, validators, final_url, .. } = stored;
    Bitstream { location, computed, assurance, media_type, encoding, validators, final_url, stored_at }
}
