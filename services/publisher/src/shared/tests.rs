//! Publishers that take turns at one publication.

use std::time::Duration;

use catalog::{Batch, Catalog, CatalogConfig};
use jiff::Timestamp;
use model::{ChangeEvent, ChangeLogEntry, RunId, SourceId};
use object_store::memory::InMemory;
use publish::{Base, Place, Publication};
use serving::{Catalogs, VerifiedCache};
use store::{Key, SourceMarker, Store};

use super::*;
use crate::harvest::Harvest;

#[tokio::test]
async fn what_another_publisher_has_published_is_not_published_anew_by_one_whose_reader_lags() {
    let (store, objects) = (Store::in_memory(), Arc::new(InMemory::new()));
    let source: SourceId = "case".parse().unwrap();
    let path = Key::Catalog(source.clone()).to_string();
    let writer = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
    let commit = async |name: &str| {
        let (uri, document) = (format!("http://e.org/{name}"), "http://e.org/list.xml".into());
        let event = ChangeEvent::Deleted { absent: false };
        let change =
            ChangeLogEntry::new(uri.parse().unwrap(), event, Timestamp::now(), RunId::fresh(), document);
        let mut batch = Batch::new();
        batch.append_change(&change);
        writer.commit(batch).await.unwrap();
    };
    let publisher = || {
        let publication = Publication::of_documents(
            Place::bucket("memory", objects.clone()),
            Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
            SourceMarker::new(source.clone(), "http://e.org/"),
        );
        // Its reader lags for as long as a test lasts.
        let catalogs = Catalogs::new(store.clone(), 1, 1 << 20).looking_every(Duration::from_secs(3_600));
        let harvest = Harvest::new(source.clone(), catalogs, VerifiedCache::default());
        Shared::new(publication, OpenRecords::Harvest(Box::new(harvest)), &Settings::default())
    };
    let publish = async |publisher: &Shared| publisher.publish(&mut |_| {}).await.unwrap().changes;

    commit("a").await;
    let first = publisher();
    publish(&first).await;
    commit("b").await;
    let second = publisher();
    assert_eq!(publish(&second).await, 1);
    let until = second.publication().published_until().await.unwrap();
    assert_eq!(publish(&first).await, 0);
    assert_eq!(first.publication().published_until().await.unwrap(), until, "it goes on from there");
    commit("c").await;
    assert_eq!(publish(&publisher()).await, 1);
}
