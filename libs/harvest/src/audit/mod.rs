//! An audit compares the catalog with the Source's documents (RS-32). It reads documents, and of dumps the manifests
//! in their packages (`dumps`). It requests no resource, and receives no package. Of an OAI-PMH repository it reads the
//! headers of all records (`repository`), and asks for a sample of the records if the operator wants it (`sample`).
//!
//! The entries of all documents are sorted by URI on the disk (`entries`) and merge-joined with the catalog, which has
//! the same order. So each side is read once, whatever the order of documents, and memory is constant. `judge`
//! compares. Differences go to a file (`differences`); `repair` queues them, if requested.

mod differences;
mod dumps;
mod judge;
mod named;
mod read;
mod repair;
mod repository;
mod sample;

use std::sync::Arc;

use model::{
    Action, AuditCounts, DifferenceKind, PendingRecord, Provenance, ResourceRecord, ResourceUri, Seq, SetId,
    SetRecord, Why,
};
use planning::{
    Decision, Horizon, ListedEntry, ReadBudget, continuity, is_newer, is_stored_as_declared, strategy, why,
};
use reconcile::{CatalogRow, Counting, MergeJoin, Records, SpooledEntry};
use resourcesync::{Capability, Mode as ReadMode};

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::reading::names;
use crate::run::RunContext;
use crate::run::problems::subject;

pub use differences::{Difference, Differences};
use differences::{Found, Notes};
use judge::{Finding, judge};
use read::{Audited, SpooledLists};
use sample::Sample;

/// Differences of each kind that are kept for display.
const SHOWN: u64 = 5;
/// Resources compared between two checks for cancellation.
const AT_ONCE: usize = 512;

/// Result of an audit.
#[derive(Debug, Clone)]
pub struct Audit {
    /// Number of differences, by kind.
    pub counts: AuditCounts,
    /// The first few of each kind, and of the ignored ones.
    pub first: Vec<Difference>,
    /// All differences.
    pub all: Arc<Differences>,
    /// What could not be compared, and why: the first remarks.
    pub remarks: Vec<String>,
}

/// Compares a Source with its catalog.
#[derive(Debug, Default)]
pub(crate) struct Auditor {
    /// Consumption of the run's limits.
    budget: ReadBudget,
}

/// A comparison in progress.
struct Comparison {
    sets: Vec<Audited>,
    documents: Vec<(Arc<str>, SetId)>,
    /// Whether discovery of the Source's offer was incomplete.
    is_partial: bool,
    counts: AuditCounts,
    first: Vec<Difference>,
    notes: Notes,
    sample: Sample,
}

impl Auditor {
    /// Compares, and queues the differences if requested. Writes nothing else to the catalog.
    pub(crate) async fn run(
        mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
    ) -> Result<Audit, HarvestError> {
        ctx.know_publications().await?;
        let horizon = Horizon::at(ctx.clock.now());
        let mut spooled = SpooledLists::new(horizon);
        let (sets, is_partial) = Box::pin(self.offered(ctx, &mut spooled)).await?;
        let mut audited = Vec::with_capacity(sets.len());
        for (id, set) in &sets {
            if !tells_all(set) {
                spooled.note_unread(|| {
                    format!("{id} offers no Resource List and no Resource Dump: what is held of it is not compared")
                });
            }
            audited.push(match &set.oai {
                Some(list) => Box::pin(self.read_repository(ctx, &mut spooled, id, list)).await?,
                None => Box::pin(self.read_set(ctx, &mut spooled, id, set)).await?,
            });
        }
        let gaps = self.gaps_after(ctx, &audited, &mut spooled);
        let SpooledLists { entries, documents, mut remarks, unread, .. } = spooled;
        let counts = AuditCounts { unread, gaps, ..AuditCounts::default() };
        let notes = Notes::new()?;
        let sample = Sample::of(ctx.options.sample);
        let mut comparison =
            Comparison { sets: audited, documents, is_partial, counts, first: Vec::new(), notes, sample };
        let records = Records::All(ctx.options.filter.clone());
        let join =
            MergeJoin::begin(&*ctx.catalog().await?, entries.sorted(Counting::Last).await?, records).await?;
        Box::pin(self.compare_all(ctx, &mut comparison, join)).await?;
        remarks.extend(Box::pin(comparison.compare_sample(ctx)).await?);
        let unread = comparison.counts.unread;
        let Comparison { sets, counts, first, notes, .. } = comparison;
        let mut audit = Audit { counts, first, all: Arc::new(notes.finish()?), remarks };
        ctx.run.counters.gaps += gaps;
        ctx.run.counters.documents_failed += unread;
        ctx.run.counters.audit = Some(audit.counts);
        if ctx.options.repair {
            Box::pin(repair::repair(ctx, planner, &mut audit, &sets)).await?;
        }
        Ok(audit)
    }

