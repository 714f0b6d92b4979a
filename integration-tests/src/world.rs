//! A running simulation: the state that survives processes, and one process after the other.

mod chain;

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bus::{DeadLetter, MemoryBus, Message, MessageId, Queue};
use catalog::{Catalog, CatalogConfig, CatalogReader};
use discovery::PollOutcome;
use futures::{FutureExt, TryStreamExt};
use harvest::{Parts, Progress, Report};
use jiff::{SignedDuration, Timestamp};
use model::{Absent, PollBasis, ResourceUri, SourceId, Terms};
use planning::{HarvestOptions, RunLimits};
use store::{Key, SourceMarker, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;
use web::{Client, RobotsPolicy, Transport, WebConfig};

pub use chain::Chain;

use crate::clock::SimClock;
use crate::effects::{Effects, mix};
use crate::plan::{Only, Plan, Step, Sync};
use crate::sim_bus::SimBus;
use crate::sim_objects::{Objects, SimObjects};
use crate::site::{Line, Site};

/// The most messages in one queue.
const BUS_CAPACITY: usize = 1_024;
/// The most bytes of a resource, and of the documents of a run: far more than the Source has.
const LARGEST: u64 = 4 << 20;
/// The longest time that a process may take, by its own clock. A longer one counts as hung.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// A running simulation.
#[derive(Debug)]
pub struct World {
    /// Its plan.
    pub plan: Plan,
    /// Its clock.
    pub clock: Arc<SimClock>,
    /// The Source.
    pub site: Arc<Site>,
    objects: Arc<Objects>,
    spool: TempDir,
    source: SourceId,
    entry: Url,
    /// Processes so far.
    processes: u64,
    /// The events, as text.
    pub told: Vec<String>,
    /// The last effects of the last process, as text.
    pub last_effects: Vec<String>,
    /// Resources whose deletion was undone.
    pub restored: BTreeSet<String>,
    /// The most messages that were under way at the same time.
    pub most_under_way: usize,
    /// The most origins that had a queue of jobs at the same time.
    pub most_origins: usize,
    /// The time of a dump of a Source without a list, when absences were last left alone. Unchanged packages
    /// are not opened again, so only the next edition reports those absences.
    pub kept_of_dump: Option<Timestamp>,
    /// What the last run left for a poll, unless the catalog was changed since.
    pub left: Option<LeftForPoll>,
    /// Requests that only check polls.
    pub check_requests: u64,
    /// Effects of all processes.
    pub effects: u64,
    /// Dead letters of unknown jobs that wait on the bus when a process starts.
    pub dead_letters: usize,
    /// Dead letters that the last process left there.
    pub dead_letters_left: usize,
}

/// What a run left for a poll.
#[derive(Debug, Clone)]
pub struct LeftForPoll {
    /// What a poll compares.
    pub basis: PollBasis,
    /// The run's filter.
    pub only: Option<Only>,
    /// The run's policy for absent resources.
    pub absent: Absent,
}

/// What a process harvests, and into which store.
struct Harvested {
    source: SourceId,
    entry: Url,
    store: Store,
    line: Arc<dyn Transport>,
}

/// How a process ended.
#[derive(Debug)]
pub enum Ended {
    /// Its run has finished.
    Report(Box<Report>),
    /// It failed, for this reason.
    Failed(String),
    /// It was stopped.
    Halted,
    /// It hangs.
    Hangs,
}

impl World {
    /// The start of a plan.
    ///
    /// # Panics
    /// When there is no temporary directory.
    pub fn new(plan: Plan) -> Self {
        let clock = Arc::new(SimClock::new());
        let site = Arc::new(Site::new(plan.site.clone(), Arc::clone(&clock)));
        let entry: Url = site.entry().parse().expect("the Source's own URL");
        Self {
            objects: Arc::new(Objects::new(Arc::clone(&clock))),
            spool: tempfile::tempdir().expect("a temporary directory"),
            source: SourceId::of_entry(&entry),
            plan,
            clock,
            site,
            entry,
            processes: 0,
            told: Vec::new(),
            last_effects: Vec::new(),
            restored: BTreeSet::new(),
            most_under_way: 0,
            most_origins: 0,
            kept_of_dump: None,
            left: None,
            check_requests: 0,
            effects: 0,
            dead_letters: 0,
            dead_letters_left: 0,
        }
    }

    /// Executes one step.
    pub fn step(&mut self, step: &Step) -> Option<Ended> {
        let ended = match step {
            Step::Change { created, updated, deleted } => {
                self.site.change(*created, *updated, *deleted);
                None
            }
            Step::Publish { snapshots, changes } => {
                self.site.publish(*snapshots, *changes);
                None
            }
            Step::Forget => {
                self.site.forget_changes();
                None
            }
            Step::Pass(seconds) => {
                self.clock.advance(*seconds);
                None
            }
            Step::Sync(sync) => Some(self.sync(sync)),
            Step::TakeOver { first, second } => Some(self.take_over(first, second)),
            Step::Gc { keep_for, halt } => {
                let effects = self.process(*halt, Default::default());
                let collecting = collect(self.store(&effects), Arc::clone(&self.clock), *keep_for);
                Some(self.live(
                    &effects,
                    collecting.map(|result| result.map_or_else(Ended::Failed, Ended::Failed)),
                ))
            }
            Step::Restore => self.restore(),
        };
        self.note_basis(step, ended.as_ref());
        self.told.push(format!("{step}: {}", ended.as_ref().map_or("done".to_owned(), Ended::words)));
        ended
    }

    /// Keeps what the last run left for a poll. Work on the catalog that ended otherwise leaves nothing.
    fn note_basis(&mut self, step: &Step, ended: Option<&Ended>) {
        let (only, absent) = match step {
            Step::Sync(sync) | Step::TakeOver { first: sync, .. } => (sync.only, sync.absent),
            Step::Restore => (None, Absent::Confirm),
            Step::Change { .. } | Step::Publish { .. } | Step::Forget | Step::Pass(_) | Step::Gc { .. } => {
                return;
            }
        };
        self.left = match ended {
            Some(Ended::Report(report)) => {
                report.poll.clone().map(|basis| LeftForPoll { basis, only, absent })
            }
            _ => None,
        };
    }

    /// Polls the Source: a process of its own, which opens no store.
    ///
    /// # Errors
    /// When the Source cannot be reached.
    pub fn poll(&mut self, basis: &PollBasis) -> Result<PollOutcome, String> {
        self.processes += 1;
        let before = self.site.requests();
        let line = Line::new(self.processes, Arc::clone(&self.site), Arc::new(Effects::none()));
        let config = self.web_config();
        let clock = Arc::clone(&self.clock);
        let outcome = runtime().block_on(async {
            clock.run();
            let client = Client::over(config, clock.clone(), Arc::new(line)).map_err(words)?;
            let outcome = discovery::poll(&client, basis).await;
            clock.stand();
            outcome.map_err(words)
        });
        self.check_requests += self.site.requests() - before;
        outcome
    }

    fn web_config(&self) -> WebConfig {
        WebConfig {
            per_origin: self.plan.per_origin,
            robots: RobotsPolicy::links_only(),
            ..WebConfig::default()
        }
    }

    /// Runs a process that syncs the copy.
    pub fn sync(&mut self, sync: &Sync) -> Ended {
        self.site.set_faults(sync.http.clone());
        self.site.begin_run();
        let effects = self.process(sync.halt, sync.rates);
        effects.park_at(sync.parks);
        let bus = self.bus();
        runtime().block_on(publish_dead_letters(&bus, &self.source, self.dead_letters));
        let bus = Arc::new(SimBus::new(bus, Arc::clone(&effects)));
        let harvesting = self.harvest(sync, &effects, &bus);
        let ended = self.live(&effects, harvesting);
        self.dead_letters_left = runtime().block_on(bus.dead_letters(&self.source));
        self.most_under_way = self.most_under_way.max(bus.most_under_way());
        self.most_origins = self.most_origins.max(bus.most_origins());
        self.site.set_faults(Vec::new());
        self.note_kept(sync);
        ended
    }

    /// The bus of one process.
    fn bus(&self) -> MemoryBus {
        let bus = MemoryBus::new(BUS_CAPACITY);
        if self.plan.by_wire { bus.by_wire() } else { bus }
    }

    fn note_kept(&mut self, sync: &Sync) {
        if sync.absent == Absent::Keep && self.site.spec.list_parts == 0 {
            self.kept_of_dump = Some(self.site.snapshots_at());
        }
    }

    /// Lets a process fall asleep at its halt, runs another one, and wakes the first one up.
    fn take_over(&mut self, first: &Sync, second: &Step) -> Ended {
        self.site.set_faults(first.http.clone());
        self.site.begin_run();
        let effects = self.process(first.halt, first.rates);
        let bus = Arc::new(SimBus::new(self.bus(), Arc::clone(&effects)));
        let runtime = runtime();
        let mut harvesting = Box::pin(self.harvest(first, &effects, &bus));
        let clock = Arc::clone(&self.clock);
        let ended = runtime.block_on(until_halted(&clock, &effects, harvesting.as_mut()));
        let ended = match ended {
            Ended::Halted => {
                self.told.push("a sync has fallen asleep".to_owned());
                let other = self.step(second);
                if let Some(Ended::Hangs) = other {
                    return Ended::Hangs;
                }
                effects.wake();
                runtime.block_on(until_halted(&clock, &effects, harvesting.as_mut()))
            }
            ended => ended,
        };
        drop(harvesting);
        drop(runtime);
        self.after(&effects);
        self.most_under_way = self.most_under_way.max(bus.most_under_way());
        self.most_origins = self.most_origins.max(bus.most_origins());
        self.site.set_faults(Vec::new());
        self.note_kept(first);
        ended
    }

    fn restore(&mut self) -> Option<Ended> {
        let effects = self.process(None, Default::default());
        let store = self.store(&effects);
        let source = self.source.clone();
        let clock = Arc::clone(&self.clock);
        let lot = mix(self.plan.seed ^ self.processes) as usize;
        let restoring = async move {
            let path = Key::Catalog(source).to_string();
            if !Catalog::exists(&store.object_store(), &path).await.map_err(words)? {
                return Ok(None);
            }
            let catalog =
                Catalog::open(store.object_store(), &path, catalog_config(&clock)).await.map_err(words)?;
            let all: Vec<_> = catalog
                .scan_resources(None, None)
                .await
                .map_err(words)?
                .try_collect()
                .await
                .map_err(words)?;
            let gone: Vec<ResourceUri> =
                all.into_iter().filter(|(_, record)| !record.is_present()).map(|(uri, _)| uri).collect();
            let mut restored = None;
            if !gone.is_empty() {
                let uri = gone[lot % gone.len()].clone();
                let done =
                    harvest::restore(&catalog, &store, None, clock.as_ref(), &uri).await.map_err(words)?;
                restored = (done == harvest::Restored::Done).then_some(uri);
            }
            catalog.close().await.map_err(words)?;
            Ok::<_, String>(restored)
        };
        let mut done = None;
        let ended = self.live(
            &effects,
            restoring.map(|result| match result {
                Ok(uri) => {
                    let words = uri.as_ref().map_or("nothing".to_owned(), ToString::to_string);
                    done = uri;
                    Ended::Failed(words)
                }
                Err(why) => Ended::Failed(why),
            }),
        );
        self.restored.extend(done.map(|uri| uri.to_string()));
        Some(ended)
    }

    fn harvest(
        &self,
        sync: &Sync,
        effects: &Arc<Effects>,
        bus: &Arc<SimBus>,
    ) -> impl Future<Output = Ended> + 'static {
        let of = Harvested {
            source: self.source.clone(),
            entry: self.entry.clone(),
            store: self.store(effects),
            line: Arc::new(Line::new(self.processes, Arc::clone(&self.site), Arc::clone(effects))),
        };
        self.harvest_of(of, sync, effects, bus)
    }

    fn harvest_of(
        &self,
        Harvested { source, entry, store, line }: Harvested,
        sync: &Sync,
        effects: &Arc<Effects>,
        bus: &Arc<SimBus>,
    ) -> impl Future<Output = Ended> + 'static {
        let config = self.web_config();
        let options = HarvestOptions {
            mode: sync.mode,
            prefer: sync.prefer,
            filter: Only::filter(sync.only),
            absent: sync.absent,
            max_deletes_percent: sync.max_deletes,
            jobs_per_origin: self.plan.per_origin.try_into().expect("one request at least"),
            window: self.plan.window,
            limits: RunLimits { document_bytes: LARGEST, ..RunLimits::default() },
            terms: Terms { max_body_bytes: NonZeroU64::new(LARGEST), ..Terms::default() },
            ..HarvestOptions::default()
        };
        let clock = Arc::clone(&self.clock);
        let bus = Arc::clone(bus);
        let stop = effects.stop();
        async move {
            let note = SourceMarker::new(source.clone(), entry.as_str());
            let path = Key::Catalog(source.clone()).to_string();
            let client =
                Client::over(config, clock.clone(), line).expect("a configuration that makes a client");
            let catalog = match Catalog::open(store.object_store(), &path, catalog_config(&clock)).await {
                Ok(catalog) => catalog,
                Err(error) => return Ended::Failed(error.to_string()),
            };
            let parts = Parts {
                source,
                entry,
                catalog,
                store,
                view: None,
                client,
                bus,
                clock,
                options,
                progress: watch::Sender::new(Progress::default()),
                observer: None,
                push_lag: harvest::PushLag::default(),
                stop,
            };
            match pipeline::harvest(parts, &note, &CancellationToken::new()).await {
                Ok(report) => Ended::Report(Box::new(report)),
                Err(error) => Ended::Failed(error.to_string()),
            }
        }
    }

    /// The effects of another process.
    fn process(&mut self, halt: Option<crate::effects::Halt>, rates: crate::effects::Rates) -> Arc<Effects> {
        self.processes += 1;
        Arc::new(Effects::new(mix(self.plan.seed ^ mix(self.processes)), halt, rates))
    }

    /// The store, behind a process's effects.
    fn store(&self, effects: &Arc<Effects>) -> Store {
        let objects = Arc::new(SimObjects::new(Arc::clone(&self.objects), Arc::clone(effects)));
        Store::over_objects(objects, "simulation", self.spool.path().to_owned())
    }

    /// Runs a process to its end, or to its halt; then all its state is gone.
    fn live(&mut self, effects: &Arc<Effects>, process: impl Future<Output = Ended>) -> Ended {
        let clock = Arc::clone(&self.clock);
        let ended = runtime().block_on(until_halted(&clock, effects, process));
        self.after(effects);
        ended
    }

    fn after(&mut self, effects: &Effects) {
        self.last_effects = effects.last();
        self.effects += effects.count();
    }

    /// Reads the catalog and the store without going through any process.
    pub fn look<T>(&self, look: impl AsyncFnOnce(Store, Option<CatalogReader>) -> T) -> T {
        self.look_into(self.store(&Arc::new(Effects::none())), &self.source, look)
    }

    /// The same of a store and the catalog of a Source.
    fn look_into<T>(
        &self,
        store: Store,
        source: &SourceId,
        look: impl AsyncFnOnce(Store, Option<CatalogReader>) -> T,
    ) -> T {
        let path = Key::Catalog(source.clone()).to_string();
        let clock = &self.clock;
        runtime().block_on(async {
            let reader = match Catalog::exists(&store.object_store(), &path).await {
                Ok(true) => {
                    CatalogReader::open(store.object_store(), &path, catalog_config(clock)).await.ok()
                }
                _ => None,
            };
            look(store, reader).await
        })
    }
}

