//! Settles outcomes: commits them as records in one atomic batch, and only then acknowledges them.

use std::sync::Arc;

use bus::{Bus, DeadLetter, Delivery};
use catalog::Batch;
use futures::future::try_join_all;
use jiff::Timestamp;
use model::{
    Account, Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Disposition, Evidence, Failure, Lane,
    Listing, Outcome, OutcomeResult, Outcomes, PackageOutcome, PendingRecord, ProblemReason, ProblemRecord,
    ResourceRecord, ResourceUri, SetId, StoredBitstream, Subject, Versions,
};
use resourcesync::Change;

use crate::candidate::{Step, next_step};
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::window::Window;

/// Follow-up work of a batch.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub(crate) any: bool,
    pub(crate) due: Option<Timestamp>,
    /// Origins that requested a longer cooldown than a run allows, and its end.
    pub(crate) resting: Vec<(Lane, Timestamp)>,
}

/// Prior records of a resource when its outcome arrives. Records are large, most outcomes have only one of them, and
/// all are passed on several times. So each is boxed.
pub(crate) struct Before {
    pub(crate) pending: Box<PendingRecord>,
    pub(crate) record: Option<Box<ResourceRecord>>,
    pub(crate) problem: Option<Box<ProblemRecord>>,
    pub(crate) versions: Option<Versions>,
}

impl Harvest {
    /// Settles outcomes. A message that was settled before a crash settles nothing again: its plan is gone.
    pub(crate) async fn settle(
        &mut self,
        deliveries: Vec<Delivery>,
        window: &mut Window,
    ) -> Result<Again, HarvestError> {
        let mut again = Again::default();
        if deliveries.is_empty() {
            return Ok(again);
        }
        let mut jobs = Vec::with_capacity(deliveries.len());
        let mut outcomes = Vec::new();
        let mut readable = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            let Some(mut job) = decode(self.bus.as_ref(), &delivery).await? else { continue };
            readable.push(delivery);
            let items = std::mem::take(&mut job.items);
            let tried = items.iter().filter(|outcome| was_tried(outcome)).count();
            if window.asks(job.id) {
                for outcome in items.iter().filter(|outcome| was_tried(outcome)) {
                    window.reached(&job.lane, was_answered(&outcome.result));
                }
            }
            outcomes.extend(items);
            jobs.push((job, tried));
        }
        let current = self.known(outcomes, window).await?;
        if self.view.is_some() {
            let now = self.clock.now();
            let verified =
                current.iter().filter_map(|(outcome, _)| verified(outcome, now)).collect::<Vec<_>>();
            self.place_in_view(&verified).await?;
        }

