//! A running simulation: the state that survives processes, and one process after the other.

mod chain;
mod process;
mod steps;

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Catalog, CatalogReader};
use discovery::PollOutcome;
use futures::FutureExt;
use harvest::Report;
use jiff::Timestamp;
use model::{Absent, PollBasis, SourceId};
use store::{Key, Store};
use tempfile::TempDir;
use url::Url;
use web::{Client, RobotsPolicy, Transport, WebConfig};

pub use chain::Chain;
use process::{catalog_config, runtime};
use steps::collect;

use crate::clock::SimClock;
use crate::effects::Effects;
use crate::plan::{Only, Plan, Step};
use crate::sim_objects::Objects;
use crate::site::{Line, Site};

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

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
