//! A harvest: the owner of one Source brings it in sync. It leads a run through its stages.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{Batch, Catalog};
use futures::future::BoxFuture;
use jiff::Timestamp;
use model::{CapabilityLink, Counters, Mode, Phase, RunId, RunRecord, SetId};
use planning::Selection;
use resourcesync::Capability;
use tokio::time::Instant;
use url::Url;

use crate::adopt;
use crate::audit::{Audit, Auditor};
use crate::dispatcher::Dispatcher;
use crate::error::HarvestError;
use crate::finish;
use crate::oai;
use crate::packages::{self, PackageWork};
use crate::parts::Parts;
use crate::planner::{Planner, change_notifications};
use crate::poll_basis::poll_basis;
use crate::report::Report;
use crate::run::problems::{OpenProblems, ProblemLedger};
use crate::run::progress::ProgressReporter;
use crate::run::push_tracker::PushTracker;
use crate::run::writer::CatalogWriter;
use crate::run::{RunContext, document_queue};
use crate::run_observer::RunObserver;
use crate::settler::Settler;
use crate::settler::versions::History;

/// A run that this process owns.
pub struct Harvest {
    pub(crate) context: RunContext,
    pub(crate) planner: Planner,
    settler: Settler,
    observer: Option<Arc<dyn RunObserver>>,
    /// Whether it resumes an interrupted run.
    is_resumed: bool,
}

/// Whether the catalog is ready for an audit.
fn may_audit(
    entry: &Url,
    last: Option<&RunRecord>,
    interrupted: Option<&RunRecord>,
) -> Result<(), HarvestError> {
    match (last, interrupted) {
        (None, _) => Err(HarvestError::NeverSynced { source_url: entry.to_string() }),
        (_, Some(run)) if run.mode != Mode::Audit => {
            Err(HarvestError::Unfinished { mode: run.mode, run: run.id })
        }
        // Resume an audit that was repairing differences.
        _ => Ok(()),
    }
}

/// The record of a new run.
fn new_run(parts: &Parts, last: Option<&RunRecord>, now: Timestamp) -> RunRecord {
    let is_audit = parts.options.mode == Some(Mode::Audit);
    let fingerprint = parts.options.fingerprint();
    RunRecord {
        id: RunId::fresh(),
        mode: if is_audit { Mode::Audit } else { Mode::Incremental },
        phase: Phase::Planning,
        // An audit stores no validators that a later run could use.
        options: last.filter(|_| is_audit).map_or(fingerprint, |run| run.options.clone()),
        view: parts.view.is_some() && last.is_none_or(|run| run.view),
        started_at: now,
        finished_at: None,
        cancelled: false,
        counters: Counters::default(),
    }
}