    /// Runs discovery. Also returns whether its result is incomplete.
    async fn offered(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
    ) -> Result<(Vec<(SetId, SetRecord)>, bool), HarvestError> {
        let known = ctx.catalog().await?.discovery().await?.filter(|known| known.entry == ctx.entry.as_str());
        let known = known.map(|known| known.documents).unwrap_or_default();
        let options = spooled.horizon.options(ReadMode::Tolerant);
        let (found, _) = match repository::chosen(ctx) {
            Some(lists) => {
                discovery::discover_source(&ctx.client, &ctx.entry, &options, known, &lists, false).await?
            }
            None => discovery::rediscover(&ctx.client, &ctx.entry, &options, known).await?,
        };
        ctx.run.counters.requests += found.requests;
        for document in found.documents.iter().filter(|document| document.entries.is_some()) {
            ctx.run.counters.add_quirks(&names(&document.quirks));
        }
        for unread in &found.failures {
            spooled.note_unread(|| format!("{}: {}", unread.url, unread.why));
        }
        if !found.sets.iter().any(|(_, set)| tells_all(set)) {
            let offers = strategy::offers(&found.sets);
            return Err(HarvestError::NoList { source_url: ctx.entry.to_string(), offers });
        }
        Ok((found.sets, !found.failures.is_empty()))
    }

    /// Number of gaps after the lists: times that no Change List covers.
    fn gaps_after(&self, ctx: &mut RunContext, sets: &[Audited], spooled: &mut SpooledLists) -> u64 {
        let mut gaps = 0;
        for set in sets {
            let holes = continuity::follow(set.at_latest, ctx.run.id, set.changes.iter()).gaps;
            for gap in &holes {
                spooled.remark(|| {
                    format!(
                        "no document covers the changes in {} between {} and {}",
                        set.id, gap.after, gap.before
                    )
                });
            }
            gaps += holes.len() as u64;
        }
        gaps
    }

    /// Processes the merge join.
    async fn compare_all(
        &self,
        ctx: &mut RunContext,
        comparison: &mut Comparison,
        mut join: MergeJoin,
    ) -> Result<(), HarvestError> {
        let mut looked_at: usize = 0;
        while let Some(joined) = join.next().await? {
            if looked_at.is_multiple_of(AT_ONCE) {
                ctx.check_stop()?;
            }
            looked_at += 1;
            if let Some(found) = self.compare_one(ctx, comparison, joined.entries.only(), joined.known)? {
                comparison.note(self.left_alone(ctx, found).await?)?;
            }
        }
        Ok(())
    }

    /// Marks a difference as ignored, as long as the Source's declaration is unchanged.
    async fn left_alone(&self, ctx: &mut RunContext, mut found: Found) -> Result<Found, HarvestError> {
        let Some(plan) = found.plan.as_ref().filter(|_| ctx.problems.any_ignored) else { return Ok(found) };
        let problem = ctx.catalog().await?.problem(&subject(&found.difference.uri)).await?;
        let problem = problem.filter(|problem| problem.is_about(&plan.declaration, &plan.listing));
        if let Some(ignored) = problem.and_then(|problem| problem.ignored) {
            found.plan = None;
            found.difference.ignored = Some(ignored.note);
        }
        Ok(found)
    }

    fn compare_one(
        &self,
        ctx: &mut RunContext,
        comparison: &mut Comparison,
        entry: Option<&SpooledEntry>,
        known: Option<CatalogRow>,
    ) -> Result<Option<Found>, HarvestError> {
        let held = known.as_ref().and_then(|known| known.holding.bitstream.as_ref());
        if let Some(known) = known.as_ref().filter(|_| held.is_some()) {
            comparison.count_held(&known.holding.sets);
        }
        let Some(entry) = entry else {
            return match known.as_ref().filter(|_| held.is_some()) {
                Some(known) => Ok(self.not_listed(ctx, comparison, known.unread.read()?)),
                None => Ok(None),
            };
        };
        if entry.plain().is_some_and(|(sha256, length)| is_stored_as_declared(sha256, length, held)) {
            comparison.counts.agreeing += 1;
            return Ok(None);
        }
        let entry = entry.read(&comparison.documents)?;
        let record = known.map(|known| known.unread.read()).transpose()?.map(|(_, record)| record);
        let record = record.as_ref();
        // What is stored is compared, whatever its entry says; what is left out is not missing.
        let is_held = record.is_some_and(ResourceRecord::is_present);
        let filter = &ctx.options.filter;
        if !is_held && (!filter.admits(&entry) || filter.leaves_open(&entry)) {
            return Ok(None);
        }
        if ctx.options.follow.leaves_to_links(filter, &entry) {
            comparison.counts.unjudged += u64::from(is_held);
            return Ok(None);
        }
        match judge(&entry, record) {
            Finding::InSync => comparison.counts.agreeing += 1,
            Finding::WithoutFixity => {
                comparison.counts.without_fixity += 1;
                if let Some(record) = record.filter(|_| is_of_repository(ctx, &entry.listing.set)) {
                    comparison.sample.offer(&entry, record);
                }
            }
            Finding::Newer => comparison.counts.newer += 1,
            Finding::Nothing => {}
            Finding::Differs { kind, decision, why } => {
                let document = Some(entry.listing.document.as_ref().to_owned());
                let uri = entry.uri.clone();
                let difference = Difference { difference: kind, uri, why, document, ignored: None };
                let plan = decision.and_then(|decision| plan(entry, kind, decision, record));
                return Ok(Some(Found { difference, plan, absent_from: None }));
            }
        }
        Ok(None)
    }

