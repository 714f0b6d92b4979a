//! Commits: what a catalog guarantees on any store.

use catalog::{Batch, CatalogError};
use futures::TryStreamExt;
use model::Seq;

use crate::conformance::{Store, objects, open};
use crate::records::*;

pub(crate) async fn what_was_committed_survives_a_crash_and_nothing_else(store: &Store) {
    let catalog = open(store, "catalogs/crash").await;
    let mut batch = Batch::new();
    batch.put_pending(&uri("a"), &pending(1));
    catalog.commit(batch).await.unwrap();
    let mut batch = Batch::new();
    batch.put_resource(&uri("a"), &resource("a"));
    batch.delete_pending(&uri("a"));
    catalog.commit(batch).await.unwrap();
    let mut never = Batch::new();
    never.put_resource(&uri("b"), &resource("b"));
    drop((catalog, never));

    let catalog = open(store, "catalogs/crash").await;
    assert_eq!(catalog.resource(&uri("a")).await.unwrap(), Some(resource("a")));
    assert_eq!(catalog.count_pending().await.unwrap(), 0);
    assert_eq!(catalog.resource(&uri("b")).await.unwrap(), None);
    catalog.close().await.unwrap();
}

pub(crate) async fn commits_side_by_side_are_all_durable(store: &Store) {
    let catalog = open(store, "catalogs/together").await;
    let commits = (0..50).map(|n| {
        let mut batch = Batch::new();
        batch.put_resource(&uri(&format!("{n:02}")), &resource("x"));
        batch.append_change(&change(&format!("{n:02}")));
        catalog.commit(batch)
    });
    futures::future::try_join_all(commits).await.unwrap();
    drop(catalog);
    let catalog = open(store, "catalogs/together").await;
    assert_eq!(paths(&catalog, "", None).await.len(), 50);
    let changes: Vec<_> = catalog.scan_changes(0).await.unwrap().try_collect().await.unwrap();
    assert_eq!(changes.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    catalog.close().await.unwrap();
}

pub(crate) async fn what_is_committed_together_is_written_once_in_its_order(store: &Store) {
    let path = "catalogs/portions";
    let catalog = open(store, path).await;
    let before = objects(store, path).await.len();
    let portions = (0..10).map(|n| {
        let mut batch = Batch::new();
        batch.put_resource(&uri(&format!("{n}")), &resource("x"));
        batch.put_last_seq(Seq::new(n));
        batch.append_change(&change(&format!("{n}")));
        batch
    });
    catalog.commit_all(portions.chain([Batch::new()])).await.unwrap();
    assert_eq!(objects(store, path).await.len(), before + 1);
    drop(catalog);
    let catalog = open(store, path).await;
    assert_eq!(paths(&catalog, "", None).await.len(), 10);
    assert_eq!(catalog.last_seq().await.unwrap(), Seq::new(9));
    let changes: Vec<_> = catalog.scan_changes(0).await.unwrap().try_collect().await.unwrap();
    let told: Vec<_> = changes.iter().map(|(number, change)| (*number, change.uri.clone())).collect();
    assert_eq!(told, (0..10).map(|n| (n, uri(&format!("{n}")))).collect::<Vec<_>>());
    catalog.close().await.unwrap();
}

pub(crate) async fn what_is_handed_over_is_durable_with_what_follows_it_and_not_found_before(store: &Store) {
    let path = "catalogs/handed";
    let catalog = open(store, path).await;
    let before = objects(store, path).await.len();
    let portion = |n| {
        let mut batch = Batch::new();
        batch.put_resource(&uri(&format!("{n}")), &resource("x"));
        batch.put_last_seq(Seq::new(n));
        [batch]
    };
    let first = catalog.submit(portion(1)).await.unwrap();
    let second = catalog.submit(portion(2)).await.unwrap();
    assert_eq!(paths(&catalog, "", None).await, [""; 0], "a crash could take it back");
    assert_eq!(objects(store, path).await.len(), before);
    second.durable().await.unwrap();
    assert_eq!(paths(&catalog, "", None).await, ["1", "2"]);
    assert_eq!(objects(store, path).await.len(), before + 1);
    first.durable().await.unwrap();
    assert_eq!(objects(store, path).await.len(), before + 1, "it is written already");
    drop(catalog);
    let catalog = open(store, path).await;
    assert_eq!(paths(&catalog, "", None).await, ["1", "2"]);
    assert_eq!(catalog.last_seq().await.unwrap(), Seq::new(2));
    catalog.close().await.unwrap();
}

pub(crate) async fn a_second_writer_fences_the_first(store: &Store) {
    let first = open(store, "catalogs/fence").await;
    put(&first, "a").await.unwrap();
    let second = open(store, "catalogs/fence").await;
    put(&second, "b").await.unwrap();
    let error = put(&first, "c").await.unwrap_err();
    assert!(matches!(error, CatalogError::Fenced { .. }), "{error}");
    let error = put(&first, "d").await.unwrap_err();
    assert!(matches!(error, CatalogError::Fenced { .. }), "and it stays so: {error}");
    put(&second, "e").await.unwrap();
    assert_eq!(paths(&second, "", None).await, ["a", "b", "e"]);
    second.close().await.unwrap();
}