impl Harvest {
    /// Resumes the interrupted run, or begins a new one from the Source's offer.
    ///
    /// # Errors
    /// When the Source offers nothing that can be harvested, or the catalog fails.
    pub fn open(parts: Parts) -> BoxFuture<'static, Result<Self, HarvestError>> {
        // Boxed here, so that the stages are compiled in this crate, and not once more in each of its users.
        Box::pin(Self::begin(parts))
    }

    async fn begin(parts: Parts) -> Result<Self, HarvestError> {
        let mut harvest = Self::assemble(parts).await?;
        if harvest.is_resumed {
            harvest.planner.count_requeued(&mut harvest.context).await?;
            harvest.planner.take_up_snapshots(&mut harvest.context).await?;
        }
        if harvest.is_to_begin() {
            harvest.planner.begin(&mut harvest.context).await?;
        }
        if harvest.settler.has_view_work(&mut harvest.context).await? {
            // A scan of the whole catalog may be slow: the open response is dropped first.
            harvest.planner.discovery.prefetched = None;
        }
        harvest.settler.put_view_right(&mut harvest.context).await?;
        harvest.settler.catch_up_view(&mut harvest.context).await?;
        harvest.context.show();
        Ok(harvest)
    }

    /// Reads what the catalog knows of the Source and of its last run.
    async fn assemble(parts: Parts) -> Result<Self, HarvestError> {
        let catalog = &parts.catalog;
        let last = catalog.last_run().await?;
        let interrupted = last.clone().filter(|run| run.phase != Phase::Finished);
        let is_audit = parts.options.mode == Some(Mode::Audit);
        if is_audit {
            may_audit(&parts.entry, last.as_ref(), interrupted.as_ref())?;
        }
        let sets: HashMap<_, _> = catalog.sets().await?.into_iter().collect();
        if is_audit && sets.values().any(|set| set.pages.is_some()) {
            return Err(HarvestError::NoAudit { source_url: parts.entry.to_string() });
        }
        let problems = ProblemLedger::open(catalog).await?;
        // An audit changes no setting.
        let history = History::open(catalog, parts.options.keep_versions.filter(|_| !is_audit)).await?;
        let selection = Selection::of(&parts.options, last.as_ref());
        let adopts = !is_audit && catalog.adopts().await?;
        let mut planner = Planner::default();
        if let Some(run) = &interrupted {
            let known = catalog.discovery().await?;
            planner.discovery.is_fresh = known.is_some_and(|known| known.looked_up_at >= run.started_at);
            let queued = document_queue::count(catalog, run.id).await?;
            planner.discovery.has_begun = queued > 0;
            planner.reading.budget = planner.reading.budget.with_queued(queued);
        }
        // Landing pages that an earlier run left, or that failed.
        let is_left = interrupted.is_some() || last.as_ref().is_some_and(|last| last.cancelled);
        planner.reading.has_pages = is_left || problems.any;
        let now = parts.clock.now();
        let run = interrupted.clone().unwrap_or_else(|| new_run(&parts, last.as_ref(), now));
        let is_resumed = interrupted.is_some();
        let context = RunContext {
            source: parts.source,
            entry: parts.entry,
            store: parts.store,
            client: parts.client,
            bus: parts.bus,
            clock: parts.clock,
            options: parts.options,
            selection,
            adopts,
            stop: parts.stop,
            progress: ProgressReporter::new(parts.progress, interrupted.map(|run| run.counters)),
            run,
            push: PushTracker::of(sets.values(), parts.push_lag),
            sets,
            writer: CatalogWriter::open(parts.catalog, is_resumed).await?,
            problems,
            knows_publications: false,
        };
        let settler = Settler::new(parts.view, history);
        Ok(Self { context, planner, settler, observer: parts.observer, is_resumed })
    }

    /// Whether to queue the Source's documents now. A run that goes by Change Notifications plans these first. If it
    /// was interrupted before it queued documents, its next owner has not queued any either.
    fn is_to_begin(&self) -> bool {
        let run = &self.context.run;
        let reads = matches!(run.mode, Mode::Baseline | Mode::Incremental);
        let has_begun = self.planner.discovery.has_begun;
        reads && run.phase == Phase::Planning && !has_begun && !self.context.options.notified
    }

    /// Brings the Source in sync.
    ///
    /// # Errors
    /// [`HarvestError`] when it cannot go on. Finished work stays, and the next harvest resumes there.
    pub fn run(self) -> BoxFuture<'static, Result<Report, HarvestError>> {
        // As in `open`.
        Box::pin(self.run_stages())
    }

    async fn run_stages(mut self) -> Result<Report, HarvestError> {
        let mut audit = None;
        let mut is_told_by_hubs = false;
        if self.context.run.phase == Phase::Planning {
            match self.context.run.mode {
                Mode::Audit => {
                    let auditor = Auditor::default();
                    audit = Some(Box::pin(auditor.run(&mut self.context, &mut self.planner)).await?);
                }
                Mode::Baseline | Mode::Incremental | Mode::Repair => {
                    is_told_by_hubs = Box::pin(self.plan()).await?;
                    self.context.run.phase = Phase::Dispatching;
                    // Without work the run is about to end, and its end is written. After a crash it is planned again.
                    if self.context.is_anything_planned() {
                        self.context.commit(Batch::new()).await?;
                    }
                    self.context.show();
                }
            }
        }
        if audit.is_some() && !self.context.options.repair {
            finish::end_audit(&mut self.context).await?;
        } else {
            self.dispatch(is_told_by_hubs).await?;
            self.planner.end_spacing(&mut self.context).await;
            if let Some(observer) = &self.observer {
                observer.observe(&self.context.run).await?;
            }
            finish::finish(&mut self.context).await?;
            adopt::forget_digests(&mut self.context).await?;
        }
        self.report(audit).await
    }

    /// Works off the pending records, and those of notifications that arrive meanwhile.
    async fn dispatch(&mut self, is_told_by_hubs: bool) -> Result<(), HarvestError> {
        Box::pin(adopt::adopt(&mut self.context)).await?;
        Box::pin(oai::mend(&mut self.context, &mut self.planner, &mut self.settler)).await?;
        // Records that came by themselves lead to landing pages too.
        if self.planner.reading.has_pages {
            Box::pin(self.planner.read_pages(&mut self.context)).await?;
        }
        let wait = self.planner.reading.latencies.measured();
        Box::pin(Dispatcher::run(&mut self.context, &mut self.settler, wait)).await?;
        let until = Instant::now() + change_notifications::LONGEST_STAY;
        let mut stays = is_told_by_hubs;
        while stays {
            stays = Box::pin(self.planner.plan_later_notices(&mut self.context, until)).await?;
            // Changes behind a gap are planned too, and no run ends with pending records.
            Box::pin(Dispatcher::run(&mut self.context, &mut self.settler, wait)).await?;
        }
        Ok(())
    }

    /// Reads every document of the run. If changes do not join the synchronized time, reads archived changes, or else
    /// the lists too. Returns whether Change Notifications alone were enough.
    pub(crate) async fn plan(&mut self) -> Result<bool, HarvestError> {
        if self.context.options.notified && !Box::pin(self.planner.plan_notices(&mut self.context)).await? {
            return Ok(true);
        }
        self.read_all().await?;
        let context = &mut self.context;
        let planner = &mut self.planner;
        let mut gaps = planner.gaps(context).await?;
        context.run.counters.gaps += gaps.iter().map(|set| set.gaps.len() as u64).sum::<u64>();
        let archived = Box::pin(planner.queue_archived(context, &gaps)).await?;
        if !archived.is_empty() {
            self.read_all().await?;
            self.planner.forget_unread_archived(&mut self.context, &archived).await?;
            gaps = self.planner.gaps(&mut self.context).await?;
        }
        let context = &mut self.context;
        let planner = &mut self.planner;
        if planner.queue_lists(context, &gaps).await? {
            self.read_all().await?;
        }
        let context = &mut self.context;
        let planner = &mut self.planner;
        planner.record_gaps(context).await?;
        if planner.queue_unread_lists(context).await? {
            planner.read_queued(context).await?;
        }
        if planner.judge_list_editions(context).await? {
            planner.read_queued(context).await?;
        }
        planner.settle_absences(context).await?;
        Box::pin(oai::guard_deletions(context, planner)).await?;
        Ok(false)
    }

    /// Reads every queued document and its packages. If packages cannot be read, reads the lists with the same
    /// content.
    async fn read_all(&mut self) -> Result<(), HarvestError> {
        let context = &mut self.context;
        let planner = &mut self.planner;
        Box::pin(oai::read_lists(context, planner, &mut self.settler)).await?;
        planner.read_queued(context).await?;
        // Boxed: these futures, inlined into all others of a run, overflow the stack of a debug build's worker.
        Box::pin(packages::choose_dumps(context, planner)).await?;
        Box::pin(PackageWork::run(context, planner, &mut self.settler)).await?;
        planner.read_queued(context).await?;
        Box::pin(planner.read_pages(context)).await
    }

    async fn report(mut self, audit: Option<Audit>) -> Result<Report, HarvestError> {
        let catalog = self.context.catalog().await?;
        let problems = OpenProblems::of(&catalog).await?;
        let channels = self.channels(&catalog).await?;
        let look = catalog.look().await?;
        let resourcesync = look.as_ref().and_then(|look| look.oai.as_ref()?.resourcesync.clone());
        let title = look.and_then(|look| look.title);
        let open_problems: u64 = problems.by_reason.values().sum();
        let reports = u64::from(self.planner.guard.is_some()) + self.planner.many_absent.len() as u64;
        let unsettled = open_problems + problems.ignored + reports;
        let redirected = &self.planner.reading.redirected;
        let poll = poll_basis(&self.context, &catalog, unsettled, redirected).await?;
        self.context.close().await?;
        Ok(Report {
            run: self.context.run,
            resumed: self.is_resumed,
            audit,
            open_problems,
            problems_by_reason: problems.by_reason,
            ignored_problems: problems.ignored,
            guard: self.planner.guard,
            many_absent: self.planner.many_absent,
            first_problems: problems.first,
            channels,
            title,
            resourcesync,
            missed: self.context.push.missed,
            poll,
        })
    }

    /// The channels that the sets of the last discovery offer.
    async fn channels(&self, catalog: &Catalog) -> Result<Vec<(SetId, CapabilityLink)>, HarvestError> {
        let found = catalog.discovery().await?.map(|found| found.sets).unwrap_or_default();
        let known = &self.context.sets;
        let sets = found.into_iter().filter_map(|id| Some((known.get(&id)?.capabilities.clone(), id)));
        let all = sets.flat_map(|(links, id)| links.into_iter().map(move |link| (id.clone(), link)));
        Ok(all.filter(|(_, link)| link.capability == Capability::ChangeNotification).collect())
    }
}
