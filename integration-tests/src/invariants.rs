//! The promises of the design, as far as they are visible from outside. Each check reports the promise that
//! is broken.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{Only, Step, Sync};
use crate::site::What;
use crate::world::{Ended, World};
use bytes::Bytes;
use catalog::CatalogReader;
use fixity::Sha256;
use futures::TryStreamExt;
use model::{Mode, ProblemReason, ResourceRecord, Subject};
use store::Store;

/// Messages, and queues, that may remain for a while although they have no further effect.
const LEFT_BEHIND: usize = 8;

/// The content of a copy.
#[derive(Debug, Default)]
pub struct Held {
    /// The records of resources.
    pub records: BTreeMap<String, ResourceRecord>,
    /// The bytes of the present ones, or why they cannot be read.
    pub bodies: BTreeMap<String, Result<Bytes, String>>,
    /// The recorded problems.
    pub problems: Vec<(Subject, ProblemReason, String)>,
    /// Pending resources.
    pub pending: BTreeSet<String>,
}

impl Held {
    /// Reads the copy of a world.
    ///
    /// # Errors
    /// When the catalog cannot be read, which breaks a promise.
    pub fn of(world: &World) -> Result<Self, String> {
        world.look(Self::read)
    }

    /// Reads a copy.
    ///
    /// # Errors
    /// As [`Held::of`].
    pub async fn read(store: Store, reader: Option<CatalogReader>) -> Result<Self, String> {
        let mut held = Self::default();
        let Some(reader) = reader else { return Ok(held) };
        let say = |error: catalog::CatalogError| format!("the catalog cannot be read: {error}");
        let mut records = reader.scan_resources(None, None).await.map_err(say)?;
        while let Some((uri, record)) = records.try_next().await.map_err(say)? {
            if let Some(bitstream) = &record.bitstream {
                let body = store.read_verified(bitstream).await.map_err(|error| error.to_string());
                held.bodies.insert(uri.to_string(), body);
            }
            held.records.insert(uri.to_string(), record);
        }
        let mut problems = reader.scan_problems().await.map_err(say)?;
        while let Some((subject, problem)) = problems.try_next().await.map_err(say)? {
            held.problems.push((subject, problem.reason, problem.message));
        }
        let mut pending = reader.scan_pending(None).await.map_err(say)?;
        while let Some((uri, _)) = pending.try_next().await.map_err(say)? {
            held.pending.insert(uri.to_string());
        }
        reader.close().await.map_err(say)?;
        Ok(held)
    }

    fn problem_of(&self, uri: &str) -> bool {
        self.problems.iter().any(|(subject, _, _)| matches!(subject, Subject::Resource(of) if of == uri))
    }
}

/// Checks that hold at every moment.
///
/// # Errors
/// The promise that is broken, and how.
pub fn always(world: &World, held: &Held) -> Result<(), String> {
    nothing_unverified_is_served(world, held)?;
    nothing_is_deleted_without_a_word(world, held)?;
    memory_is_flat(world)?;
    a_source_is_never_hurt(world)
}

/// Checks that hold after a run.
///
/// # Errors
/// The promise that is broken, and how.
pub fn after_a_run(world: &World, step: &Step, ended: &Ended, held: &Held) -> Result<(), String> {
    match (step, ended) {
        (Step::Sync(sync), Ended::Report(report)) => nothing_is_guessed_away(world, sync, report, held),
        _ => Ok(()),
    }
}

/// Promise 1: the bytes of a record are stored, match it, and are a version that the Source had.
fn nothing_unverified_is_served(world: &World, held: &Held) -> Result<(), String> {
    let broken = |why: String| Err(format!("promise 1, nothing unverified is ever served: {why}"));
    let history = world.site.history();
    for (uri, record) in &held.records {
        let Some(bitstream) = &record.bitstream else { continue };
        let body = match &held.bodies[uri] {
            Ok(body) => body,
            Err(why) => return broken(format!("{uri} cannot be read: {why}")),
        };
        let versions = history.get(uri).map(Vec::as_slice).unwrap_or_default();
        if !versions.iter().any(|version| version.body.as_ref() == Some(body)) {
            return broken(format!("{uri} has {} bytes that the Source never had", body.len()));
        }
        if bitstream.computed.sha256() != Sha256::of(body) {
            return broken(format!("{uri} has another digest than its record says"));
        }
        let declared = record.declaration.digests.iter();
        let declared: Vec<String> = declared.map(ToString::to_string).collect();
        let ours = format!("sha-256:{}", Sha256::of(body));
        if declared.iter().any(|digest| digest.starts_with("sha-256:") && *digest != ours) {
            return broken(format!("{uri} is {ours}, and declared to be {declared:?}"));
        }
        if record.declaration.length.is_some_and(|length| length != body.len() as u64) {
            return broken(format!(
                "{uri} has {} bytes, and {:?} are declared",
                body.len(),
                record.declaration.length
            ));
        }
    }
    Ok(())
}

/// Promise 3, of deletions: only resources that the Source deleted at some time are deleted in the copy.
fn nothing_is_deleted_without_a_word(world: &World, held: &Held) -> Result<(), String> {
    let history = world.site.history();
    for (uri, record) in &held.records {
        let versions = history.get(uri).map(Vec::as_slice).unwrap_or_default();
        if !record.is_present() && versions.iter().all(|version| version.body.is_some()) {
            return Err(format!(
                "promise 3, nothing is guessed away: {uri} is deleted, and the Source never deleted it"
            ));
        }
    }
    Ok(())
}

