//! Checks of polls: they find no news where there is none, and miss none.

use std::collections::BTreeMap;

use bytes::Bytes;
use discovery::PollOutcome;
use model::Absent;

use crate::invariants::Held;
use crate::plan::{Only, Step, Sync};
use crate::world::{Ended, LeftForPoll, World};

/// Polls the Source after a step, if the last run left a basis. `published_before` is the number of documents that
/// were published before the step. Returns whether nothing had changed.
///
/// # Errors
/// What a poll reported wrongly.
pub(crate) fn after_a_step(
    world: &mut World,
    ended: Option<&Ended>,
    held: &Held,
    published_before: u64,
) -> Result<bool, String> {
    let Some(left) = world.left.clone() else { return Ok(false) };
    let outcome =
        world.poll(&left.basis).map_err(|why| format!("a poll of a Source without faults failed: {why}"))?;
    let is_unchanged = matches!(outcome, PollOutcome::Unchanged { .. });
    // A resumed run has read what was published before it was interrupted.
    let is_idle = matches!(ended, Some(Ended::Report(report)) if !report.resumed)
        && world.site.published() == published_before;
    if is_idle && !is_unchanged {
        return Err(format!(
            "the Source has published nothing since the run began, and a poll says {outcome:?}"
        ));
    }
    if is_unchanged {
        nothing_is_missed(world, &left, held)?;
    }
    Ok(is_unchanged)
}

/// A run after a poll without news finds nothing to do.
///
/// # Errors
/// What it did.
pub(crate) fn a_run_does_nothing(world: &mut World) -> Result<(), String> {
    let before = world.site.requests();
    let ended = world.step(&Step::Sync(Sync::clean()));
    world.check_requests += world.site.requests() - before;
    let Some(Ended::Report(report)) = &ended else {
        return Err(format!("a run after a poll without news does not succeed: {ended:?}"));
    };
    let counters = &report.run.counters;
    let done = counters.planned + counters.stored + counters.deleted + counters.failed + counters.absent;
    if done + counters.gaps + counters.documents_failed + report.open_problems == 0 {
        Ok(())
    } else {
        Err(format!("a poll reported no news, and the next run found work: {counters:?}"))
    }
}

/// What the polled documents list is stored, and nothing else that they decide about.
fn nothing_is_missed(world: &World, left: &LeftForPoll, held: &Held) -> Result<(), String> {
    let broken = |why: String| Err(format!("a poll reported no news, and {why}"));
    let is_polled = |kind: &str| left.basis.documents.iter().any(|document| document.uri.contains(kind));
    let has_snapshots = is_polled("/resourcelist") || is_polled("/resourcedump");
    let listed = world.site.told_by_snapshots();
    let mut offered: BTreeMap<String, Option<Bytes>> = BTreeMap::new();
    if has_snapshots {
        offered.extend(listed.clone());
    }
    if is_polled("/changelist") || is_polled("/changedump") {
        offered.extend(world.site.told_by_changes());
    }
    if is_polled("/changelist") {
        // With the baseline before it, a Change List covers the whole Source.
        offered.extend(world.site.present_when_told());
    }
    if let Some(uri) = held.pending.first() {
        return broken(format!("{uri} is to be fetched still"));
    }
    let filter = Only::filter(left.only);
    let is_due = |uri: &str| filter.takes(uri) && !world.restored.contains(uri);
    for (uri, body) in offered.iter().filter(|(uri, _)| is_due(uri)) {
        let stored = held.bodies.get(uri).and_then(|body| body.as_ref().ok());
        if stored != body.as_ref() {
            let words = |body: Option<&Bytes>| {
                body.map_or("nothing".to_owned(), |body| format!("{} bytes", body.len()))
            };
            return broken(format!(
                "of {uri} {} are stored, the Source has {}",
                words(stored),
                words(body.as_ref())
            ));
        }
    }
    let is_left_alone = left.absent == Absent::Keep || world.kept_of_dump == Some(world.site.snapshots_at());
    if !has_snapshots || is_left_alone {
        return Ok(());
    }
    let surplus = held.records.iter().find(|(uri, record)| {
        let is_new = world.site.is_newer_than_snapshots(uri);
        record.is_present() && !listed.contains_key(*uri) && !is_new && record.absent.is_none()
    });
    match surplus {
        Some((uri, _)) => broken(format!("{uri} is stored, in no list, and not noted as absent")),
        None => Ok(()),
    }
}
