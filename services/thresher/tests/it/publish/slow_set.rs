//! A server of several Sources, one of which takes long to publish.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogConfig};
use model::SourceId;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use publish::{Base, Place, Publication, paths};
use publisher::{Readers, Settings, Site};
use reqwest::Client;
use store::{Key, SourceMarker, Store};
use testkit::gated::GatedObjects;
use testkit::waiting::found;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

fn publication(base: &Base, id: &SourceId, objects: Arc<dyn ObjectStore>) -> Publication {
    Publication {
        description: Some(base.url(paths::DESCRIPTION)),
        ..Publication::of_documents(
            Place::bucket(id.as_str(), objects),
            base.of_set(id).unwrap(),
            SourceMarker::new(id.clone(), format!("http://{id}.test/")),
        )
    }
}

#[tokio::test]
async fn a_first_publication_that_takes_long_keeps_no_other_set_from_being_served() {
    let store = Store::in_memory();
    let [slow, quick] = ["slow", "quick"].map(|id| id.parse::<SourceId>().unwrap());
    for id in [&slow, &quick] {
        let path = Key::Catalog(id.clone()).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        catalog.close().await.unwrap();
    }
    let base = Base::new("http://mirror.example/".parse().unwrap()).unwrap();
    let (objects, gate) = GatedObjects::closed();
    let publications =
        [publication(&base, &slow, objects), publication(&base, &quick, Arc::new(InMemory::new()))];
    let sets = publications.map(|one| (one, Readers::default())).to_vec();
    let site = Site::Several { base, sets, store };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let settings = Settings { start_time: Duration::ZERO, ..Settings::default() };
    let serving = tokio::spawn(publisher::serve(listener, site, settings, |_| {}, stop.clone()));

    let client = Client::builder().no_proxy().build().unwrap();
    let answers = async |set: &SourceId, status: u16| {
        found(format!("{set} is answered by {status}"), async || {
            let url = format!("http://{address}/{set}/resourcelist.xml");
            let answer = client.get(url).send().await.ok()?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            (answer.status() == status).then_some(())
        })
        .await;
    };
    answers(&quick, 200).await;
    answers(&slow, 503).await;
    gate.open(1_000);
    answers(&slow, 200).await;
    stop.cancel();
    serving.await.unwrap().unwrap();
}
