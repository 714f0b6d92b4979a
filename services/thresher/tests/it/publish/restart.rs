//! A server that is started again: what was published before is served at once.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogConfig, CatalogReader};
use jiff::Timestamp;
use model::SourceId;
use publish::{Base, CatalogRecords, Place, Publication, PublishError, Seen, paths};
use publisher::{Held, Readers, Settings, Site};
use reqwest::Client;
use store::{Key, SourceMarker, Store};
use testkit::gated::{Gate, GatedObjects};
use testkit::waiting::found;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A harvest, and a publication of it whose place takes nothing more.
struct World {
    store: Store,
    source: SourceId,
    publication: Publication,
    gate: Arc<Gate>,
    stop: CancellationToken,
}

impl World {
    /// With a publication at this base.
    async fn published(base: Base, description: Option<String>) -> Self {
        let (store, source) = (Store::in_memory(), "one".parse::<SourceId>().unwrap());
        let path = Key::Catalog(source.clone()).to_string();
        let config = CatalogConfig::default();
        Catalog::open(store.object_store(), &path, config.clone()).await.unwrap().close().await.unwrap();
        let (objects, gate) = GatedObjects::closed();
        let marker = SourceMarker::new(source.clone(), "http://one.test/");
        let publication = Publication {
            description,
            ..Publication::of_documents(Place::bucket("gated", objects), base, marker)
        };
        let catalog = CatalogReader::open(store.object_store(), &path, config).await.unwrap();
        let records = CatalogRecords::new(&catalog, &store);
        // Each PUT is released, and no later one.
        let released = async {
            for come in 1.. {
                gate.have_come(come).await;
                gate.open(1);
            }
        };
        let mut see = |_: Seen<'_>| {};
        tokio::select! {
            done = publication.run(&records, Timestamp::now(), &mut see) => drop(done.unwrap()),
            () = released => {}
        }
        catalog.close().await.unwrap();
        Self { store, source, publication, gate, stop: CancellationToken::new() }
    }

    /// The publication, with a dump that is due.
    fn with_dump(&self) -> Publication {
        Publication { dumps: true, ..self.publication.clone() }
    }

    /// Serves it, and returns the URL at which it answers.
    async fn serve(&self, site: Site) -> (String, JoinHandle<Result<(), PublishError>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        // No other set is waited for in the time of a test.
        let settings = Settings { start_time: Duration::from_secs(3_600), ..Settings::default() };
        let serving =
            publisher::serve(listener, site, settings, |done| assert!(done.is_none()), self.stop.clone());
        (url, tokio::spawn(serving))
    }
}

/// Waits until a document is answered.
async fn answers(url: &str) {
    let client = Client::builder().no_proxy().build().unwrap();
    found(format!("{url} is answered"), async || {
        let answer = client.get(url).send().await.ok()?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        (answer.status() == 200).then_some(())
    })
    .await;
}

fn base() -> Base {
    Base::new("http://mirror.example/".parse().unwrap()).unwrap()
}

#[tokio::test]
async fn a_dump_that_is_due_keeps_no_published_list_from_being_served() {
    let world = World::published(base(), None).await;
    let before = world.gate.come();
    let site = Site::One(Box::new(world.with_dump()), Held::Harvest(world.store.clone()));
    let (url, serving) = world.serve(site).await;
    world.gate.have_come(before + 1).await;
    answers(&format!("{url}resourcelist.xml")).await;
    world.gate.open(1_000);
    answers(&format!("{url}resourcedump.xml")).await;
    world.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_publication_that_fails_keeps_no_published_list_from_being_served() {
    let world = World::published(base(), None).await;
    let before = world.gate.come();
    world.gate.refuse();
    let site = Site::One(Box::new(world.with_dump()), Held::Harvest(world.store.clone()));
    let (url, serving) = world.serve(site).await;
    world.gate.have_come(before + 1).await;
    answers(&format!("{url}resourcelist.xml")).await;
    assert!(!serving.is_finished());
    world.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_stops_waits_for_no_publication() {
    let world = World::published(base(), None).await;
    let before = world.gate.come();
    let site = Site::One(Box::new(world.with_dump()), Held::Harvest(world.store.clone()));
    let (_, serving) = world.serve(site).await;
    world.gate.have_come(before + 1).await;
    world.stop.cancel();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_set_that_was_published_is_served_before_its_dump_is_made() {
    let of_set = base().of_set(&"one".parse().unwrap()).unwrap();
    let world = World::published(of_set, Some(base().url(paths::DESCRIPTION))).await;
    let before = world.gate.come();
    let sets = vec![(world.with_dump(), Readers::default())];
    let site = Site::Several { base: base(), sets, store: world.store.clone() };
    let (url, serving) = world.serve(site).await;
    world.gate.have_come(before + 1).await;
    answers(&format!("{url}{}/resourcelist.xml", world.source)).await;
    world.gate.open(1_000);
    answers(&format!("{url}{}/resourcedump.xml", world.source)).await;
    world.stop.cancel();
    serving.await.unwrap().unwrap();
}
