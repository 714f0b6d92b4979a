//! A harvest: the owner of one Source brings it in sync.

use documents::Prefetched;
use planning::{GuardReport, HarvestOptions, Latencies, ManyAbsent, ReadBudget};
use reconcile::Absences;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bus::Bus;
use catalog::{Batch, Catalog};
use jiff::{SignedDuration, Timestamp};
use model::{
    CapabilityLink, Clock, Counters, DocumentRecord, Mode, Phase, ProblemReason, ProblemRecord, RunId,
    RunRecord, Seq, SetId, SetRecord, SourceId, Subject,
};
use resourcesync::Capability;
use store::{Store, View};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use url::Url;
use web::Client;

use crate::audit::Audit;

use crate::commit::Commits;
use crate::error::HarvestError;
use crate::fresh::Fresh;
use crate::push_lag::PushLag;
use crate::reconciler::{Ahead, Spool};

use crate::pending_bound::PendingBound;
use crate::problems::{self, OpenProblems};
use crate::progress::{DocumentCounts, Progress};
use crate::versions::History;

use crate::run_observer::RunObserver;
use crate::{change_notifications, queue};

/// Dependencies of a harvest. One per Source, because a catalog has one writer.
pub struct Parts {
    /// The Source's ID.
    pub source: SourceId,
    /// The entry URL, as the operator gave it.
    pub entry: Url,
    /// The Source's catalog.
    pub catalog: Catalog,
    /// The store of all bytes.
    pub store: Store,
    /// The view of resources as files, if there is one.
    pub view: Option<View>,
    /// HTTP client for documents.
    pub client: Client,
    /// The bus that carries jobs.
    pub bus: Arc<dyn Bus>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The operator's options.
    pub options: HarvestOptions,
    /// Channel for progress reports.
    pub progress: watch::Sender<Progress>,
    /// Observer of the changes that the run made, if any.
    pub witness: Option<Arc<dyn RunObserver>>,
    /// Push lag of the changes that notifications reported.
    pub push_lag: PushLag,
    /// Cancelled to stop the harvest.
    pub stop: CancellationToken,
}