    /// Handles a stored resource that no list contains.
    fn not_listed(
        &self,
        ctx: &mut RunContext,
        comparison: &mut Comparison,
        (uri, record): (ResourceUri, ResourceRecord),
    ) -> Option<Found> {
        if ctx.options.follow.leaves_out(&uri, &record) {
            // Links that are not followed now led to it.
            comparison.counts.unjudged += 1;
            return None;
        }
        let of_sets: Vec<usize> = comparison.sets_of(&record).collect();
        if of_sets.is_empty() && record.sets.iter().any(|set| is_of_repository(ctx, set)) {
            // Only lists that the options choose no more have it, and these are not read.
            comparison.counts.unjudged += 1;
            return None;
        }
        if comparison.is_partial || of_sets.iter().any(|n| !comparison.sets[*n].is_whole) {
            comparison.counts.unjudged += 1;
            return None;
        }
        let at = of_sets.iter().map(|n| comparison.sets[*n].lists.at).min().flatten();
        if !of_sets.is_empty() && is_newer(&record.listing, at) {
            comparison.counts.newer += 1;
            return None;
        }
        let why = match (&record.absent, of_sets.is_empty()) {
            (_, true) => "its Source does not offer its set any more",
            (Some(_), _) => {
                "no list names it any more; that was noted before, and a later list has to confirm it"
            }
            (None, _) => "no list names it any more",
        };
        comparison.counts.extra_noted += u64::from(record.absent.is_some());
        let absent_from = of_sets.first().copied();
        if let Some(set) = absent_from {
            let set = &mut comparison.sets[set];
            set.to_delete += u64::from(ctx.deletion_guard().is_confirmed(&record, set.lists.at));
        }
        let document = absent_from.map(|set| comparison.sets[set].lists.document.clone());
        let difference = DifferenceKind::Extra;
        let why = why.to_owned();
        let difference = Difference { difference, uri, why, document, ignored: None };
        Some(Found { difference, plan: None, absent_from })
    }
}

impl Comparison {
    /// The audited sets of a resource, by number.
    fn sets_of(&self, record: &ResourceRecord) -> impl Iterator<Item = usize> {
        (0..self.sets.len()).filter(|n| record.sets.contains(&self.sets[*n].id))
    }

    /// Counts a stored resource of these sets.
    fn count_held(&mut self, sets: &[SetId]) {
        self.counts.held += 1;
        for set in self.sets.iter_mut().filter(|set| sets.contains(&set.id)) {
            set.held += 1;
        }
    }

    fn note(&mut self, found: Found) -> Result<(), HarvestError> {
        let kind = found.difference.difference;
        let so_far = match found.difference.ignored {
            Some(_) => {
                self.counts.ignored += 1;
                self.counts.ignored
            }
            None => {
                self.counts.add(kind);
                self.counts.of(kind)
            }
        };
        if so_far <= SHOWN {
            self.first.push(found.difference.clone());
        }
        Ok(self.notes.add(&found)?)
    }
}

/// Whether a set is a list of an OAI-PMH repository.
fn is_of_repository(ctx: &RunContext, set: &SetId) -> bool {
    ctx.sets.get(set).is_some_and(|set| set.oai.is_some())
}

/// Whether a set offers documents that contain all its resources.
fn tells_all(set: &SetRecord) -> bool {
    let kinds = [Capability::ResourceList, Capability::ResourceDump];
    kinds.iter().any(|kind| set.documents(kind).next().is_some())
}

/// The plan that repairs a difference.
fn plan(
    entry: ListedEntry,
    kind: DifferenceKind,
    decision: Decision,
    record: Option<&ResourceRecord>,
) -> Option<PendingRecord> {
    let action = match decision {
        Decision::Delete => Action::Delete,
        Decision::Fetch | Decision::Ask => Action::Fetch { origin: entry.uri.origin().ok()? },
        Decision::Unchanged | Decision::Stale => return None,
    };
    let repair = kind == DifferenceKind::Differing;
    let why = if repair { Why::Repair } else { why(decision, &entry.declaration, record) };
    Some(PendingRecord {
        repair,
        ..PendingRecord::new(Seq::default(), action, entry.declaration, entry.listing, Provenance::of(why))
    })
}
