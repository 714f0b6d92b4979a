//! What a server costs its store while nothing happens.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogConfig};
use object_store::memory::InMemory;
use publish::Place;
use store::{Key, Operation, SourceMarker};
use tokio::time::sleep;

use super::*;

/// Requests to a store so far: lists, and all others.
fn requests(store: &Store) -> (u64, u64) {
    let counted = store.operations();
    let (lists, others): (Vec<_>, Vec<_>) = counted
        .counted()
        .map(|(operation, .., n)| (operation, n))
        .partition(|(one, _)| *one == Operation::List);
    let sum = |all: Vec<(Operation, u64)>| all.into_iter().map(|(_, n)| n).sum();
    (sum(lists), sum(others))
}

#[tokio::test]
async fn a_minute_after_a_reader_each_look_costs_one_request_again() {
    let store = Store::in_memory();
    let path = Key::Catalog("one".parse().unwrap()).to_string();
    let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
    catalog.close().await.unwrap();
    let publication = Publication::of_documents(
        Place::bucket("memory", Arc::new(InMemory::new())),
        Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
        SourceMarker::new("one".parse().unwrap(), "http://e.org/"),
    );
    let server = Server::new(Settings::default(), CancellationToken::new()).unwrap();
    let (set, _) = start(open_one(publication, Held::Harvest(store.clone()), &server)).await.unwrap();
    let OpenRecords::Harvest(harvest) = set.shared.records() else { panic!("a harvest") };
    tokio::time::pause();
    sleep(Duration::from_secs(10)).await;
    let read = Arc::downgrade(&harvest.catalog().await.unwrap());
    sleep(Duration::from_secs(80)).await;
    assert!(read.upgrade().is_none(), "it is closed");

    let before = requests(&store);
    sleep(Duration::from_secs(10)).await;
    let after = requests(&store);
    assert_eq!(after.1, before.1);
    assert!((9..=11).contains(&(after.0 - before.0)), "{before:?}, {after:?}");
    server.stop.cancel();
    server.tasks.close();
    server.tasks.wait().await;
}