/// Promise 3: after a run, every resource that is not in sync is a problem, or recorded as absent.
fn nothing_is_guessed_away(
    world: &World,
    sync: &Sync,
    report: &harvest::Report,
    held: &Held,
) -> Result<(), String> {
    let broken = |why: String| Err(format!("promise 3, nothing is guessed away: {why}"));
    if let Some(uri) = held.pending.first() {
        return broken(format!("the run is finished, and {uri} is to be fetched still"));
    }
    if report.open_problems != held.problems.len() as u64 {
        return broken(format!(
            "{} problems are reported, and there are {:?}",
            report.open_problems, held.problems
        ));
    }
    let is_moving = sync.http.iter().any(|fault| matches!(fault.what, What::Changes | What::Publishes));
    let whole = held.problems.iter().all(|(subject, _, _)| matches!(subject, Subject::Resource(_)));
    // An interrupted run has read what was published before the interruption. Every entry of a run has a
    // result, also in a run that the deletion guard stopped. A resumed run has counted before.
    let reads = matches!(report.run.mode, Mode::Baseline | Mode::Incremental);
    if reads && !report.resumed && report.run.counters.shortfall() > 0 {
        return Err(format!("entries came to no end that is counted: {:?}", report.run.counters));
    }
    if is_moving || !whole || report.guard.is_some() || report.resumed {
        return Ok(());
    }
    let (told, listed) = match report.run.mode {
        Mode::Baseline => (world.site.told_by_snapshots(), true),
        Mode::Incremental => (world.site.told_by_changes(), false),
        Mode::Repair | Mode::Audit => return Ok(()),
    };
    let filter = Only::filter(sync.only);
    for (uri, body) in told.iter().filter(|(uri, _)| filter.takes(uri)) {
        // A list may be the rest of one that an earlier run began.
        if world.site.is_newer_than_lists(uri) {
            continue;
        }
        let is = held.bodies.get(uri).and_then(|body| body.as_ref().ok());
        if is != body.as_ref() && !held.problem_of(uri) && !world.restored.contains(uri) {
            return broken(format!(
                "after a run {:?} that read of it, {uri} is {}, the Source has {}, and there is no problem",
                report.run.mode,
                words(is),
                words(body.as_ref())
            ));
        }
    }
    let is_left_alone =
        sync.absent == model::Absent::Keep || world.kept_of_dump == Some(world.site.snapshots_at());
    if !listed || is_left_alone {
        return Ok(());
    }
    for (uri, record) in &held.records {
        let is_new = world.site.is_newer_than_snapshots(uri);
        if record.is_present() && !told.contains_key(uri) && !is_new && record.absent.is_none() {
            return broken(format!("{uri} is in no list, held, and not noted as absent"));
        }
    }
    Ok(())
}

/// Promise 4, as far as it is visible here: work under way is bounded by the window.
fn memory_is_flat(world: &World) -> Result<(), String> {
    // Per origin: jobs in flight, waiting jobs, and their outcomes.
    let origins = (world.plan.site.hosts as usize + 1).min(world.plan.window.origins.get() + 1);
    let most = 8 * world.plan.per_origin * origins + LEFT_BEHIND;
    if world.most_under_way > most {
        return Err(format!("promise 4, memory is flat: {} messages were under way", world.most_under_way));
    }
    // A queue cannot be closed while its last message is not acknowledged.
    if world.most_origins > world.plan.window.origins.get() + LEFT_BEHIND {
        Err(format!("promise 4, memory is flat: {} origins had a queue", world.most_origins))
    } else {
        Ok(())
    }
}

/// Promise 5: never more concurrent requests than allowed, and none during a cooldown.
fn a_source_is_never_hurt(world: &World) -> Result<(), String> {
    if let Some(wrong) = world.site.wrongs().first() {
        return Err(format!("promise 5, a source is never hurt: {wrong}"));
    }
    if world.site.most_open() > world.plan.per_origin {
        Err(format!(
            "promise 5, a source is never hurt: {} requests were open at a time, {} are allowed",
            world.site.most_open(),
            world.plan.per_origin
        ))
    } else {
        Ok(())
    }
}

/// Promise 2: once no more faults occur, the copy equals the Source, byte for byte.
///
/// # Errors
/// Missing or additional resources.
pub fn nothing_is_lost(world: &World, held: &Held) -> Result<(), String> {
    let broken = |why: String| Err(format!("promise 2, nothing is lost: {why}"));
    if let Some((subject, reason, message)) = held.problems.first() {
        return broken(format!("an honest Source ends with a problem: {subject}: {reason}: {message}"));
    }
    let present = world.site.present();
    for (uri, body) in &present {
        let is = held.bodies.get(uri).and_then(|body| body.as_ref().ok());
        if is != Some(body) {
            return broken(format!("{uri} is {}, the Source has {}", words(is), words(Some(body))));
        }
    }
    let surplus =
        held.bodies.keys().find(|uri| !present.contains_key(*uri) && !world.restored.contains(*uri));
    match surplus {
        Some(uri) => broken(format!("{uri} is held, and the Source has it no more")),
        None => Ok(()),
    }
}

fn words(body: Option<&Bytes>) -> String {
    body.map_or("not there".to_owned(), |body| {
        let text = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        format!("{} bytes {text:?}", body.len())
    })
}
