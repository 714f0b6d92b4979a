//! A harvest: the owner of one Source brings it in step.

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

use crate::absent::{Guard, Unlisted};
use crate::audit::Audit;
use crate::begun::Begun;
use crate::beside::Silence;
use crate::commit::Commits;
use crate::error::HarvestError;
use crate::fresh::Fresh;
use crate::lay::{Ahead, Spool};
use crate::limits::Spent;
use crate::options::HarvestOptions;
use crate::problems::{self, OpenProblems};
use crate::progress::{Documents, Progress};
use crate::reach::Reach;
use crate::versions::History;
use crate::weigh::Waits;
use crate::witness::Witness;
use crate::{notices, queue};

/// Everything a harvest works with. One per Source, since a catalog has one writer.
pub struct Parts {
    /// The Source's name.
    pub source: SourceId,
    /// The way in, as the operator gave it.
    pub entry: Url,
    /// The Source's catalog.
    pub catalog: Catalog,
    /// Where bytes lie.
    pub store: Store,
    /// Where resources are laid out as files, if they are.
    pub view: Option<View>,
    /// How documents are requested.
    pub client: Client,
    /// How jobs travel.
    pub bus: Arc<dyn Bus>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What the operator chose.
    pub options: HarvestOptions,
    /// Who watches.
    pub progress: watch::Sender<Progress>,
    /// Who is to hear what the run has changed, if anybody is.
    pub witness: Option<Arc<dyn Witness>>,
    /// Cancelled when the harvest is to stop.
    pub stop: CancellationToken,
}

/// A run in the hands of its owner.
pub struct Harvest {
    pub(crate) source: SourceId,
    pub(crate) entry: Url,
    pub(crate) catalog: Arc<Catalog>,
    /// What is committed while the next portion is made ready.
    pub(crate) commits: Commits,
    pub(crate) store: Store,
    pub(crate) view: Option<View>,
    pub(crate) client: Client,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: HarvestOptions,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) witness: Option<Arc<dyn Witness>>,
    pub(crate) stop: CancellationToken,
    pub(crate) run: RunRecord,
    pub(crate) sets: HashMap<SetId, SetRecord>,
    pub(crate) seq: Seq,
    /// Whether what was read before was read with the same options, so that "not modified" means "nothing to do".
    pub(crate) may_trust_validators: bool,
    /// For which resources there may be pending records: none are left by a run that finished.
    pub(crate) reach: Reach,
    /// The latest change that the documents of each set tell of, as far as they were asked for in this process.
    pub(crate) told_to: HashMap<SetId, Timestamp>,
    /// What was planned a moment ago.
    pub(crate) fresh: Fresh,
    /// Whether nothing is known of any resource but what is pending, so that no lookup tells anything: in a first harvest, from the beginning
    /// to what is settled first, and again from the beginning to the end of dispatching, which settles each resource once.
    pub(crate) is_bare: bool,
    /// Pending records left, and how many were planned when they were counted.
    pub(crate) left: Left,
    /// Whether there are problem records at all: lookups are saved where there are none.
    pub(crate) has_problems: bool,
    /// Origins whose bot defence has answered with a challenge in this run.
    pub(crate) challenged: HashSet<model::Lane>,
    /// How many versions of each resource are kept.
    pub(crate) history: History,
    /// Whether the operator ignores any of them.
    pub(crate) has_ignored: bool,
    /// Problems of documents that were settled by reading these in this process, for those that come again.
    pub(crate) settled_problems: HashMap<String, ProblemRecord>,
    /// What is known of problems with entries of the document that is read, by their place.
    pub(crate) entry_problems: HashMap<String, ProblemRecord>,
    /// Problems queued again at the start, by the document that asked for them.
    pub(crate) requeued: HashMap<String, u64>,
    /// Sets that are looked at as a whole although their changes are followed.
    pub(crate) again: HashSet<SetId>,
    /// What each set's lists do not name, as far as they were read in this process; none where that cannot be known.
    pub(crate) seen: HashMap<SetId, Option<Silence>>,
    /// What was read and waits to be laid beside the catalog.
    pub(crate) spool: Spool,
    /// What was counted of it.
    pub(crate) ahead: Ahead,
    /// Whether the Source was asked in this run what it offers, so that there is no sense in asking again.
    pub(crate) has_looked: bool,
    /// Documents that were read from their first entry to their end in this process.
    pub(crate) read_whole: HashSet<String>,
    /// Indexes that are of the edition that was read, although their parts say a later moment.
    pub(crate) current_indexes: HashSet<String>,
    /// Documents that were not modified, in this process.
    pub(crate) unmodified: HashSet<String>,
    /// The list that discovery has begun to read. Let go of before anything else is asked for.
    pub(crate) begun: Option<Begun>,
    /// What the origin of a first list asks for between two requests is found out; gives the requests made for it.
    pub(crate) spacing: Option<AbortOnDropHandle<u32>>,
    /// Set when more would have been deleted than is allowed.
    pub(crate) guard: Option<Guard>,
    /// Lists that do not name much of what is held.
    pub(crate) unlisted: Vec<Unlisted>,
    /// How long the Source took to answer, in this process.
    pub(crate) waits: Waits,
    /// How often in a row all that was out has vanished from the bus.
    pub(crate) vanished: u32,
    /// Whether it goes on with a run that was interrupted.
    pub(crate) is_resumed: bool,
    /// Whether the Source's documents were queued for the run.
    pub(crate) has_begun: bool,
    /// What was read of the Source's documents, of what its limits allow.
    pub(crate) spent: Spent,
    /// The channels that its sets were known to offer when it began, without fragments.
    pub(crate) topics: HashSet<String>,
    /// Changes of each set that a hub should have told of, and did not.
    pub(crate) missed: HashMap<SetId, u64>,
    /// The moments of changes that notifications told and that the next batch settles.
    pub(crate) settling: Vec<Timestamp>,
}