/// A run that this process owns.
pub struct Harvest {
    pub(crate) source: SourceId,
    pub(crate) entry: Url,
    pub(crate) catalog: Arc<Catalog>,
    /// Commits in progress while the next portion is prepared.
    pub(crate) commits: Commits,
    pub(crate) store: Store,
    pub(crate) view: Option<View>,
    pub(crate) client: Client,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: HarvestOptions,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) witness: Option<Arc<dyn RunObserver>>,
    pub(crate) push_lag: PushLag,
    pub(crate) stop: CancellationToken,
    pub(crate) run: RunRecord,
    pub(crate) sets: HashMap<SetId, SetRecord>,
    pub(crate) seq: Seq,
    /// Whether earlier documents were read with the same options, so that "not modified" means no work.
    pub(crate) may_trust_validators: bool,
    /// For which resources pending records may exist. A finished run leaves none.
    pub(crate) reach: PendingBound,
    /// The latest change in the documents of each set, as far as this process requested them.
    pub(crate) told_to: HashMap<SetId, Timestamp>,
    /// Recently planned records.
    pub(crate) fresh: Fresh,
    /// Whether only pending records exist, so that lookups find nothing. True in a first harvest: from its start to
    /// the first settled outcome, and again throughout dispatch, which settles each resource once.
    pub(crate) is_bare: bool,
    /// Pending records left, and how many had been planned when they were counted.
    pub(crate) left: Left,
    /// Whether any problem record exists; without one, lookups are skipped.
    pub(crate) has_problems: bool,
    /// Origins whose bot defence answered with a challenge in this run.
    pub(crate) challenged: HashSet<model::Lane>,
    /// Number of versions to keep of each resource.
    pub(crate) history: History,
    /// Whether the operator ignores any problem.
    pub(crate) has_ignored: bool,
    /// Problems of documents that this process settled by reading the documents, in case they occur again.
    pub(crate) settled_problems: HashMap<String, ProblemRecord>,
    /// Known problems with entries of the current document, by position.
    pub(crate) entry_problems: HashMap<String, ProblemRecord>,
    /// Problems requeued at the start, by the document that listed them.
    pub(crate) requeued: HashMap<String, u64>,
    /// Sets that get a full rescan although their changes are followed.
    pub(crate) again: HashSet<SetId>,
    /// Absences of each set, from the lists read in this process; none if they cannot be known.
    pub(crate) seen: HashMap<SetId, Option<Absences>>,
    /// Entries that wait for the merge join.
    pub(crate) spool: Spool,
    /// Counters of these entries.
    pub(crate) ahead: Ahead,
    /// Whether this run has already run discovery, so that another one is pointless.
    pub(crate) has_looked: bool,
    /// Documents that this process read from the first entry to the end.
    pub(crate) read_whole: HashSet<String>,
    /// Indexes of the edition that was read, although their parts state a later time.
    pub(crate) current_indexes: HashSet<String>,
    /// Documents that were not modified, in this process.
    pub(crate) unmodified: HashSet<String>,
    /// The list that discovery has begun to read. Dropped before the next request.
    pub(crate) begun: Option<Prefetched>,
    /// Task that measures which delay the origin of a first list wants between two requests. Returns the requests it
    /// made.
    pub(crate) spacing: Option<AbortOnDropHandle<u32>>,
    /// Set if more resources would have been deleted than allowed.
    pub(crate) guard: Option<GuardReport>,
    /// Lists that omit many stored resources.
    pub(crate) unlisted: Vec<ManyAbsent>,
    /// Response times of the Source, in this process.
    pub(crate) waits: Latencies,
    /// Consecutive times that all outstanding jobs vanished from the bus.
    pub(crate) vanished: u32,
    /// Whether it resumes an interrupted run.
    pub(crate) is_resumed: bool,
    /// Whether the Source's documents were queued for the run.
    pub(crate) has_begun: bool,
    /// Consumption of the run's limits on documents.
    pub(crate) spent: ReadBudget,
    /// Channels that the sets offered at the start, without fragments.
    pub(crate) topics: HashSet<String>,
    /// Number of missed changes of each set: a hub should have reported them, and did not.
    pub(crate) missed: HashMap<SetId, u64>,
    /// Times of changes from notifications that the next batch settles.
    pub(crate) settling: Vec<Timestamp>,
}

/// Number of pending records left: planned ones are added, settled ones subtracted.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) pending: u64,
    pub(crate) planned: u64,
}

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The run.
    pub run: RunRecord,
    /// Whether it resumed an interrupted run.
    pub resumed: bool,
    /// Result of the audit, if it is one.
    pub audit: Option<Audit>,
    /// Open problems of this run and earlier ones, without those that the operator ignores.
    pub open_problems: u64,
    /// Open problems by reason.
    pub problems_by_reason: BTreeMap<ProblemReason, u64>,
    /// Problems that the operator ignores.
    pub ignored_problems: u64,
    /// Report of the deletion guard, if it prevented deletions.
    pub guard: Option<GuardReport>,
    /// Lists that omit many stored resources. All of these are kept for now.
    pub unlisted: Vec<ManyAbsent>,
    /// The first few open problems.
    pub first_problems: Vec<(Subject, ProblemRecord)>,
    /// The channels that its sets offer, as far as known (CN-1).
    pub channels: Vec<(SetId, CapabilityLink)>,
    /// Number of missed changes of each set.
    pub missed: HashMap<SetId, u64>,
}

impl Report {
    /// Whether the Source is in sync, except for ignored problems. After an audit: all repairable differences were
    /// repaired, and no others are left.
    pub fn in_sync(&self) -> bool {
        match &self.run.counters.audit {
            Some(found) => {
                found.is_complete() && found.differences() == found.queued && self.run.counters.failed == 0
            }
            None => self.open_problems == 0,
        }
    }
}

/// Whether the catalog is ready for an audit.
fn may_audit(
    entry: &Url,
    last: Option<&RunRecord>,
    interrupted: Option<&RunRecord>,
) -> Result<(), HarvestError> {
    match (last, interrupted) {
        (None, _) => Err(HarvestError::NothingHeld { source_url: entry.to_string() }),
        (_, Some(run)) if run.mode != Mode::Audit => {
            Err(HarvestError::Unfinished { mode: run.mode, run: run.id })
        }
        // Resume an audit that was repairing differences.
        _ => Ok(()),
    }
}

