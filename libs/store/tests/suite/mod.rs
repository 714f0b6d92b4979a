//! The promises, each as a function over any store.

mod damage;
mod packages;
mod sweep;
mod uploads;
mod views;

pub(crate) use damage::*;
pub(crate) use packages::*;
pub(crate) use sweep::*;
pub(crate) use uploads::*;
pub(crate) use views::*;

use std::collections::BTreeSet;

use bytes::Bytes;
use fixity::{Computed, Hasher, Sha256};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use model::{Assurance, Bitstream, Location, Method, PackId, ResourceUri, SourceId, Span};
use object_store::{ObjectStoreExt, PutMode};
use store::{Key, Pack, PackBuilder, PackLimits, PackMember, SourceMarker, Store, StoreError};

const MIB: usize = 1024 * 1024;

fn source() -> SourceId {
    "example-0".parse().unwrap()
}

/// Bytes that differ everywhere, so that parts in the wrong order are noticed.
fn body(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(|_| next()).take(length).collect()
}

/// Puts a body through the spool.
pub(crate) async fn put(store: &Store, bytes: &[u8]) -> Location {
    let mut spool = store.spool(Hasher::new([])).await.unwrap();
    for piece in bytes.chunks(100_003) {
        spool.append(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    let spooled = spool.finish().await.unwrap();
    assert_eq!(*spooled.computed(), Computed::of(bytes));
    store.put_bitstream(spooled).await.unwrap()
}

fn bitstream(location: Location, bytes: &[u8]) -> Bitstream {
    Bitstream {
        location,
        computed: Computed::of(bytes),
        assurance: Assurance::Digest,
        media_type: None,
        encoding: None,
        validators: Default::default(),
        final_url: None,
        stored_at: Timestamp::UNIX_EPOCH,
    }
}

async fn overwrite(store: &Store, location: &Location, bytes: &[u8]) {
    let path = Key::of(location).path();
    store.object_store().put(&path, bytes.to_vec().into()).await.unwrap();
}

fn pack(bodies: &[Vec<u8>]) -> Pack {
    let mut builder = PackBuilder::new(source(), Timestamp::UNIX_EPOCH, PackLimits::default()).unwrap();
    for (n, bytes) in bodies.iter().enumerate() {
        let uri: ResourceUri = format!("http://h/{n}").parse().unwrap();
        let computed = Computed::of(bytes);
        let member =
            PackMember { uri: &uri, bytes, computed: &computed, media_type: None, last_modified: None };
        builder.add(member).unwrap();
    }
    builder.finish().unwrap()
}

async fn keys(store: &Store) -> BTreeSet<String> {
    let listed = store.object_store().list(None).map_ok(|meta| meta.location.to_string());
    listed.try_filter(|key| std::future::ready(!key.starts_with("probe/"))).try_collect().await.unwrap()
}

pub(crate) async fn a_spooled_body_becomes_one_object_under_its_digest(store: &Store) {
    let bytes = body(MIB + 17);
    let location = put(store, &bytes).await;
    assert_eq!(location, Location::Object { sha256: Sha256::of(&bytes) });
    let stored = bitstream(location.clone(), &bytes);
    let read: Vec<Bytes> = store.open_verified(&stored).await.unwrap().try_collect().await.unwrap();
    assert_eq!(read.concat(), bytes);
    assert_eq!(store.read_verified(&stored).await.unwrap(), bytes);
    assert_eq!(keys(store).await, [Key::of(&location).to_string()].into());
    assert_eq!(*store.trouble().borrow(), None);
}

pub(crate) async fn a_body_of_several_parts_arrives_whole(store: &Store) {
    let bytes = body(20 * MIB + 1);
    let location = put(store, &bytes).await;
    let read: Vec<Bytes> =
        store.read(&location, bytes.len() as u64).await.unwrap().try_collect().await.unwrap();
    assert!(read.concat() == bytes);
}

pub(crate) async fn an_empty_body_is_an_object_too(store: &Store) {
    let location = put(store, b"").await;
    let stored = bitstream(location, b"");
    assert_eq!(store.read_verified(&stored).await.unwrap(), "");
    let read: Vec<Bytes> = store.read(&stored.location, 0).await.unwrap().try_collect().await.unwrap();
    assert_eq!(read.concat(), b"");
}

pub(crate) async fn the_same_content_is_one_object(store: &Store) {
    let one = put(store, b"same").await;
    assert_eq!(put(store, b"same").await, one);
    let bytes = Bytes::from_static(b"same");
    assert_eq!(
        store.put_bitstream(store::NewBitstream::Memory(Sha256::of(&bytes), bytes.clone())).await.unwrap(),
        one
    );
    assert_eq!(keys(store).await.len(), 1);
    assert_eq!(store.read_verified(&bitstream(one, &bytes)).await.unwrap(), bytes);
}

pub(crate) async fn a_small_body_is_stored_without_a_spool(store: &Store) {
    let bytes = Bytes::from_static(b"small");
    let location =
        store.put_bitstream(store::NewBitstream::Memory(Sha256::of(&bytes), bytes.clone())).await.unwrap();
    assert_eq!(store.read_verified(&bitstream(location, &bytes)).await.unwrap(), bytes);
}

pub(crate) async fn members_of_a_pack_are_read_in_every_way(store: &Store) {
    let bodies: Vec<_> = [5, 0, 3_000, 1].map(body).to_vec();
    let locations = store.put_pack(&pack(&bodies)).await.unwrap();
    let large = put(store, &body(9)).await;
    let mut stored: Vec<_> =
        locations.into_iter().zip(&bodies).map(|(location, bytes)| bitstream(location, bytes)).collect();
    for (stored, bytes) in stored.iter().zip(&bodies) {
        assert_eq!(store.read_verified(stored).await.unwrap(), *bytes);
        let length = bytes.len() as u64;
        let read: Vec<Bytes> =
            store.read(&stored.location, length).await.unwrap().try_collect().await.unwrap();
        assert_eq!(read.concat(), *bytes);
    }
    stored.push(bitstream(large, &body(9)));
    let batch = store.read_batch(&stored.iter().collect::<Vec<_>>()).await;
    let batch: Vec<_> = batch.into_iter().map(Result::unwrap).collect();
    assert_eq!(batch[..4], bodies);
    assert_eq!(batch[4], body(9));
}

pub(crate) async fn a_pack_can_be_put_again_and_is_never_overwritten(store: &Store) {
    let bodies = [body(100)];
    let pack = pack(&bodies);
    let locations = store.put_pack(&pack).await.unwrap();
    assert_eq!(store.put_pack(&pack).await.unwrap(), locations);
    let other =
        store.object_store().put_opts(&pack.key().path(), "other".into(), PutMode::Create.into()).await;
    assert!(matches!(other, Err(object_store::Error::AlreadyExists { .. })), "{other:?}");
    assert_eq!(store.read_verified(&bitstream(locations[0].clone(), &bodies[0])).await.unwrap(), bodies[0]);
    assert_eq!(*store.trouble().borrow(), None);
}

pub(crate) async fn what_is_missing_is_not_found(store: &Store) {
    let location = Location::Object { sha256: Sha256::of(b"never stored") };
    assert!(!store.exists(&location, 12).await.unwrap());
    let error = store.read(&location, 12).await.err().unwrap();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    let location = member(PackId::fresh(), 0, 10);
    assert!(!store.exists(&location, 10).await.unwrap());
    let error = store.read(&location, 10).await.err().unwrap();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(*store.trouble().borrow(), None);
}

pub(crate) async fn a_range_is_read_from_within_a_bitstream(store: &Store) {
    let bytes = body(1_000);
    let object = put(store, &bytes).await;
    let packed = store.put_pack(&pack(std::slice::from_ref(&bytes))).await.unwrap().remove(0);
    for location in [object, packed] {
        assert_eq!(store.read_range(&location, 10..20).await.unwrap(), bytes[10..20]);
        assert_eq!(store.read_range(&location, 990..1_000).await.unwrap(), bytes[990..]);
        assert_eq!(store.read_range(&location, 5..5).await.unwrap(), "");
        for beyond in [990..1_001, 1_000..1_001, 2_000..2_001] {
            let error = store.read_range(&location, beyond.clone()).await.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{beyond:?}: {error}");
        }
    }
}

pub(crate) async fn a_damaged_small_bitstream_gives_no_byte(store: &Store) {
    let stored = bitstream(put(store, b"truth").await, b"truth");
    overwrite(store, &stored.location, b"TRUTH").await;
    let error = store.open_verified(&stored).await.err().unwrap();
    let StoreError::Damaged { key, expected, computed } = &error else { panic!("{error}") };
    assert_eq!(*key, Key::of(&stored.location).to_string());
    assert!(expected.contains(&Sha256::of(b"truth").to_string()), "{expected}");
    assert!(computed.contains(&Sha256::of(b"TRUTH").to_string()), "{computed}");
    overwrite(store, &stored.location, b"truth and more").await;
    assert!(matches!(store.read_verified(&stored).await, Err(StoreError::Damaged { .. })));
    overwrite(store, &stored.location, b"").await;
    assert!(matches!(store.read_verified(&stored).await, Err(StoreError::Damaged { .. })));
}

pub(crate) async fn a_damaged_large_bitstream_is_never_whole(store: &Store) {
    let mut bytes = body(3 * MIB);
    let stored = bitstream(put(store, &bytes).await, &bytes);
    bytes[2 * MIB] ^= 1;
    overwrite(store, &stored.location, &bytes).await;
    for mut pieces in [
        store.open_verified(&stored).await.unwrap(),
        store.read(&stored.location, bytes.len() as u64).await.unwrap(),
    ] {
        let mut passed = 0;
        let error = loop {
            match pieces.next().await.unwrap() {
                Ok(piece) => passed += piece.len(),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(passed < bytes.len());
    }
}

pub(crate) async fn a_pack_cut_short_is_damaged(store: &Store) {
    let bodies = [body(50), body(5_000)];
    let pack = pack(&bodies);
    let locations = store.put_pack(&pack).await.unwrap();
    overwrite(store, &locations[0], &pack.body()[..1_000]).await;
    let stored: Vec<_> = locations.into_iter().zip(&bodies).map(|(l, bytes)| bitstream(l, bytes)).collect();
    assert!(store.exists(&stored[0].location, 50).await.unwrap());
    assert!(!store.exists(&stored[1].location, 5_000).await.unwrap());
    assert!(matches!(store.read_verified(&stored[1]).await, Err(StoreError::Damaged { .. })));
    let batch = store.read_batch(&[&stored[0], &stored[1]]).await;
    assert_eq!(*batch[0].as_ref().unwrap(), bodies[0]);
    assert!(matches!(batch[1], Err(StoreError::Damaged { .. })), "{batch:?}");
    overwrite(store, &stored[0].location, b"").await;
    assert!(matches!(store.read_verified(&stored[1]).await, Err(StoreError::Damaged { .. })));
}

pub(crate) async fn existence_is_judged_by_length(store: &Store) {
    let location = put(store, b"four").await;
    assert!(store.exists(&location, 4).await.unwrap());
    assert!(!store.exists(&location, 5).await.unwrap());
    let packed = store.put_pack(&pack(&[body(10)])).await.unwrap().remove(0);
    assert!(store.exists(&packed, 10).await.unwrap());
    assert!(!store.exists(&packed, 11).await.unwrap());
    let Location::Pack { pack, .. } = packed else { panic!() };
    assert!(!store.exists(&member(pack, u64::MAX, 10), 10).await.unwrap());
    assert!(!store.exists(&member(pack, 1 << 30, 10), 10).await.unwrap());
}

pub(crate) async fn sources_are_noted_and_listed(store: &Store) {
    assert_eq!(store.sources().await.unwrap(), []);
    let note = |id: &str, url: &str| SourceMarker::new(id.parse().unwrap(), url);
    let a = note("a-1", "http://a/");
    let b = note("b-2", "http://b/");
    for note in [&b, &a, &a] {
        store.note_source(note).await.unwrap();
    }
    assert_eq!(store.sources().await.unwrap(), [a, b]);
}

/// The catalog uses more of the object store than we do.
pub(crate) async fn the_object_store_is_complete(store: &Store) {
    let objects = store.object_store();
    let path = |name: &str| object_store::path::Path::from(format!("catalogs/x/{name}"));
    objects.put(&path("a"), "one".into()).await.unwrap();
    objects.copy(&path("a"), &path("b")).await.unwrap();
    objects.rename(&path("b"), &path("c")).await.unwrap();
    let mut upload = objects.put_multipart(&path("d")).await.unwrap();
    upload.put_part("part".into()).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(objects.get_ranges(&path("d"), &[0..2, 2..4]).await.unwrap().concat(), b"part");
    // It ends within the one, and before the other.
    for beyond in [[0..2, 2..9], [0..2, 7..9]] {
        assert!(objects.get_ranges(&path("d"), &beyond).await.is_err(), "{beyond:?}");
    }
    let after: BTreeSet<String> = objects
        .list_with_offset(Some(&path("")), &path("a"))
        .map_ok(|meta| meta.location.to_string())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(after, ["c", "d"].map(|name| path(name).to_string()).into());
    let listed =
        objects.list_with_delimiter(Some(&object_store::path::Path::from("catalogs"))).await.unwrap();
    assert_eq!(listed.common_prefixes, [object_store::path::Path::from("catalogs/x")]);
    objects.delete(&path("a")).await.unwrap();
    assert!(matches!(objects.head(&path("a")).await, Err(object_store::Error::NotFound { .. })));
}

fn member(pack: PackId, offset: u64, stored_length: u64) -> Location {
    Location::Pack { source: source(), pack, offset, stored_length, method: Method::Stored }
}
