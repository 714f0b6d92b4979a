use std::collections::BTreeSet;
use std::pin::pin;

use fixity::Computed;
use futures::future::join_all;
use futures::{TryStreamExt, poll};
use model::{PackId, ResourceUri};
use testkit::gated::{Gate, GatedObjects};
use tokio::task::yield_now;

use super::*;
use crate::{Key, Listed, PackMember};

fn source() -> SourceId {
    "s".parse().unwrap()
}

/// Packs in memory whose PUTs wait at the gate.
fn gated(limits: PackLimits) -> (SharedPacks, Store, Arc<Gate>) {
    let (objects, gate) = GatedObjects::closed();
    let store = Store::over_objects(objects, "memory", std::env::temp_dir());
    (SharedPacks::new(store.clone(), limits), store, gate)
}

fn member<'a>(uri: &'a ResourceUri, bytes: &'a [u8], computed: &'a Computed) -> PackMember<'a> {
    PackMember { uri, bytes, computed, media_type: None, last_modified: None }
}

/// A batch of these contents.
fn batch(packs: &SharedPacks, contents: &[Vec<u8>]) -> PackBatch {
    let mut batch = packs.batch("2026-01-01T00:00:00Z".parse().unwrap());
    for (n, bytes) in contents.iter().enumerate() {
        let uri = format!("http://e.org/{n}").parse().unwrap();
        batch.add(member(&uri, bytes, &Computed::of(bytes))).unwrap();
    }
    batch
}

/// `count` contents that no other batch has.
fn contents(of: u8, count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|n| vec![of, n, 7]).collect()
}

fn packs_of(locations: &[Location]) -> BTreeSet<PackId> {
    let pack = |location: &Location| match location {
        Location::Pack { pack, .. } => *pack,
        other => panic!("{other:?}"),
    };
    locations.iter().map(pack).collect()
}

async fn assert_lie_there(store: &Store, locations: &[Location], contents: &[Vec<u8>]) {
    assert_eq!(locations.len(), contents.len());
    for (location, content) in locations.iter().zip(contents) {
        assert_eq!(store.read_range(location, 0..content.len() as u64).await.unwrap(), *content);
        assert!(store.exists(location, content.len() as u64).await.unwrap());
    }
}

/// Stores a batch: the locations of its members.
async fn stored(
    packs: &SharedPacks,
    source: &SourceId,
    batch: PackBatch,
) -> Result<Vec<Location>, StoreError> {
    Ok(packs.store(source, batch).await?.members)
}

/// The writers have ended: their Sources are gone from the table.
async fn assert_idle(packs: &SharedPacks) {
    for _ in 0..100 {
        if packs.writing.is_idle() {
            return;
        }
        yield_now().await;
    }
    panic!("a Source is still in the table: {packs:?}");
}

/// Runs all tasks that do not wait for the gate.
async fn let_others_run() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// Stores a batch; its PUT waits at the gate when this returns.
async fn held(packs: &SharedPacks, gate: &Gate, source: SourceId, batch: PackBatch) -> Held {
    let before = gate.come();
    let packs = packs.clone();
    let held = tokio::spawn(async move { stored(&packs, &source, batch).await });
    gate.have_come(before + 1).await;
    held
}

type Held = tokio::task::JoinHandle<Result<Vec<Location>, StoreError>>;

