//! What a server costs its store while nothing happens, and whom its hub tells after a start.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogConfig};
use jiff::Timestamp;
use object_store::memory::InMemory;
use publish::Place;
use publish::files::FileRecords;
use store::{Key, Operation, SourceMarker};
use testkit::callbacks::Callbacks;
use testkit::waiting::until;
use tokio::time::sleep;
use web::AddressPolicy;

use super::*;
use crate::access::Tokens;
use crate::hub::Front;
use crate::hub::testing::subscriber;
use crate::hub_limits::HubLimits;

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

#[tokio::test]
async fn a_start_for_readers_with_tokens_ends_the_subscriptions_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let callbacks = Callbacks::start().unwrap();
    let url = "http://mirror.example/files/".parse().unwrap();
    let publication = Publication::of_documents(
        Place::bucket("memory", Arc::new(InMemory::new())),
        Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
        SourceMarker::new("one".parse().unwrap(), "http://mirror.example/files/"),
    );
    publication.put_subscriber(&subscriber(&callbacks.url("/a"), Timestamp::UNIX_EPOCH)).await.unwrap();
    for (tokens, left) in [(None, 1), (Some(Tokens::none()), 0)] {
        let addresses = AddressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap());
        let settings = Settings {
            hub: Some(HubLimits { addresses, ..HubLimits::default() }),
            readers: Readers { tokens, networks: None },
            ..Settings::default()
        };
        let server = Server::new(settings, CancellationToken::new()).unwrap();
        let files = FileRecords::new(folder.path(), &url, &publication.place).unwrap();
        let (set, _) =
            start(open_one(publication.clone(), Held::Files(Box::new(files)), &server)).await.unwrap();
        let Some(Front::Alone(hub)) = set.hub else { panic!("a hub") };
        until("it has those that are admitted", || hub.subscribers() == left).await;
        server.stop.cancel();
        server.tasks.close();
        server.tasks.wait().await;
        assert_eq!(publication.has_subscribers().await.unwrap(), left > 0);
    }
}