        let mut batch = Batch::new();
        // The record, and the completed plan.
        batch.reserve(2 * current.len());
        for (outcome, before) in current {
            self.settle_one(&mut batch, outcome, before, &mut again);
        }
        for (job, _) in &jobs {
            self.run.counters.requests += job.requests;
        }
        self.commit(batch).await?;
        try_join_all(readable.iter().map(Delivery::ack)).await?;
        for (job, tried) in jobs {
            window.job_done(job.id, job.elapsed_ms, tried);
        }
        Ok(again)
    }

    /// Outcomes with their prior records, without those whose plans were settled or replaced meanwhile.
    async fn known(
        &self,
        outcomes: Vec<Outcome>,
        window: &mut Window,
    ) -> Result<Vec<(Outcome, Before)>, HarvestError> {
        let uris: Vec<ResourceUri> = outcomes.iter().map(|outcome| outcome.uri.clone()).collect();
        let pending = self.plans_of(&uris, window).await?;
        let records = self.records_of(&uris).await?;
        let problems = self.problems_of(&uris).await?;
        let versions = self.versions_of(&uris).await?;
        let known = outcomes.into_iter().zip(pending).zip(records).zip(problems).zip(versions);
        Ok(known
            .filter_map(|((((outcome, pending), record), problem), versions)| {
                let pending = pending.filter(|pending| pending.seq == outcome.seq)?;
                Some((outcome, Before { pending, record, problem, versions }))
            })
            .collect())
    }

    /// The pending records of these resources. Most are in the window, which read them from the catalog; only this
    /// process writes it. For jobs of an earlier process, and for duplicates, the catalog is read.
    async fn plans_of(
        &self,
        uris: &[ResourceUri],
        window: &mut Window,
    ) -> Result<Vec<Option<Box<PendingRecord>>>, HarvestError> {
        let mut plans: Vec<Option<Box<PendingRecord>>> =
            uris.iter().map(|uri| window.take_plan(uri)).collect();
        let unknown: Vec<usize> = (0..uris.len()).filter(|&n| plans[n].is_none()).collect();
        let asked: Vec<ResourceUri> = unknown.iter().map(|&n| uris[n].clone()).collect();
        for (n, plan) in unknown.into_iter().zip(self.catalog.pending_many(&asked).await?) {
            plans[n] = plan.map(Box::new);
        }
        Ok(plans)
    }

    /// The stored records of these resources.
    pub(crate) async fn records_of(
        &self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<Box<ResourceRecord>>>, HarvestError> {
        if self.is_bare {
            return Ok(uris.iter().map(|_| None).collect());
        }
        Ok(boxed(self.catalog.resources_many(uris).await?))
    }

    fn settle_one(&mut self, batch: &mut Batch, outcome: Outcome, before: Before, again: &mut Again) {
        let step = next_step(&before.pending);
        match outcome.result {
            OutcomeResult::NotModified if matches!(step, Step::Confirm(_)) => {
                self.settle_waiting(batch, &outcome.uri, before);
            }
            OutcomeResult::Failed(failure) if matches!(step, Step::Judge(_)) => {
                self.drop_candidate(batch, &outcome.uri, &failure, *before.pending, again);
            }
            OutcomeResult::Verified { stored, assurance } => {
                self.settle_verified(batch, &outcome.uri, Arc::unwrap_or_clone(stored), assurance, before);
            }
            OutcomeResult::NotModified if before.pending.mend => {
                let failure = nothing_sent(&outcome.uri);
                self.settle_failed(batch, &outcome.uri, failure, before, again);
            }
            OutcomeResult::NotModified => self.settle_not_modified(batch, &outcome.uri, before),
            OutcomeResult::Deferred => again.any = true,
            OutcomeResult::Failed(failure) => self.settle_failed(batch, &outcome.uri, failure, before, again),
        }
    }

    fn settle_verified(
        &mut self,
        batch: &mut Batch,
        uri: &ResourceUri,
        stored: StoredBitstream,
        assurance: Assurance,
        before: Before,
    ) {
        if !matches!(next_step(&before.pending), Step::Judge(_)) {
            self.run.counters.bytes += stored.computed.length();
        }
        self.take_verified(batch, uri, stored, assurance, before);
    }

    /// Stores a verified bitstream as the current version.
    pub(crate) fn take_verified(
        &mut self,
        batch: &mut Batch,
        uri: &ResourceUri,
        stored: StoredBitstream,
        assurance: Assurance,
        before: Before,
    ) {
        self.note_lag(&before.pending.listing);
        let now = self.clock.now();
        let sha256 = stored.computed.sha256();
        let held = before.record.as_ref().and_then(|record| record.bitstream.as_ref());
        let known =
            before.record.as_ref().and_then(|record| record.bitstream.as_ref().or(record.deleted.as_ref()));
        // A repaired object keeps its name.
        let mut freed = known.map(|known| known.location.clone()).filter(|known| *known != stored.location);
        let mend = before.pending.mend;
        let event = match held.map(|held| held.computed.sha256()) {
            Some(before) if mend => Some(ChangeEvent::Healed { sha256, before }),
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
        // A repair is no evidence that a list contains the resource.
        let absent = before.record.as_ref().filter(|record| mend && record.listing == before.pending.listing);
        let (account, document) = told(&before.pending);
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
                self.run.counters.unchanged += 1;
                self.confirm(batch, uri, sha256, &account, &document, before.problem.is_some());
            }
            Some(event) => {
                self.run.counters.stored += 1;
                self.run.counters.healed += u64::from(matches!(event, ChangeEvent::Healed { .. }));
                let mut freed_versions = Vec::new();
                if let (ChangeEvent::Updated { .. }, Some(ended)) = (&event, &before.record) {
                    freed_versions = self.end_version(batch, uri, ended, before.versions, now);
                    // Kept versions are not freed.
                    freed = freed.filter(|freed| freed_versions.contains(freed));
                    freed_versions.retain(|gone| Some(gone) != freed.as_ref());
                }
                let change = self.log(uri, event, &document, account);
                batch.append_change(&ChangeLogEntry { freed, freed_versions, ..change });
            }
        }
        batch.put_resource(uri, &record);
        settled(batch, uri, before.problem.is_some());
    }

    fn settle_not_modified(&mut self, batch: &mut Batch, uri: &ResourceUri, before: Before) {
        self.note_lag(&before.pending.listing);
        self.run.counters.unchanged += 1;
        if let Some(record) = before.record {
            let record = *record;
            if let Some(held) = &record.bitstream {
                let (account, document) = told(&before.pending);
                let sha256 = held.computed.sha256();
                self.confirm(batch, uri, sha256, &account, &document, before.problem.is_some());
            }
            let record = ResourceRecord {
                sets: sets_of(Some(&record), &before.pending.listing.set),
                declaration: before.pending.declaration,
                listing: there_after_all(before.pending.listing, Some(&record)),
                settled_at: self.clock.now(),
                absent: None,
                ..record
            };
            batch.put_resource(uri, &record);
        }
        settled(batch, uri, before.problem.is_some());
    }

    /// Settles deletions: they need no fetch. The bytes stay until garbage collection; the tombstone stays.
    pub(crate) async fn settle_deletions(
        &mut self,
        deletions: Vec<(ResourceUri, Box<PendingRecord>)>,
    ) -> Result<(), HarvestError> {
        if deletions.is_empty() {
            return Ok(());
        }
        let uris: Vec<ResourceUri> = deletions.iter().map(|(uri, _)| uri.clone()).collect();
        let records = self.catalog.resources_many(&uris).await?;
        let versions = self.versions_of(&uris).await?;
        self.remove_from_view(&uris).await?;
        let now = self.clock.now();
        let mut batch = Batch::new();
        for (((uri, pending), before), versions) in deletions.into_iter().zip(records).zip(versions) {
            debug_assert_eq!(pending.action, Action::Delete);
            self.note_lag(&pending.listing);
            let absent = pending.listing.change.is_none();
            if let Some(ended) = before.as_ref().filter(|record| record.is_present()) {
                self.run.counters.deleted += 1;
                // The tombstone keeps the last version, whether that is a kept version too or not.
                let held = ended.bitstream.as_ref().map(|held| &held.location);
                let mut freed_versions = self.end_version(&mut batch, &uri, ended, versions, now);
                freed_versions.retain(|location| Some(location) != held);
                let (account, document) = told(&pending);
                let change = self.log(&uri, ChangeEvent::Deleted { absent }, &document, account);
                batch.append_change(&ChangeLogEntry { freed_versions, ..change });
            } else {
                self.run.counters.moot += 1;
            }
            let tombstone = ResourceRecord {
                bitstream: None,
                sets: sets_of(before.as_ref(), &pending.listing.set),
                collected: before
                    .as_ref()
                    .filter(|record| !record.is_present())
                    .and_then(|record| record.collected),
                deleted: before.and_then(|record| record.bitstream.or(record.deleted)),
                absent: None,
                declaration: pending.declaration,
                listing: pending.listing,
                settled_at: now,
            };
            batch.put_resource(&uri, &tombstone);
            settled(&mut batch, &uri, self.has_problems);
        }
        self.commit(batch).await
    }

    /// Confirms that the stored version is current. The change log records that if it was in doubt.
    fn confirm(
        &self,
        batch: &mut Batch,
        uri: &ResourceUri,
        sha256: fixity::Sha256,
        account: &Account,
        document: &Arc<str>,
        was_problem: bool,
    ) {
        if was_problem || !account.tried.is_empty() {
            let event = ChangeEvent::Confirmed { sha256 };
            batch.append_change(&self.log(uri, event, document, account.clone()));
        }
    }

    pub(crate) fn log(
        &self,
        uri: &ResourceUri,
        event: ChangeEvent,
        document: &Arc<str>,
        account: Account,
    ) -> ChangeLogEntry {
        let (now, run) = (self.clock.now(), self.run.id);
        let change = ChangeLogEntry::new(uri.clone(), event, now, run, Arc::clone(document));
        ChangeLogEntry { account, ..change }
    }
}

