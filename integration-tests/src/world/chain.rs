//! What a copy publishes, and a second copy that follows it: a chain of two hops.

mod mirror;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use catalog::{Catalog, CatalogReader};
use fixity::Sha256;
use model::{Clock, SourceId};
use publish::{Base, CatalogRecords, Named, Place, Publication, Seen};
use store::{Key, SourceMarker, Store};
use tempfile::TempDir;
use url::Url;

use mirror::Mirror;

use super::process::{catalog_config, runtime};
use super::{Ended, Harvested, World, words};
use crate::clock::SimClock;
use crate::effects::{Effects, Halt, Rates};
use crate::invariants::Held;
use crate::plan::{Hop, Sync};
use crate::sim_bus::SimBus;
use crate::sim_objects::{Objects, SimObjects};

const BASE: &str = "http://mirror.example/";

/// The place of a publication, and the store of the copy that follows it.
#[derive(Debug)]
pub struct Chain {
    published: Arc<Objects>,
    copied: Arc<Objects>,
    spool: TempDir,
    entry: Url,
    source: SourceId,
    /// Whether a publication has come to its end.
    is_published: bool,
}

impl Chain {
    /// Nothing is published yet.
    ///
    /// # Panics
    /// When there is no temporary directory.
    pub fn new(world: &World) -> Self {
        let entry: Url = format!("{BASE}.well-known/resourcesync").parse().expect("a URL");
        let objects = || Arc::new(Objects::new(Arc::clone(&world.clock)));
        Self {
            published: objects(),
            copied: objects(),
            spool: tempfile::tempdir().expect("a temporary directory"),
            source: SourceId::of_entry(&entry),
            entry,
            is_published: false,
        }
    }

    /// Publishes and follows, as far as the hop says. No document names what is not there, also after a kill.
    ///
    /// # Errors
    /// A process that fails without a kill, or a document that names too much.
    pub fn hop(&mut self, world: &mut World, hop: Hop) -> Result<(), String> {
        if hop.publishes {
            let (ended, done) = self.publish(world, hop.publish_halt);
            world.told.push(format!("a publication: {}", ended.words()));
            match done {
                Some(is_published) => self.is_published |= is_published,
                None if matches!(ended, Ended::Halted) => {}
                None => return Err(format!("a publication fails: {}", ended.words())),
            }
            let objects = SimObjects::new(Arc::clone(&self.published), Arc::new(Effects::none()));
            runtime().block_on(mirror::all_that_is_named_is_there(&objects))?;
        }
        if hop.follows && self.is_published {
            let ended = self.follow(world, hop.follow_halt);
            world.told.push(format!("the second copy: {}", ended.words()));
            if !matches!(ended, Ended::Halted | Ended::Report(_)) {
                return Err(format!("the second copy does not follow: {}", ended.words()));
            }
        }
        Ok(())
    }

    /// Runs a process that publishes. Returns also whether there was anything, if it came to its end.
    fn publish(&self, world: &mut World, halt: Option<Halt>) -> (Ended, Option<bool>) {
        let effects = world.process(halt, Rates::default());
        let objects = SimObjects::new(Arc::clone(&self.published), Arc::clone(&effects));
        let place = Place::bucket("the mirror", Arc::new(objects)).of_one_writer();
        let source = SourceMarker::new(world.source.clone(), world.entry.as_str());
        let (store, clock) = (world.store(&effects), Arc::clone(&world.clock));
        let mut done = None;
        let ended = world.live(&effects, async {
            match Box::pin(publish(&store, place, source, &clock)).await {
                Ok(published) => {
                    done = Some(published.is_some());
                    Ended::Failed(published.unwrap_or_else(|| "nothing is stored yet".to_owned()))
                }
                Err(why) => Ended::Failed(why),
            }
        });
        (ended, done)
    }

    fn follow(&self, world: &mut World, halt: Option<Halt>) -> Ended {
        let effects = world.process(halt, Rates::default());
        let objects = SimObjects::new(Arc::clone(&self.published), Arc::clone(&effects));
        let of = Harvested {
            store: self.store(&effects),
            source: self.source.clone(),
            entry: self.entry.clone(),
            line: Arc::new(Mirror { objects, effects: Arc::clone(&effects) }),
        };
        let bus = Arc::new(SimBus::new(world.bus(), Arc::clone(&effects)));
        let harvesting = world.harvest_of(of, &Sync::clean(), &effects, &bus);
        world.live(&effects, harvesting)
    }

    fn store(&self, effects: &Arc<Effects>) -> Store {
        let objects = Arc::new(SimObjects::new(Arc::clone(&self.copied), Arc::clone(effects)));
        Store::over_objects(objects, "the second copy", self.spool.path().to_owned())
    }

    /// What the first copy has is in the second one too, and nothing else.
    ///
    /// # Errors
    /// What differs.
    pub fn copies_are_equal(&self, world: &World) -> Result<(), String> {
        let first = present(&Held::of(world)?)?;
        let store = self.store(&Arc::new(Effects::none()));
        let second = world.look_into(store, &self.source, Held::read)?;
        let second: BTreeMap<String, Sha256> =
            present(&second)?.into_iter().map(|(url, sha256)| (original(&url), sha256)).collect();
        if first == second {
            return Ok(());
        }
        let differ = |uri: &&String| first.get(*uri) != second.get(*uri);
        let differing: Vec<&String> = first.keys().chain(second.keys()).filter(differ).take(5).collect();
        Err(format!(
            "{} and {} resources: {differing:?} differ in the second copy",
            first.len(),
            second.len()
        ))
    }
}

/// Publishes what a store has. Returns what was done, as text; none if nothing is stored yet.
async fn publish(
    store: &Store,
    place: Place,
    source: SourceMarker,
    clock: &Arc<SimClock>,
) -> Result<Option<String>, String> {
    let path = Key::Catalog(source.source.clone()).to_string();
    let objects = store.object_store();
    if !Catalog::exists(&objects, &path).await.map_err(words)? {
        return Ok(None);
    }
    let Ok(catalog) = CatalogReader::open(objects, &path, catalog_config(clock)).await else {
        return Ok(None);
    };
    let base = Base::new(BASE.parse().expect("a URL")).expect("a base");
    let publication = Publication { with_bytes: true, ..Publication::of_documents(place, base, source) };
    let records = CatalogRecords::new(&catalog, store);
    let done = publication.run(&records, clock.now(), &mut |_: Seen<'_>| {}).await.map_err(words)?;
    catalog.close().await.map_err(words)?;
    match done.damaged {
        0 => Ok(Some(format!("{} resources, {} changes", done.resources, done.changes))),
        damaged => Err(format!("{damaged} resources are damaged")),
    }
}

/// The digests of the bytes that a copy has.
fn present(held: &Held) -> Result<BTreeMap<String, Sha256>, String> {
    let digest = |(uri, body): (&String, &Result<Bytes, String>)| match body {
        Ok(body) => Ok((uri.clone(), Sha256::of(body))),
        Err(why) => Err(format!("{uri} cannot be read: {why}")),
    };
    held.bodies.iter().map(digest).collect()
}

/// The URI of the original of what is published at a URL; of another URL, that itself.
fn original(url: &str) -> String {
    match url.strip_prefix(BASE).and_then(Named::at) {
        Some(Named::Resource(uri)) => uri.to_string(),
        _ => url.to_owned(),
    }
}
