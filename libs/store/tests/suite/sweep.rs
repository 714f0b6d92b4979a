//! Removing unneeded objects, concurrently with puts and finds.

use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use model::{PackageId, Seq};
use object_store::PutPayload;
use store::{Growing, Listed, PackageHead};

use super::*;

/// How often a put meets a sweep.
const ROUNDS: u32 = 25;
/// How often something is put again until the store's clock has moved on: the coarsest counts in seconds.
const PUTS: u32 = 200;

async fn listed(store: &Store, sha256: Sha256) -> Option<Listed> {
    let key = Key::Bitstream(sha256);
    let all: Vec<Listed> = store.list_bitstreams(sha256.as_bytes()[0]).try_collect().await.unwrap();
    all.into_iter().find(|listed| listed.key == key)
}

async fn put_small(store: &Store, content: &'static str) -> Sha256 {
    let sha256 = Sha256::of(content.as_bytes());
    store
        .put_bitstream(store::NewBitstream::Memory(sha256, Bytes::from_static(content.as_bytes())))
        .await
        .unwrap();
    sha256
}

/// Puts repeatedly, until the last object is young by the store's own clock.
async fn put_until_young(store: &Store, young: Timestamp, mut put: impl AsyncFnMut() -> Sha256) {
    for _ in 0..PUTS {
        let last = put().await;
        if listed(store, last).await.unwrap().modified >= young {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("what is put again does not become young");
}

pub(crate) async fn what_is_removed_is_gone_and_a_bitstream_that_was_found_again_is_not(store: &Store) {
    let found = put_small(store, "found again").await;
    let lost = put_small(store, "lost").await;
    let large = put(store, &body(100_000)).await;
    let Location::Object { sha256: large } = large else { panic!("{large:?}") };
    let mut oldest = Timestamp::MIN;
    for sha256 in [found, lost, large] {
        oldest = oldest.max(listed(store, sha256).await.unwrap().modified);
    }
    // Younger than all of them, also on a clock of whole seconds.
    let young = oldest + SignedDuration::from_millis(1_001);
    put_until_young(store, young, async || {
        // The checked one is put first: where it is young, so is the other.
        let first = put_small(store, "found again").await;
        put(store, &body(100_000)).await;
        first
    })
    .await;
    assert!(listed(store, large).await.unwrap().modified >= young);
    let removed = store.remove_bitstreams(vec![found, lost, large, Sha256::of(b"never")], young).await;
    let removed = removed.unwrap();
    assert_eq!((removed.objects, removed.bytes), (1, 4));
    assert!(listed(store, lost).await.is_none());
    assert!(listed(store, found).await.is_some() && listed(store, large).await.is_some());

    let pack = pack(&[b"a".to_vec()]);
    store.put_pack(&pack).await.unwrap();
    let packs: Vec<Listed> = store.list_packs(&source()).try_collect().await.unwrap();
    assert_eq!(packs.iter().map(|listed| &listed.key).collect::<Vec<_>>(), [pack.key()]);
    // Another sweep may have been faster.
    for _ in 0..2 {
        assert_eq!(store.remove_unneeded(packs.clone()).await.unwrap().objects, 1);
    }
    assert!(store.list_packs(&source()).try_next().await.unwrap().is_none());
}

pub(crate) async fn a_put_that_meets_a_sweep_is_never_lost(store: &Store) {
    let content = |round: u32| Bytes::from(format!("round {round}"));
    let mut oldest = Timestamp::MIN;
    for round in 0..ROUNDS {
        let sha256 = Sha256::of(&content(round));
        store.put_bitstream(store::NewBitstream::Memory(sha256, content(round))).await.unwrap();
        oldest = oldest.max(listed(store, sha256).await.unwrap().modified);
    }
    // Everything before is old, and everything put from now on is young, also on a clock of whole seconds.
    let young = oldest + SignedDuration::from_millis(1_001);
    put_until_young(store, young, async || put_small(store, "a clock").await).await;
    for round in 0..ROUNDS {
        let bytes = content(round);
        let sha256 = Sha256::of(&content(round));
        let finds = async {
            // At another moment each time.
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            store.put_bitstream(store::NewBitstream::Memory(sha256, bytes.clone())).await
        };
        let (swept, put) = tokio::join!(store.remove_bitstreams(vec![sha256], young), finds);
        swept.unwrap();
        match put {
            Ok(_) => assert!(listed(store, sha256).await.is_some(), "lost in round {round}"),
            Err(StoreError::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) async fn uploads_are_told_with_the_packages_they_become(store: &Store) {
    let mut upload = store.package_upload(&source(), Seq::new(3), &[], 1 << 30).await.unwrap();
    upload.begin(PackageHead::default()).await.unwrap();
    upload.append(body(8 * MIB + 3).into()).await.unwrap();
    upload.keep().await.unwrap();
    let left = store.uploads_left(&source()).await.unwrap();
    let [left] = &left[..] else { panic!("{left:?}") };
    assert_eq!((left.seq, left.amount.objects), (Seq::new(3), 2));
    let mut upload = store.package_upload(&source(), Seq::new(3), &[], 1 << 30).await.unwrap();
    upload.append(body(3).into()).await.unwrap();
    let stored = upload.finish().await.unwrap();
    let Location::Package { package, .. } = stored.location else { panic!("{stored:?}") };
    assert_eq!(left.package, Some(package));
    store.forget_upload(&source(), Seq::new(3)).await.unwrap();
    assert_eq!(store.uploads_left(&source()).await.unwrap(), []);
}

/// Only a bucket has such uploads.
pub(crate) async fn unfinished_uploads_are_given_up(store: &Store) {
    let objects = store.object_store();
    let begin = async |key: Key| {
        let mut upload = objects.put_multipart(&key.path()).await.unwrap();
        upload.put_part(PutPayload::from(body(5 * MIB))).await.unwrap();
        upload
    };
    let mut bitstream = begin(Key::Bitstream(Sha256::of(b"begun"))).await;
    let package = |package| Key::Package { source: source(), package };
    let mut lost = begin(package(PackageId::fresh())).await;
    let going_on = PackageId::fresh();
    let mut goes_on = begin(package(going_on)).await;
    let growing = Growing { packages: [going_on].into(), ..Growing::default() };
    let past = Timestamp::now() - SignedDuration::from_hours(1);
    let future = Timestamp::now() + SignedDuration::from_hours(1);
    assert_eq!(store.orphans(past, growing.clone(), true).await.unwrap().objects, 0);
    assert_eq!(store.orphans(future, growing.clone(), false).await.unwrap().objects, 2);
    assert_eq!(store.orphans(future, growing.clone(), true).await.unwrap().objects, 2);
    assert_eq!(store.orphans(future, growing, true).await.unwrap().objects, 0);
    assert!(bitstream.complete().await.is_err() && lost.complete().await.is_err());
    goes_on.complete().await.unwrap();
}