/// Provenance of the settled state, and the document that asked for it.
pub(crate) fn told(pending: &PendingRecord) -> (Account, Arc<str>) {
    let Listing { change, as_of, document, .. } = &pending.listing;
    (Account { change: *change, as_of: *as_of, ..pending.account.clone() }, Arc::clone(document))
}

/// Decodes the outcomes of a message. An unreadable one goes to the dead letters of its Source, because it would be
/// redelivered for ever. Its resources are still pending, and the dead letter names it.
async fn decode(bus: &dyn Bus, delivery: &Delivery) -> Result<Option<Outcomes>, HarvestError> {
    match delivery.payload.read() {
        // A payload from the network has one owner and is moved; one that a bus keeps for redelivery is copied.
        Ok(outcomes) => Ok(Some(Arc::unwrap_or_clone(outcomes))),
        // An outcome of a package that was settled meanwhile: the package's record has the remaining work.
        Err(_) if delivery.payload.read::<PackageOutcome>().is_ok() => {
            delivery.ack().await?;
            Ok(None)
        }
        Err(error) => {
            DeadLetter::bury(bus, delivery, &format!("these are no outcomes: {error}")).await?;
            delivery.term().await?;
            Ok(None)
        }
    }
}

/// Boxes each.
pub(crate) fn boxed<T>(found: Vec<Option<T>>) -> Vec<Option<Box<T>>> {
    found.into_iter().map(|found| found.map(Box::new)).collect()
}