/// How many pending records are left: what was planned comes to it, what is settled goes.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) pending: u64,
    pub(crate) planned: u64,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// The run.
    pub run: RunRecord,
    /// Whether it went on with one that was interrupted.
    pub resumed: bool,
    /// What it found, if it is an audit.
    pub audit: Option<Audit>,
    /// Problems that are open, of this run and of earlier ones, without those that the operator ignores.
    pub open_problems: u64,
    /// The same by their reasons.
    pub problems_by_reason: BTreeMap<ProblemReason, u64>,
    /// Problems beside them that the operator ignores.
    pub ignored_problems: u64,
    /// The guard's word, if it kept resources from being deleted.
    pub guard: Option<Guard>,
    /// Lists that do not name much of what is held, all of which is kept for now.
    pub unlisted: Vec<Unlisted>,
    /// The first few of those that are open.
    pub first_problems: Vec<(Subject, ProblemRecord)>,
    /// The channels that its sets offer, as far as that is known (CN-1).
    pub channels: Vec<(SetId, CapabilityLink)>,
    /// Changes of each set that a hub should have told of, and did not.
    pub missed: HashMap<SetId, u64>,
}

impl Report {
    /// Whether what is held is what the Source has, but for what the operator ignores. After an audit: what differs and could be queued was put
    /// right, and nothing else differs.
    pub fn in_sync(&self) -> bool {
        match &self.run.counters.audit {
            Some(found) => {
                found.is_complete() && found.differences() == found.queued && self.run.counters.failed == 0
            }
            None => self.open_problems == 0,
        }
    }
}

/// Whether what is held can be compared.
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
        // An audit that was putting things right goes on with that.
        _ => Ok(()),
    }
}

impl Harvest {
    /// Takes up the run that was interrupted, or begins a new one with what the Source offers.
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
            stop,
        } = parts;
        let last = catalog.last_run().await?;
        let seq = catalog.last_seq().await?;
        let mut sets = HashMap::new();
        for (id, set) in catalog.sets().await? {
            sets.insert(id, set);
        }
        let topics = notices::topics(sets.values());
        let is_bare = catalog.holds_no_resource().await?;
        let (has_problems, has_ignored) = problems::look(&catalog).await?;
        let is_audit = options.mode == Some(Mode::Audit);
        // An audit changes no setting.
        let history = History::open(&catalog, options.history.filter(|_| !is_audit)).await?;
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
            // An audit reads nothing that a later run could find unchanged.
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
            stop,
            run,
            sets,
            seq,
            may_trust_validators,
            reach: Reach::after(interrupted.is_some()),
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
            waits: Waits::default(),
            vanished: 0,
            is_resumed: interrupted.is_some(),
            has_begun,
            spent: Spent::default().with_queued(queued),
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

    /// Whether the Source's documents are to be queued now. Where hubs' notices are gone by, these come first; a run that was interrupted among them has queued
    /// none, whoever goes on with it.
    fn is_to_begin(&self) -> bool {
        let reads = matches!(self.run.mode, Mode::Baseline | Mode::Incremental);
        reads && self.run.phase == Phase::Planning && !self.has_begun && !self.options.notified
    }

    /// Brings the Source in step.
    ///
    /// # Errors
    /// [`HarvestError`] when it cannot go on; what was done stays done, and the next harvest goes on from there.
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
            let (mut stays, until) = (is_told_by_notices, Instant::now() + notices::LONGEST_STAY);
            while stays {
                stays = Box::pin(self.plan_later_notices(until)).await?;
                // Also what does not join on is planned, and no run ends with pending records.
                Box::pin(self.dispatch()).await?;
            }
            self.looked_ahead().await;
            if let Some(witness) = &self.witness {
                witness.hear(&self.run).await?;
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

    /// The channels that are offered by the sets that the Source was found to have last.
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

    /// How far the set that lies behind the most is synchronized short of what its documents tell.
    fn behind(&self) -> Option<SignedDuration> {
        let sets = self.sets.iter().filter_map(|(id, set)| {
            let synchronized_to = set.synchronized_to?;
            let told_to = self.told_to.get(id).copied().unwrap_or(synchronized_to);
            Some(told_to.max(synchronized_to).duration_since(synchronized_to))
        });
        sets.max()
    }

    /// Notes what came of asking for a document, and up to when it tells.
    pub(crate) fn asked_for(&mut self, record: &DocumentRecord, count: impl FnOnce(&mut Documents)) {
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
