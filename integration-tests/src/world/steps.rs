//! Steps that are processes: runs, restores and garbage collections.

use std::sync::Arc;

use bus::{DeadLetter, MemoryBus, Message, MessageId, Queue};
use catalog::Catalog;
use futures::{FutureExt, TryStreamExt};
use jiff::SignedDuration;
use model::{Absent, ResourceUri, SourceId};
use store::{Key, Store};

use super::process::{catalog_config, runtime, until_halted};
use super::{Ended, World, words};
use crate::clock::SimClock;
use crate::effects::mix;
use crate::plan::{Step, Sync};
use crate::sim_bus::SimBus;

/// The most messages in one queue.
const BUS_CAPACITY: usize = 1_024;

impl World {
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
    pub(super) fn bus(&self) -> MemoryBus {
        let bus = MemoryBus::new(BUS_CAPACITY);
        if self.plan.by_wire { bus.by_wire() } else { bus }
    }

    fn note_kept(&mut self, sync: &Sync) {
        if sync.absent == Absent::Keep && self.site.spec.list_parts == 0 {
            self.kept_of_dump = Some(self.site.snapshots_at());
        }
    }

    /// Lets a process fall asleep at its halt, runs another one, and wakes the first one up.
    pub(super) fn take_over(&mut self, first: &Sync, second: &Step) -> Ended {
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

    pub(super) fn restore(&mut self) -> Option<Ended> {
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
}

/// Removes what nothing points to.
pub(super) async fn collect(store: Store, clock: Arc<SimClock>, keep_for: u32) -> Result<String, String> {
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
