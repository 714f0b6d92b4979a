//! Behaviour over time: long scans, abandoned commits, names that are too long.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Batch, Catalog, CatalogConfig, CatalogError};
use futures::{FutureExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use model::ManualClock;
use object_store::memory::InMemory;

use crate::records::*;

async fn open(store: &Arc<InMemory>) -> Catalog {
    Catalog::open(store.clone(), "catalogs/a", CatalogConfig::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_scan_that_lasts_goes_on_with_a_later_state_and_repeats_nothing() {
    let catalog = open(&Arc::new(InMemory::new())).await;
    for path in ["a", "b", "d"] {
        put(&catalog, path).await.unwrap();
    }
    let mut scan = catalog.scan_resources(None, None).await.unwrap();
    assert_eq!(scan.try_next().await.unwrap().unwrap().0, uri("a"));
    put(&catalog, "c").await.unwrap();
    assert_eq!(scan.try_next().await.unwrap().unwrap().0, uri("b"));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(scan.try_next().await.unwrap().unwrap().0, uri("c"));
    assert_eq!(scan.try_next().await.unwrap().unwrap().0, uri("d"));
    assert!(scan.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_commit_that_is_given_up_leaves_the_catalog_refusing_until_it_is_opened_anew() {
    let store = Arc::new(InMemory::new());
    let catalog = open(&store).await;
    put(&catalog, "a").await.unwrap();
    assert!(put(&catalog, "b").now_or_never().is_none(), "it was on its way");
    let error = put(&catalog, "c").await.unwrap_err();
    assert!(matches!(error, CatalogError::Poisoned { .. }), "{error}");
    assert!(error.is_retryable());
    assert_eq!(catalog.resource(&uri("a")).await.unwrap(), Some(resource("a")), "it can still be read");
    catalog.close().await.unwrap();

    let catalog = open(&store).await;
    put(&catalog, "c").await.unwrap();
    let held = paths(&catalog, "", None).await;
    assert!(held == ["a", "c"] || held == ["a", "b", "c"], "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_catalog_with_more_fresh_files_than_may_wait_is_closed_when_some_are_merged() {
    // Each batch fills the table in memory. Writing blocks at 32 files, and merging begins after a while.
    let config =
        CatalogConfig { memtable_bytes: 4096, unflushed_bytes: 1024 * 1024, ..CatalogConfig::default() };
    let store = Arc::new(InMemory::new());
    let catalog = Catalog::open(store.clone(), "catalogs/a", config).await.unwrap();
    for n in 0..60 {
        let mut batch = Batch::new();
        for m in 0..40 {
            batch.put_resource(&uri(&format!("{n:02}/{m:02}")), &resource("x"));
        }
        catalog.commit(batch).await.unwrap();
    }
    catalog.close().await.unwrap();
    let catalog = open(&store).await;
    assert_eq!(paths(&catalog, "", None).await.len(), 60 * 40);
}

#[tokio::test]
async fn what_is_handed_over_and_not_waited_for_leaves_the_catalog_refusing() {
    let catalog = open(&Arc::new(InMemory::new())).await;
    let mut batch = Batch::new();
    batch.put_resource(&uri("a"), &resource("a"));
    drop(catalog.submit([batch]).await.unwrap());
    let error = put(&catalog, "b").await.unwrap_err();
    assert!(matches!(error, CatalogError::Poisoned { .. }), "{error}");
}

#[tokio::test]
async fn a_commit_that_is_dropped_before_it_began_does_no_harm() {
    let catalog = open(&Arc::new(InMemory::new())).await;
    drop(put(&catalog, "a"));
    put(&catalog, "b").await.unwrap();
    catalog.commit(Batch::new()).await.unwrap();
    assert_eq!(paths(&catalog, "", None).await, ["b"]);
}

#[tokio::test]
async fn a_name_of_absurd_length_refuses_the_whole_batch_and_nothing_else() {
    let catalog = open(&Arc::new(InMemory::new())).await;
    let mut batch = Batch::new();
    batch.put_resource(&uri("a"), &resource("a"));
    batch.put_document(&"x".repeat(70_000), &document());
    let error = catalog.commit(batch).await.unwrap_err();
    assert!(matches!(error, CatalogError::KeyTooLong { length: 70_001, .. }), "{error}");
    put(&catalog, "b").await.unwrap();
    assert_eq!(paths(&catalog, "", None).await, ["b"]);
}

#[tokio::test]
async fn a_name_of_absurd_length_refuses_all_that_was_to_be_committed_with_it() {
    let catalog = open(&Arc::new(InMemory::new())).await;
    let mut good = Batch::new();
    let mut bad = Batch::new();
    good.put_resource(&uri("a"), &resource("a"));
    bad.put_document(&"x".repeat(70_000), &document());
    let error = catalog.commit_all([good, bad]).await.unwrap_err();
    assert!(matches!(error, CatalogError::KeyTooLong { length: 70_001, .. }), "{error}");
    put(&catalog, "b").await.unwrap();
    assert_eq!(paths(&catalog, "", None).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_opens_it_next_may_have_a_clock_that_is_behind() {
    let store = Arc::new(InMemory::new());
    let now: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    for (number, hours) in [0, -1, -48, 1].into_iter().enumerate() {
        let clock = Arc::new(ManualClock::new(now + SignedDuration::from_hours(hours)));
        let config = CatalogConfig { clock, ..CatalogConfig::default() };
        let catalog = Catalog::open(store.clone(), "catalogs/a", config).await.unwrap();
        put(&catalog, &format!("{number}")).await.unwrap();
        // Everything becomes a table, whose name has its time.
        catalog.close().await.unwrap();
    }
    let catalog = open(&store).await;
    assert_eq!(paths(&catalog, "", None).await, ["0", "1", "2", "3"]);
}
