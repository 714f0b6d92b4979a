//! Turns findings into problems in the catalog, and quarantines damaged objects.

use catalog::{Batch, Catalog, CatalogError};
use jiff::Timestamp;
use model::{
    ChangeEvent, ChangeLogEntry, Damage, Evidence, Location, Phase, ProblemReason, ProblemRecord,
    ResourceRecord, ResourceUri, RunId, SourceId, Subject,
};
use store::{Store, StoreTarget};
use verifier::scrub::Damaged;

use super::findings::Findings;
use super::outcome::{self, Handled};
use crate::exit::Failed;
use crate::target;

/// Resources recorded in one batch.
const BATCH: usize = 200;

/// Records the findings about a Source. Damaged versions are discarded when everything is to be repaired.
/// Returns the catalog, which this process still owns, and `handled` with what was done. None when another
/// process harvests the Source: only its owner may write.
pub(super) async fn record(
    target: &StoreTarget,
    source: &SourceId,
    findings: &Findings,
    repairs: bool,
    handled: Handled,
) -> Result<Option<(Catalog, Handled)>, Failed> {
    let store = target::open_store(target).await?;
    let reader = target::read_catalog(&store, source).await?;
    let run = reader.last_run().await?;
    reader.close().await?;
    if run.is_some_and(|run| run.phase != Phase::Finished) {
        return Ok(None);
    }
    let catalog = target::open_catalog(&store, source).await?;
    let mut recorder = Recorder { store: &store, catalog: &catalog, run: RunId::fresh(), repairs, handled };
    let mut found = findings.of(source)?;
    loop {
        let some = found.by_ref().take(BATCH).collect::<Result<Vec<_>, _>>()?;
        if some.is_empty() {
            break;
        }
        match recorder.add(some).await {
            Ok(()) => {}
            Err(failed) if matches!(failed.error.downcast_ref(), Some(CatalogError::Fenced { .. })) => {
                return Ok(None);
            }
            Err(failed) => return Err(failed),
        }
    }
    let handled = recorder.handled;
    Ok(Some((catalog, handled)))
}

pub(super) struct Recorder<'a> {
    store: &'a Store,
    pub(super) catalog: &'a Catalog,
    pub(super) run: RunId,
    repairs: bool,
    pub(super) handled: Handled,
}

impl Recorder<'_> {
    async fn add(&mut self, found: Vec<Damaged>) -> Result<(), Failed> {
        let (versions, found): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|damaged| damaged.held.version.is_some());
        if self.repairs {
            self.discard(versions).await?;
        }
        let uris: Vec<ResourceUri> = found.iter().map(|damaged| damaged.held.uri.clone()).collect();
        let subjects: Vec<Subject> = uris.iter().map(|uri| Subject::Resource(uri.to_string())).collect();
        let records = self.catalog.resources_many(&uris).await?;
        let mut problems = self.catalog.problems_many(&subjects).await?.into_iter();
        let mut batch = Batch::new();
        for (damaged, record) in found.into_iter().zip(records) {
            let before = problems.next().flatten();
            // It was replaced since it was read: the finding concerns a dropped bitstream.
            let Some(record) = record.filter(|record| holds(record, &damaged)) else {
                self.handled.settled += 1;
                continue;
            };
            let mut damage = self.quarantine(&damaged).await?;
            let mut was_quarantined = false;
            if damage.set_aside.is_none() {
                // By an earlier scrub: since then the object is missing.
                let known = before.as_ref().and_then(|before| before.evidence.damage.as_ref());
                damage.set_aside = known.and_then(|known| known.set_aside.clone());
                was_quarantined = damage.set_aside.is_some();
            }
            let known = before.as_ref().map(|before| before.reason);
            let uri = damaged.held.uri;
            let document = record.listing.document.clone();
            let problem = problem(record, before, damage);
            batch.put_problem(&Subject::Resource(uri.to_string()), &problem);
            // Its history gets one event, however often it is scrubbed. That a quarantined object is missing
            // is no news.
            if known != Some(problem.reason) && !was_quarantined {
                let event = ChangeEvent::Problem { reason: problem.reason, message: problem.message };
                batch.append_change(&ChangeLogEntry::new(uri, event, problem.last_seen, self.run, document));
            }
            self.handled.noted += 1;
        }
        Ok(self.catalog.commit(batch).await?)
    }

    /// Diagnoses the damage. A damaged object of its own is quarantined, so that it does not block the next
    /// put under its digest.
    pub(super) async fn quarantine(&mut self, damaged: &Damaged) -> Result<Damage, Failed> {
        let mut damage = damaged.damage();
        if let (Location::Object { sha256 }, true) = (&damaged.held.location, damaged.found.is_there) {
            let aside = self.store.quarantine(*sha256).await?;
            self.handled.quarantined += u64::from(aside.is_some());
            damage.set_aside = aside.map(|key| key.to_string());
        }
        Ok(damage)
    }
}

fn holds(record: &ResourceRecord, damaged: &Damaged) -> bool {
    let held = record.bitstream.as_ref();
    held.is_some_and(|held| {
        held.location == damaged.held.location && held.computed.sha256() == damaged.held.computed.sha256()
    })
}

/// The next run fetches it, and accepts even the same bytes. If an earlier problem states what the Source has
/// now, that stays.
fn problem(record: ResourceRecord, before: Option<ProblemRecord>, damage: Damage) -> ProblemRecord {
    let now = Timestamp::now();
    let reason =
        if damage.found.is_there { ProblemReason::DamagedBytes } else { ProblemReason::MissingBytes };
    let message = format!(
        "{}; the next run fetches it again, and what is damaged is never served",
        outcome::text_of(&damage)
    );
    let (first_seen, attempts) =
        before.as_ref().map_or((now, 0), |before| (before.first_seen, before.attempts));
    let (declaration, listing, candidate) = match before {
        Some(ProblemRecord { declaration: Some(declaration), listing: Some(listing), evidence, .. }) => {
            (declaration, listing, evidence.candidate)
        }
        _ => (record.declaration, record.listing, None),
    };
    ProblemRecord {
        reason,
        message,
        first_seen,
        last_seen: now,
        attempts,
        retry: true,
        next_attempt_at: None,
        ignored: None,
        evidence: Evidence { damage: Some(Box::new(damage)), candidate, ..Evidence::default() },
        declaration: Some(declaration),
        listing: Some(listing),
        repair: true,
    }
}