impl Harvest {
    /// Resumes the interrupted run, or begins a new one from the Source's offer.
    ///
    /// # Errors
    /// When the Source offers nothing that can be harvested, or the catalog fails.
    pub async fn open(parts: Parts) -> Result<Self, HarvestError> {
        let Parts {
            source,
            entry,
            catalog,
            store,
            view,
            client,
            bus,
            clock,
            options,
            progress,
            witness,
            push_lag,
            stop,
        } = parts;
        let last = catalog.last_run().await?;
        let seq = catalog.last_seq().await?;
        let mut sets = HashMap::new();
        for (id, set) in catalog.sets().await? {
            sets.insert(id, set);
        }
        let topics = change_notifications::topics(sets.values());
        let is_bare = catalog.holds_no_resource().await?;
        let (has_problems, has_ignored) = problems::look(&catalog).await?;
        let is_audit = options.mode == Some(Mode::Audit);
        // An audit changes no setting.
        let history = History::open(&catalog, options.keep_versions.filter(|_| !is_audit)).await?;
        let fingerprint = options.fingerprint();
        let interrupted = last.clone().filter(|run| run.phase != Phase::Finished);
        if is_audit {
            may_audit(&entry, last.as_ref(), interrupted.as_ref())?;
        }
        let may_trust_validators = last.as_ref().is_some_and(|run| run.options == fingerprint);
        let has_looked = match &interrupted {
            Some(run) => catalog.discovery().await?.is_some_and(|known| known.looked_up_at >= run.started_at),
            None => false,
        };
        let queued = match &interrupted {
            Some(run) => queue::count(&catalog, run.id).await?,
            None => 0,
        };
        let has_begun = queued > 0;
        let run = interrupted.clone().unwrap_or_else(|| RunRecord {
            id: RunId::fresh(),
            mode: if is_audit { Mode::Audit } else { Mode::Incremental },
            phase: Phase::Planning,
            // An audit stores no validators that a later run could use.
            options: last.as_ref().filter(|_| is_audit).map_or(fingerprint, |run| run.options.clone()),
            view: view.is_some() && last.as_ref().is_none_or(|run| run.view),
            started_at: clock.now(),
            finished_at: None,
            cancelled: false,
            counters: Counters::default(),
        });
        let fresh = match &interrupted {
            Some(_) => Fresh::spoilt(),
            None => Fresh::since(catalog.pending_written()),
        };
        let mut harvest = Self {
            source,
            entry,
            catalog: Arc::new(catalog),
            commits: Commits::default(),
            store,
            view,
            client,
            bus,
            clock,
            options,
            progress,
            witness,
            push_lag,
            stop,
            run,
            sets,
            seq,
            may_trust_validators,
            reach: PendingBound::after(interrupted.is_some()),
            fresh,
            is_bare,
            left: Left::default(),
            told_to: HashMap::new(),
            has_problems,
            challenged: HashSet::new(),
            history,
            has_ignored,
            settled_problems: HashMap::new(),
            entry_problems: HashMap::new(),
            requeued: HashMap::new(),
            again: HashSet::new(),
            seen: HashMap::new(),
            spool: Spool::default(),
            ahead: Ahead::default(),
            has_looked,
            read_whole: HashSet::new(),
            current_indexes: HashSet::new(),
            unmodified: HashSet::new(),
            begun: None,
            spacing: None,
            guard: None,
            unlisted: Vec::new(),
            waits: Latencies::default(),
            vanished: 0,
            is_resumed: interrupted.is_some(),
            has_begun,
            spent: ReadBudget::default().with_queued(queued),
            topics,
            missed: HashMap::new(),
            settling: Vec::new(),
        };
        if interrupted.is_some() {
            harvest.count_requeued().await?;
        }
        if harvest.is_to_begin() {
            harvest.begin().await?;
        }
        harvest.put_view_right().await?;
        harvest.catch_up_view().await?;
        let taken_up = interrupted.map(|run| run.counters);
        harvest.progress.send_modify(|progress| progress.taken_up = progress.taken_up.take().or(taken_up));
        harvest.show();
        Ok(harvest)
    }

