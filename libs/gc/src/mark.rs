//! Marking: finds all references in the records of one catalog.

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{PackageState, ResourceRecord, SourceId};
use store::OrphanUpload;

use crate::error::GcError;
use crate::marks::{By, Marks, SourceMarks};
use crate::times::{Times, is_at_rest};

/// Marks what the records of a catalog point to. Due tombstones are skipped if the collection is about to remove them.
///
/// The order matters, because a catalog changes while it is read. A location moves from a problem to a resource, or to
/// a pending record and then to a resource; from a package to its resources; from a resource to its kept versions; and
/// never back. So problems are read first, resources late and versions last, and no location is missed.
pub(crate) async fn mark(
    catalog: &Lookups,
    source: &SourceId,
    uploads: &[OrphanUpload],
    times: &Times,
    gives_up: bool,
    marks: &mut Marks,
) -> Result<SourceMarks, GcError> {
    let failed = |error| GcError::Unreadable { source_id: source.clone(), error };
    let run = catalog.last_run().await.map_err(failed)?;
    let mut problems = catalog.scan_problems().await.map_err(failed)?;
    while let Some((_, problem)) = problems.try_next().await.map_err(failed)? {
        if let Some(candidate) = problem.evidence.candidate {
            marks.add(&candidate.location, By::Other)?;
        }
    }
    drop(problems);
    let job = packages(catalog, source, marks).await.map_err(failed)?;
    // The complete package may be stored before its record says so.
    let needed = marks.of(source);
    let going_on = uploads.iter().filter(|upload| needed.plans.contains(&upload.seq));
    let received: Vec<_> = going_on.filter_map(|upload| upload.package).collect();
    needed.packages.extend(received);
    let mut pending = catalog.scan_pending(None).await.map_err(failed)?;
    while let Some((_, record)) = pending.try_next().await.map_err(failed)? {
        for patch in record.patch.iter().flat_map(|plan| &plan.steps).filter_map(|step| step.stored.as_ref())
        {
            marks.add(&patch.location, By::Other)?;
        }
        if let Some(candidate) = record.candidate {
            marks.add(&candidate.location, By::Other)?;
        }
    }
    drop(pending);
    let mut due = 0;
    let before = times.retained_since();
    let mut resources = catalog.scan_resources(None, None).await.map_err(failed)?;
    while let Some((_, record)) = resources.try_next().await.map_err(failed)? {
        let is_due = is_due(&record, before);
        due += u64::from(is_due);
        let deleted = record.deleted.filter(|_| !(is_due && gives_up));
        for held in [record.bitstream, deleted].into_iter().flatten() {
            marks.add(&held.location, By::Resource)?;
        }
    }
    drop(resources);
    let mut versions = catalog.scan_versions(None).await.map_err(failed)?;
    while let Some((_, versions)) = versions.try_next().await.map_err(failed)? {
        for version in versions.kept.into_iter().filter(|version| version.lost.is_none()) {
            marks.add(&version.bitstream.location, By::Other)?;
        }
    }
    drop(versions);
    freed(catalog, source, before, marks).await?;
    let run = run.filter(|run| !is_at_rest(run)).map(|run| run.started_at);
    let unfinished = [run, job].into_iter().flatten().min();
    Ok(SourceMarks { source: source.clone(), young: times.young_since(unfinished), unfinished, due })
}

/// Whether the bytes of a tombstone may be removed: it was written before `before`.
pub(crate) fn is_due(record: &ResourceRecord, before: Timestamp) -> bool {
    record.bitstream.is_none() && record.deleted.is_some() && record.settled_at < before
}

/// Marks packages in work, with their indexes. Returns the start of the earliest job that opens one of them and whose
/// end is awaited, possibly in a later run.
async fn packages(
    catalog: &Lookups,
    source: &SourceId,
    marks: &mut Marks,
) -> Result<Option<Timestamp>, CatalogError> {
    let mut began: Option<Timestamp> = None;
    let needed = marks.of(source);
    let mut packages = catalog.scan_packages().await?;
    while let Some((_, record)) = packages.try_next().await? {
        let (stored, index) = match record.state {
            PackageState::Wanted => (None, None),
            PackageState::Stored { stored } => (Some(stored), None),
            PackageState::Opened { stored, contents, .. } => (Some(stored), contents.index),
            // The next run resumes from its results.
            PackageState::Failed if record.kept => (None, None),
            PackageState::Done | PackageState::Failed => continue,
        };
        let job = record.job.map(|job| job.given_at());
        began = [began, job].into_iter().flatten().min();
        needed.plans.insert(record.seq);
        needed.packages.extend(index);
        if let Some(model::Location::Package { package, .. }) = stored.map(|stored| stored.location) {
            needed.packages.insert(package);
        }
    }
    Ok(began)
}

/// Marks locations that records released since `since`, because a reader may have looked one up before.
async fn freed(
    catalog: &Lookups,
    source: &SourceId,
    since: Timestamp,
    marks: &mut Marks,
) -> Result<(), GcError> {
    let failed = |error| GcError::Unreadable { source_id: source.clone(), error };
    let begin = first_change_since(catalog, since).await.map_err(failed)?;
    let mut changes = catalog.scan_changes(begin).await.map_err(failed)?;
    while let Some((_, change)) = changes.try_next().await.map_err(failed)? {
        if change.at >= since {
            for freed in change.freed.iter().chain(&change.freed_versions) {
                marks.add(freed, By::Reader)?;
            }
        }
    }
    let rewritten = catalog.rewritten_packs().await.map_err(failed)?;
    for rewritten in rewritten.into_iter().filter(|rewritten| rewritten.at >= since) {
        marks.of(source).packs.entry(rewritten.pack).or_default().freed = true;
    }
    Ok(())
}

/// The first number in the change log of this time or later. Numbers increase with time.
async fn first_change_since(catalog: &Lookups, since: Timestamp) -> Result<u64, CatalogError> {
    // Whether the next entry at or after a number is of an earlier time. False if there is no such entry.
    let is_before = async |number: u64| -> Result<bool, CatalogError> {
        let next = catalog.scan_changes(number).await?.try_next().await?;
        Ok(next.is_some_and(|(_, change)| change.at < since))
    };
    let mut low = 0;
    let mut high = 1;
    while is_before(high).await? {
        low = high;
        high *= 2;
    }
    // The entry at `low` is of an earlier time, the one at `high` is not.
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_before(middle).await? { low = middle } else { high = middle }
    }
    Ok(low)
}
