//! One process: it begins with what is stored, and ends at its halt, if it has one.

use std::num::NonZeroU64;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogConfig};
use harvest::{Parts, Progress};
use model::Terms;
use planning::{HarvestOptions, RunLimits};
use store::{Key, SourceMarker, Store};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use web::Client;

use super::{Ended, Harvested, World};
use crate::clock::SimClock;
use crate::effects::{Effects, Halt, Rates, mix};
use crate::plan::{Only, Sync};
use crate::sim_bus::SimBus;
use crate::sim_objects::SimObjects;
use crate::site::Line;

/// The most bytes of a resource, and of the documents of a run: far more than the Source has.
const LARGEST: u64 = 4 << 20;
/// The longest time that a process may take, by its own clock. A longer one counts as hung.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

impl World {
    /// A run of the Source, into the simulated store.
    pub(super) fn harvest(
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

    pub(super) fn harvest_of(
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
    pub(super) fn process(&mut self, halt: Option<Halt>, rates: Rates) -> Arc<Effects> {
        self.processes += 1;
        Arc::new(Effects::new(mix(self.plan.seed ^ mix(self.processes)), halt, rates))
    }

    /// The store, behind a process's effects.
    pub(super) fn store(&self, effects: &Arc<Effects>) -> Store {
        let objects = Arc::new(SimObjects::new(Arc::clone(&self.objects), Arc::clone(effects)));
        Store::over_objects(objects, "simulation", self.spool.path().to_owned())
    }

    /// Runs a process to its end, or to its halt; then all its state is gone.
    pub(super) fn live(&mut self, effects: &Arc<Effects>, process: impl Future<Output = Ended>) -> Ended {
        let clock = Arc::clone(&self.clock);
        let ended = runtime().block_on(until_halted(&clock, effects, process));
        self.after(effects);
        ended
    }

    pub(super) fn after(&mut self, effects: &Effects) {
        self.last_effects = effects.last();
        self.effects += effects.count();
    }
}

/// A runtime of one thread, whose clock moves only when it is idle.
pub(super) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

/// Runs a process to its end, or to its halt. It stays as it is then.
pub(super) async fn until_halted(
    clock: &SimClock,
    effects: &Effects,
    process: impl Future<Output = Ended>,
) -> Ended {
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

pub(super) fn catalog_config(clock: &Arc<SimClock>) -> CatalogConfig {
    CatalogConfig { clock: Arc::clone(clock) as _, ..CatalogConfig::default() }
}