    /// Whether to queue the Source's documents now. A run that goes by Change Notifications plans these first. If it
    /// was interrupted before it queued documents, its next owner has not queued any either.
    fn is_to_begin(&self) -> bool {
        let reads = matches!(self.run.mode, Mode::Baseline | Mode::Incremental);
        reads && self.run.phase == Phase::Planning && !self.has_begun && !self.options.notified
    }

    /// Brings the Source in sync.
    ///
    /// # Errors
    /// [`HarvestError`] when it cannot go on. Finished work stays, and the next harvest resumes there.
    pub async fn run(mut self) -> Result<Report, HarvestError> {
        let (mut audit, mut is_told_by_notices) = (None, false);
        if self.run.phase == Phase::Planning {
            match self.run.mode {
                Mode::Audit => audit = Some(Box::pin(self.audit()).await?),
                Mode::Baseline | Mode::Incremental | Mode::Mend => {
                    is_told_by_notices = Box::pin(self.plan()).await?;
                    self.run.phase = Phase::Dispatching;
                    self.commit(Batch::new()).await?;
                }
            }
        }
        if audit.is_some() && !self.options.repair {
            self.end_audit().await?;
        } else {
            Box::pin(self.dispatch()).await?;
            let (mut stays, until) =
                (is_told_by_notices, Instant::now() + change_notifications::LONGEST_STAY);
            while stays {
                stays = Box::pin(self.plan_later_notices(until)).await?;
                // Changes behind a gap are planned too, and no run ends with pending records.
                Box::pin(self.dispatch()).await?;
            }
            self.looked_ahead().await;
            if let Some(witness) = &self.witness {
                witness.observe(&self.run).await?;
            }
            self.finish().await?;
        }
        let problems = OpenProblems::of(&self.catalog).await?;
        let channels = self.channels().await?;
        self.catalog.close().await?;
        Ok(Report {
            run: self.run,
            resumed: self.is_resumed,
            audit,
            open_problems: problems.by_reason.values().sum(),
            problems_by_reason: problems.by_reason,
            ignored_problems: problems.ignored,
            guard: self.guard,
            unlisted: self.unlisted,
            first_problems: problems.first,
            channels,
            missed: self.missed,
        })
    }

    /// The channels that the sets of the last discovery offer.
    async fn channels(&self) -> Result<Vec<(SetId, CapabilityLink)>, HarvestError> {
        let found = self.catalog.discovery().await?.map(|found| found.sets).unwrap_or_default();
        let sets = found.into_iter().filter_map(|id| Some((self.sets.get(&id)?.capabilities.clone(), id)));
        let all = sets.flat_map(|(links, id)| links.into_iter().map(move |link| (id.clone(), link)));
        Ok(all.filter(|(_, link)| link.capability == Capability::ChangeNotification).collect())
    }

    pub(crate) fn next_seq(&mut self) -> Seq {
        self.seq = self.seq.next();
        self.seq
    }

    pub(crate) fn show(&self) {
        self.progress.send_modify(|progress| {
            progress.phase = Some(self.run.phase);
            progress.counters.clone_from(&self.run.counters);
            progress.resumed = self.is_resumed;
            progress.pending = self.left.pending;
            progress.behind = self.behind();
        });
    }

    /// How far the set that lags most is behind the changes in its documents.
    fn behind(&self) -> Option<SignedDuration> {
        let sets = self.sets.iter().filter_map(|(id, set)| {
            let synchronized_to = set.synchronized_to?;
            let told_to = self.told_to.get(id).copied().unwrap_or(synchronized_to);
            Some(told_to.max(synchronized_to).duration_since(synchronized_to))
        });
        sets.max()
    }

    /// Counts the result of a document request, and records up to when the document covers changes.
    pub(crate) fn asked_for(&mut self, record: &DocumentRecord, count: impl FnOnce(&mut DocumentCounts)) {
        if let Some(latest) = record.latest_change {
            let told_to = self.told_to.entry(record.set.clone()).or_insert(latest);
            *told_to = latest.max(*told_to);
        }
        self.progress.send_modify(|progress| count(&mut progress.documents));
    }

    pub(crate) fn show_document(&self, uri: &str) {
        self.progress.send_modify(|progress| progress.document = Some(uri.to_owned()));
    }
}
