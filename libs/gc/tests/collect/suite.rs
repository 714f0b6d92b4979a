//! What is removed and what stays.

use std::collections::BTreeSet;

use fixity::Computed;
use gc::GcError;
use model::{
    Action, Contents, Evidence, Location, ManifestHeader, PackageRecord, PackageState, PendingRecord,
    ProblemReason, ProblemRecord, RunId, Seq, SliceSet, Subject,
};
use object_store::ObjectStoreExt as _;
use resourcesync::{Capability, Metadata};
use store::{Key, PackageHead, Store};

use crate::world::{Held, WEEK, World, listing, stored, uri};

/// A package record in this state.
pub(crate) fn package(seq: u64, state: PackageState) -> PackageRecord {
    PackageRecord {
        seq: Seq::new(seq),
        run: RunId::fresh(),
        document: listing().document.as_ref().to_owned(),
        set: listing().set,
        capability: Capability::ResourceDump,
        declaration: Default::default(),
        metadata: Metadata::default(),
        selection: None,
        position: 0,
        contents: None,
        manifest_copy: None,
        state,
        settled: None,
        attempts: 0,
        next_attempt_at: None,
        job: None,
        kept: false,
        named: 1,
    }
}

pub(crate) fn problem(candidate: &Location, content: &str) -> ProblemRecord {
    ProblemRecord {
        reason: ProblemReason::ChangedAgain,
        message: String::new(),
        first_seen: jiff::Timestamp::now(),
        last_seen: jiff::Timestamp::now(),
        attempts: 1,
        retry: true,
        next_attempt_at: None,
        ignored: None,
        evidence: Evidence { candidate: Some(Box::new(stored(candidate, content))), ..Evidence::default() },
        declaration: None,
        listing: None,
        repair: false,
    }
}

/// Fills a store with everything that a record can point to, and returns the keys of it.
async fn fill_with_needed(world: &World, held: &Held) -> BTreeSet<String> {
    let source = &held.source;
    let object = world.object("held as an object").await;
    held.holds("object", &object, "held as an object").await;
    let packed = world.pack(source, &["held in a pack", "dead in a pack"]).await;
    held.holds("packed", &packed[0], "held in a pack").await;
    let (_, member) = world.package(source, "a member of a package").await;
    held.holds("member", &member, "a member of a package").await;
    let tombstone = world.object("deleted lately").await;
    let lately = jiff::Timestamp::now() + crate::world::MONTH - WEEK / 2;
    held.deleted("deleted", &tombstone, "deleted lately", lately).await;
    let waiting = world.pack(source, &["a candidate of a problem"]).await;
    let queued = world.object("a candidate that is pending").await;
    let (_, received) = world.package(source, "received").await;
    let (_, opened) = world.package(source, "opened").await;
    let (index, index_at) = world.package(source, "the index of what is opened").await;
    let pending = PendingRecord {
        seq: Seq::new(1),
        action: Action::Fetch { origin: "http://e.org".parse().unwrap() },
        declaration: Default::default(),
        listing: listing(),
        attempts: 0,
        next_attempt_at: None,
        candidate: Some(Box::new(stored(&queued, "a candidate that is pending"))),
        repair: false,
        mirror: None,
        patch: None,
        account: Default::default(),
    };
    let contents = Contents {
        manifest: ManifestHeader::default(),
        entries: 1,
        overtaken: 0,
        keeps_earlier: false,
        slices: 1,
        index: Some(index),
        unlisted: 0,
        unlisted_names: Vec::new(),
    };
    let opened_record =
        PackageState::Opened { stored: stored(&opened, "opened"), contents, done: SliceSet::default() };
    let of_waiting = problem(&waiting[0], "a candidate of a problem");
    held.commit(|batch| {
        batch.put_problem(&Subject::Resource(uri("waiting").to_string()), &of_waiting);
        batch.put_pending(&uri("queued"), &pending);
        let stored = PackageState::Stored { stored: stored(&received, "received") };
        batch.put_package("http://e.org/1.zip", &package(1, stored));
        batch.put_package("http://e.org/2.zip", &package(2, opened_record));
    })
    .await;
    let locations = [
        object,
        packed[0].clone(),
        member,
        tombstone,
        waiting[0].clone(),
        queued,
        received,
        opened,
        index_at,
    ];
    let keys = locations.iter().map(|location| Key::of(location).to_string());
    keys.chain([Key::Source(held.source.clone()).to_string()]).collect()
}

/// Fills a store with garbage: one of each kind.
async fn fill_with_garbage(world: &World, held: &Held) {
    world.object("an orphan").await;
    world.pack(&held.source, &["an orphan in a pack"]).await;
    let (_, done) = world.package(&held.source, "settled, and of no use any more").await;
    let mut record = package(3, PackageState::Done);
    record.settled = None;
    held.commit(|batch| batch.put_package("http://e.org/3.zip", &record)).await;
    assert!(world.has(&done).await);
}

pub(crate) async fn what_no_record_points_to_goes_and_all_else_stays(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    let needed = fill_with_needed(&world, &held).await;
    fill_with_garbage(&world, &held).await;
    held.close().await;
    let before = world.keys().await;
    assert_eq!(before.len(), needed.len() + 3);
    let report = world.collect().await;
    assert_eq!(world.keys().await, needed);
    let removed = [report.bitstreams, report.packs, report.packages].map(|kind| kind.removed.objects);
    assert_eq!(removed, [1, 1, 1], "{report:?}");
    assert_eq!(report.bitstreams.removed.bytes, "an orphan".len() as u64);
    assert_eq!(report.removed().objects, 3);
    let kept = [report.bitstreams, report.packs, report.packages].map(|kind| kind.in_use.objects);
    assert_eq!(kept, [3, 2, 4], "{report:?}");
    let again = world.collect().await;
    assert_eq!(again.removed().objects, 0, "{again:?}");
    assert_eq!(world.keys().await, needed);
}