#[tokio::test]
async fn batches_that_come_while_a_pack_is_written_share_the_next_one() {
    let (packs, store, gate) = gated(PackLimits::default());
    let shared = Arc::new(Mutex::new(Vec::new()));
    let packs = packs.observed({
        let shared = Arc::clone(&shared);
        move |batches| shared.lock().unwrap().push(batches)
    });
    let first = held(&packs, &gate, source(), batch(&packs, &contents(0, 2))).await;
    let all: Vec<Vec<Vec<u8>>> = (1..=5).map(|n| contents(n, n)).collect();
    let source = source();
    let mut others =
        pin!(join_all(all.iter().map(|contents| stored(&packs, &source, batch(&packs, contents)))));
    assert!(poll!(&mut others).is_pending());
    let_others_run().await;
    assert_eq!((packs.waiting(), gate.come()), (5, 1));
    gate.open(1);
    let first = first.await.unwrap().unwrap();
    assert_lie_there(&store, &first, &contents(0, 2)).await;
    gate.have_come(2).await;
    assert!(poll!(&mut others).is_pending(), "nothing is known before the pack is stored");
    gate.open(1);
    let others = others.await;
    let mut locations = Vec::new();
    for (found, contents) in others.into_iter().zip(&all) {
        let found = found.unwrap();
        assert_lie_there(&store, &found, contents).await;
        locations.extend(found);
    }
    assert_eq!(packs_of(&locations).len(), 1);
    assert!(packs_of(&first).is_disjoint(&packs_of(&locations)));
    assert_idle(&packs).await;
    assert_eq!(gate.come(), 2);
    assert_eq!(*shared.lock().unwrap(), [1, 5]);
}

#[tokio::test]
async fn a_pack_that_cannot_be_stored_fails_all_who_share_it_and_nobody_else() {
    let (packs, store, gate) = gated(PackLimits::default());
    let first = held(&packs, &gate, source(), batch(&packs, &contents(0, 1))).await;
    let source = source();
    let sharing = |n| stored(&packs, &source, batch(&packs, &contents(n, 1)));
    let mut others = pin!(join_all([sharing(1), sharing(2)]));
    assert!(poll!(&mut others).is_pending());
    gate.open(1);
    first.await.unwrap().unwrap();
    gate.have_come(2).await;
    let mut later = pin!(sharing(3));
    assert!(poll!(&mut later).is_pending());
    gate.refuse();
    for other in others.await {
        let error = other.unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("503"), "{error}");
    }
    gate.open(1);
    assert_lie_there(&store, &later.await.unwrap(), &contents(3, 1)).await;
    assert_idle(&packs).await;
}

#[tokio::test]
async fn who_is_dropped_while_others_wait_takes_nothing_along() {
    let (packs, store, gate) = gated(PackLimits::default());
    // The one for which the writer was started.
    let first = held(&packs, &gate, source(), batch(&packs, &contents(0, 1))).await;
    let source = source();
    let mut given_up = Box::pin(stored(&packs, &source, batch(&packs, &contents(1, 1))));
    let mut stays = pin!(stored(&packs, &source, batch(&packs, &contents(2, 1))));
    assert!(poll!(&mut given_up).is_pending() && poll!(&mut stays).is_pending());
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    drop(given_up);
    gate.open(2);
    let locations = stays.await.unwrap();
    assert_lie_there(&store, &locations, &contents(2, 1)).await;
    let pack = packs_of(&locations).pop_first().unwrap();
    let listed: Vec<Listed> = store.list_packs(&source).try_collect().await.unwrap();
    let key = Key::Pack { source: source.clone(), pack };
    let size = listed.iter().find(|listed| listed.key == key).unwrap().size;
    let members = store.pack_contents(&source, pack, size).await.unwrap().members;
    assert_eq!(members, 1, "what was given up is not written");
    assert_idle(&packs).await;
}

#[tokio::test]
async fn what_exceeds_a_pack_goes_into_several_at_the_same_time() {
    // Each batch takes four members, or four entries' worth of bytes.
    let by_members = PackLimits { bytes: usize::MAX, members: 9 };
    let by_bytes = PackLimits { bytes: 9 * 540, members: usize::MAX };
    for limits in [by_members, by_bytes] {
        let (packs, store, gate) = gated(limits);
        let first = held(&packs, &gate, source(), batch(&packs, &contents(0, 1))).await;
        let source = source();
        let all: Vec<Vec<Vec<u8>>> = (1..=5).map(|n| contents(n, 4)).collect();
        let mut others =
            pin!(join_all(all.iter().map(|contents| stored(&packs, &source, batch(&packs, contents)))));
        assert!(poll!(&mut others).is_pending());
        gate.open(1);
        first.await.unwrap().unwrap();
        // Two batches, two batches and one, none of which waits for another.
        gate.have_come(4).await;
        gate.open(3);
        let mut locations = Vec::new();
        for (found, contents) in others.await.into_iter().zip(&all) {
            let found = found.unwrap();
            assert_lie_there(&store, &found, contents).await;
            assert_eq!(packs_of(&found).len(), 1, "a batch stays whole");
            locations.extend(found);
        }
        assert_eq!(packs_of(&locations).len(), 3, "{limits:?}");
        assert_idle(&packs).await;
        assert_eq!(gate.come(), 4, "{limits:?}");
    }
}