fn settled(batch: &mut Batch, uri: &ResourceUri, had_problem: bool) {
    batch.delete_pending(uri);
    if had_problem {
        batch.delete_problem(&subject(uri));
    }
}

pub(crate) fn subject(uri: &ResourceUri) -> Subject {
    Subject::Resource(uri.as_str().to_owned())
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
        return listing;
    }
    before.map_or(Listing { change: None, ..listing }, |record| record.listing.clone())
}

fn sets_of(before: Option<&ResourceRecord>, set: &SetId) -> Vec<SetId> {
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

fn was_tried(outcome: &Outcome) -> bool {
    !matches!(outcome.result, OutcomeResult::Deferred)
}

/// Whether a server answered, with any status.
fn was_answered(result: &OutcomeResult) -> bool {
    use ProblemReason::{Connect, Dns, Timeout, Tls};
    !matches!(result, OutcomeResult::Failed(Failure { reason: Dns | Connect | Tls | Timeout, .. }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bus::{ConsumerSpec, Depth, Filter, MemoryBus, MessageId, Queue};

    use super::*;

    #[tokio::test]
    async fn outcomes_that_cannot_be_read_lie_with_the_dead_letters() {
        let bus = MemoryBus::new(10);
        let source = || "s".parse().expect("a source id");
        let open = |filter: Filter| bus.open(ConsumerSpec::new(filter, 1, Duration::from_secs(60), 5));
        let (outcomes, dead) = (Filter::Outcomes(source()), Filter::Dead(source()));
        open(outcomes.clone()).await.unwrap();
        open(dead.clone()).await.unwrap();
        let queue = Queue::Outcomes { source: source() };
        bus.publish(queue, MessageId::new("a"), "gibberish".into()).await.unwrap();
        let delivery = bus.pull(&outcomes, 1, Duration::ZERO).await.unwrap().pop().unwrap();
        assert!(decode(&bus, &delivery).await.unwrap().is_none());
        assert_eq!(bus.depth(&outcomes).await.unwrap(), Depth::default());
        let buried = bus.pull(&dead, 1, Duration::ZERO).await.unwrap().pop().expect("a dead letter");
        let letter = buried.payload.read::<DeadLetter>().unwrap();
        assert_eq!(letter.id.as_str(), "a");
        assert!(letter.why.starts_with("these are no outcomes: "), "{}", letter.why);
    }
}
