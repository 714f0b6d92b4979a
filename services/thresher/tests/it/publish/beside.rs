//! Readers over HTTP beside publications: each document is whole, and each body is a version that the Source had.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Client;
use simulated_source::{ChangeKind, Changes, SimulatedSource, SourceSpec};
use testkit::waiting::found;

use super::strict_client::{Follower, Seen};
use super::{Files, Served};
use crate::common::api::send;
use crate::common::{Destination, in_step};

/// Readers at a time.
const READERS: usize = 8;
/// Publications beside them. The variable sets another number.
const PUBLICATIONS: usize = 16;
const VARIABLE: &str = "THRESHER_TEST_PUBLICATIONS";
const CHANGES: Changes = Changes { create: 2, update: 4, delete: 2 };

fn publications() -> usize {
    std::env::var(VARIABLE).map_or(PUBLICATIONS, |count| count.parse().expect("a number"))
}

/// Reads in a loop: one reader that goes on, and new ones that begin with the Resource List.
async fn read_on(seen: Arc<Seen>, stop: Arc<AtomicBool>) -> (usize, Follower) {
    let mut follower = Follower::default();
    let mut walks = 0;
    while !stop.load(Ordering::Relaxed) {
        follower.walk(&seen).await;
        Follower::default().walk(&seen).await;
        walks += 2;
    }
    (walks, follower)
}

/// Changes the Source, harvests that, and lets `publish` bring it before the readers, again and again.
async fn publishes_beside_readers(
    source: &SimulatedSource,
    copy: &Destination,
    seen: Seen,
    mut publish: impl AsyncFnMut(&str),
) {
    let (seen, stop) = (Arc::new(seen), Arc::<AtomicBool>::default());
    let readers: Vec<_> =
        (0..READERS).map(|_| tokio::spawn(read_on(Arc::clone(&seen), Arc::clone(&stop)))).collect();
    for _ in 0..publications() {
        let changes = source.change(CHANGES);
        seen.note(source);
        copy.sync_with(&source.well_known(), &["--view", "none"]).exits(0);
        let updated = changes.iter().find(|change| change.kind == ChangeKind::Updated).expect("an update");
        let uri = source.resource_uri(updated.index);
        let updated = source.expected().find(|now| now.uri == uri).expect("it is there");
        publish(&updated.sha256).await;
        // A reader that failed has ended.
        assert!(readers.iter().all(|reader| !reader.is_finished()));
    }
    stop.store(true, Ordering::Relaxed);
    let mut walks = 0;
    for reader in readers {
        let (count, mut follower) = reader.await.expect("a reader without complaints");
        walks += count;
        follower.walk(&seen).await;
        assert_eq!(follower.held, seen.truth().present);
    }
    assert!(walks >= READERS * 4, "{walks}");
    let truth = seen.truth();
    let (answers, others) = (&truth.answers, truth.other_versions);
    println!("{walks} walks beside {} publications: {answers:?}, {others} other versions", publications());
    assert!(answers.keys().all(|status| [200, 410].contains(status)), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acc_5_readers_of_a_server_beside_publications_find_all_that_is_named_and_no_mix() {
    let (source, copy) = in_step(SourceSpec::default().resources(20)).await;
    // With a hub, it looks four times a second for changes.
    let served = Served::with(&copy, &["--own-hub"]);
    let seen = Seen::new(&served.base);
    seen.note(&source);
    let client = Client::builder().no_proxy().build().unwrap();
    let list = format!("{}resourcelist.xml", served.base);
    publishes_beside_readers(&source, &copy, seen, async |sha256| {
        found("it is published", async || {
            let answer = send(client.get(&list)).await;
            String::from_utf8_lossy(&answer.body).contains(sha256).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acc_5_readers_of_files_beside_publications_find_all_that_is_named_and_no_mix() {
    let (source, copy) = in_step(SourceSpec::default().resources(20)).await;
    let files = Files::start();
    files.publish(&copy).exits(0);
    let seen = Seen::new(&files.base);
    seen.note(&source);
    publishes_beside_readers(&source, &copy, seen, async |_| {
        files.publish(&copy).exits(0);
    })
    .await;
}