pub(crate) async fn a_dry_run_counts_what_would_go_and_changes_nothing(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    fill_with_needed(&world, &held).await;
    fill_with_garbage(&world, &held).await;
    let long_ago = world.object("deleted long ago").await;
    held.deleted("long ago", &long_ago, "deleted long ago", jiff::Timestamp::now()).await;
    held.close().await;
    let before = world.keys().await;
    let dry = world.try_collect(true, true, WEEK).await.unwrap();
    assert_eq!(world.keys().await, before);
    assert!(world.record(&crate::world::id("one"), "long ago").await.deleted.is_some());
    let mut real = world.collect().await;
    assert_eq!((dry.dry_run, real.dry_run), (true, false));
    real.dry_run = true;
    assert_eq!(dry, real);
    assert_eq!(dry.removed().objects, 4);
    assert!(!world.has(&long_ago).await);
}

pub(crate) async fn a_bitstream_of_two_sources_goes_when_neither_points_to_it(store: Store) {
    let world = World::new(store);
    let one = world.source("one").await;
    let two = world.source("two").await;
    let shared = world.object("shared").await;
    two.holds("shared", &shared, "shared").await;
    one.close().await;
    assert_eq!(world.collect().await.bitstreams.removed.objects, 0);
    assert!(world.has(&shared).await);
    two.let_go("shared", &shared, "shared").await;
    two.close().await;
    assert_eq!(world.collect().await.bitstreams.removed.objects, 1);
    assert!(!world.has(&shared).await);
}

pub(crate) async fn with_an_unreadable_catalog_nothing_goes(store: Store) {
    let world = World::new(store);
    let one = world.source("one").await;
    let two = world.source("two").await;
    fill_with_garbage(&world, &one).await;
    one.close().await;
    two.close().await;
    // Without its manifests, the catalog cannot be read.
    let manifests = object_store::path::Path::from("catalogs/two/manifest");
    let objects = world.store.object_store();
    let listed: Vec<_> = futures::TryStreamExt::try_collect(objects.list(Some(&manifests))).await.unwrap();
    for meta in &listed {
        objects.put(&meta.location, "gibberish".into()).await.unwrap();
    }
    let before = world.keys().await;
    let error = world.try_collect(false, true, WEEK).await.unwrap_err();
    assert!(
        matches!(&error, GcError::Unreadable { source_id, .. } if source_id.as_str() == "two"),
        "{error:?}"
    );
    assert!(error.to_string().contains("Nothing was removed"), "{error}");
    for meta in &listed {
        objects.delete(&meta.location).await.unwrap();
    }
    // There is no catalog any more. Only the marker says that there was one.
    let error = world.try_collect(false, true, WEEK).await.unwrap_err();
    assert!(matches!(error, GcError::Unreadable { .. }), "{error:?}");
    assert_eq!(world.keys().await, before);
}

pub(crate) async fn without_any_catalog_nothing_goes(store: Store) {
    let world = World::new(store);
    let orphan = world.object("an orphan").await;
    let error = world.try_collect(false, true, WEEK).await.unwrap_err();
    assert!(matches!(error, GcError::NoCatalog { .. }), "{error:?}");
    assert!(world.has(&orphan).await);
}

pub(crate) async fn uploads_that_nobody_goes_on_with_are_forgotten(store: Store) {
    let world = World::new(store);
    let held = world.source("one").await;
    // Slightly more than eight MiB: a part, and a tail behind it.
    let body = vec![7_u8; 8 * 1024 * 1024 + 10];
    // No record says anything about the last one: it is of a resource whose plan is settled.
    for seq in [6, 7, 8, 9, 10] {
        let upload = world.store.package_upload(&held.source, Seq::new(seq), &[], 1 << 30).await;
        let mut upload = upload.unwrap();
        upload.begin(PackageHead::default()).await.unwrap();
        upload.append(body.clone().into()).await.unwrap();
        match seq {
            // Complete, but its outcome was not settled.
            9 => drop(upload.finish().await.unwrap()),
            _ => drop(upload.keep().await.unwrap()),
        }
    }
    held.commit(|batch| {
        let given_up = PackageRecord { kept: true, ..package(6, PackageState::Failed) };
        batch.put_package("http://e.org/6.zip", &given_up);
        batch.put_package("http://e.org/7.zip", &package(7, PackageState::Failed));
        batch.put_package("http://e.org/8.zip", &package(8, PackageState::Wanted));
        batch.put_package("http://e.org/9.zip", &package(9, PackageState::Wanted));
    })
    .await;
    held.close().await;
    let report = world.collect().await;
    assert_eq!((report.uploads.removed.objects, report.uploads.in_use.objects), (4, 5), "{report:?}");
    assert_eq!((report.packages.removed.objects, report.packages.in_use.objects), (0, 1), "{report:?}");
    // The upload that is needed resumes where it stopped, and the complete one is found.
    let one = crate::world::id("one");
    let upload = |seq| world.store.package_upload(&one, Seq::new(seq), &[], 1 << 30);
    for seq in [6, 8] {
        assert_eq!(upload(seq).await.unwrap().received(), body.len() as u64, "{seq}");
    }
    let whole = upload(9).await.unwrap().finish().await.unwrap();
    assert_eq!(whole.computed, Computed::of(&body));
    assert!(world.store.exists(&whole.location, body.len() as u64).await.unwrap());
    for seq in [7, 10] {
        assert_eq!(upload(seq).await.unwrap().received(), 0, "{seq}");
    }
}