impl Ended {
    /// The end, as text.
    pub fn words(&self) -> String {
        match self {
            Self::Report(report) => {
                let counters = &report.run.counters;
                format!(
                    "{:?} run, {} stored, {} unchanged, {} deleted, {} absent, {} problems{}",
                    report.run.mode,
                    counters.stored,
                    counters.unchanged,
                    counters.deleted,
                    counters.absent,
                    report.open_problems,
                    if report.guard.is_some() { ", guarded" } else { "" }
                )
            }
            Self::Failed(why) => why.clone(),
            Self::Halted => "stopped".to_owned(),
            Self::Hangs => "does not end".to_owned(),
        }
    }
}

async fn collect(store: Store, clock: Arc<SimClock>, keep_for: u32) -> Result<String, String> {
    let keep_for = SignedDuration::from_secs(i64::from(keep_for));
    let options = gc::Options { keep_for, dry_run: false, as_owner: true };
    let report = Box::pin(gc::collect(&store, &options, clock.as_ref())).await.map_err(words)?;
    Ok(format!("{:?} removed", report.removed()))
}

/// Publishes dead letters of jobs that no process remembers.
async fn publish_dead_letters(bus: &MemoryBus, source: &SourceId, number: usize) {
    for number in 0..number {
        let message = Message {
            id: MessageId::new(format!("forgotten-{number}")),
            queue: Queue::Verify { source: source.clone() },
            payload: "a job".into(),
            attempt: 1,
        };
        DeadLetter::bury(bus, &message, "the simulation gave it up").await.expect("room on the bus");
    }
}

/// A runtime of one thread, whose clock moves only when it is idle.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

async fn until_halted(clock: &SimClock, effects: &Effects, process: impl Future<Output = Ended>) -> Ended {
    clock.run();
    let mut process = pin!(process);
    let ended = tokio::select! {
        biased;
        () = effects.halted() => Ended::Halted,
        ended = tokio::time::timeout(LONGEST, &mut process) => ended.unwrap_or(Ended::Hangs),
    };
    clock.stand();
    ended
}

fn catalog_config(clock: &Arc<SimClock>) -> CatalogConfig {
    CatalogConfig { clock: Arc::clone(clock) as _, ..CatalogConfig::default() }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