#[tokio::test]
async fn what_fills_half_a_pack_neither_waits_nor_is_waited_for() {
    let (packs, store, gate) = gated(PackLimits { bytes: usize::MAX, members: 8 });
    let first = held(&packs, &gate, source(), batch(&packs, &contents(0, 1))).await;
    let large = held(&packs, &gate, source(), batch(&packs, &contents(1, 5))).await;
    assert_eq!((packs.waiting(), gate.come()), (0, 2));
    gate.open(2);
    assert_lie_there(&store, &large.await.unwrap().unwrap(), &contents(1, 5)).await;
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn sources_share_nothing_and_wait_for_none_but_themselves() {
    let (packs, store, gate) = gated(PackLimits::default());
    let other: SourceId = "other".parse().unwrap();
    let first = held(&packs, &gate, source(), batch(&packs, &contents(0, 1))).await;
    let second = held(&packs, &gate, other.clone(), batch(&packs, &contents(1, 1))).await;
    gate.open(2);
    for (held, (id, n)) in [first, second].into_iter().zip([(source(), 0), (other, 1)]) {
        let locations = held.await.unwrap().unwrap();
        assert_lie_there(&store, &locations, &contents(n, 1)).await;
        assert!(matches!(&locations[0], Location::Pack { source, .. } if *source == id));
    }
    assert_idle(&packs).await;
}

#[tokio::test]
async fn writes_end_with_the_last_of_the_clones_and_nobody_waits_for_them() {
    let (packs, store, gate) = gated(PackLimits::default());
    let source = source();
    let writing = Arc::clone(&packs.writing);
    let first = held(&packs, &gate, source.clone(), batch(&packs, &contents(0, 1))).await;
    let (answer, answered) = oneshot::channel();
    assert!(!writing.join(&source, Waiting { batch: batch(&packs, &contents(1, 1)), answer }));
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    drop(packs);
    assert!(answered.await.is_err(), "who waits is told that nothing more comes");
    gate.open(2);
    assert!(writing.is_idle());
    let listed: Vec<Listed> = store.list_packs(&source).try_collect().await.unwrap();
    assert_eq!(listed, []);
}

#[tokio::test]
async fn each_batch_is_told_the_pack_it_is_in_with_its_length() {
    let (packs, store, gate) = gated(PackLimits { bytes: usize::MAX, members: 8 });
    gate.open(2);
    let source = source();
    let small = packs.store(&source, batch(&packs, &contents(0, 2)));
    let large = packs.store(&source, batch(&packs, &contents(1, 5)));
    for packed in [small.await.unwrap(), large.await.unwrap()] {
        let whole = packed.pack.unwrap();
        assert!(packed.members.iter().all(|member| member.shares_object_with(&whole)));
        let length = whole.span().unwrap().stored_length;
        assert_eq!(store.object_length(&whole).await.unwrap(), Some(length));
    }
}

#[tokio::test]
async fn a_batch_of_nothing_stores_nothing() {
    let (packs, _, gate) = gated(PackLimits::default());
    assert_eq!(
        packs.store(&source(), batch(&packs, &[])).await.unwrap(),
        Packed { members: vec![], pack: None }
    );
    assert_eq!(gate.come(), 0);
}

#[tokio::test]
async fn bytes_of_another_length_than_computed_are_refused_before_others_share_a_pack_with_them() {
    let (packs, ..) = gated(PackLimits::default());
    let mut batch = batch(&packs, &[]);
    let uri = "http://e.org/".parse().unwrap();
    let computed = Computed::of(b"abc");
    assert!(matches!(batch.add(member(&uri, b"ab", &computed)), Err(StoreError::Damaged { .. })));
    assert!(batch.is_empty());
}
