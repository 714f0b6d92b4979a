//! A bucket that several processes may write: one that was suspended while another wrote does no harm.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStore;
use publish::{Place, Publication, PublishError};
use testkit::gated::GatedObjects;

use crate::killed::Failing;
use crate::world::{World, small};

#[tokio::test]
async fn a_publisher_of_several_that_another_one_has_overtaken_fails_and_the_state_is_that_of_the_other() {
    overtaken(Place::shared).await;
}

#[tokio::test]
async fn so_does_one_that_was_to_be_the_only_one() {
    overtaken(Place::of_one_writer).await;
}

async fn overtaken(of: fn(Place) -> Place) {
    let (objects, gate) = GatedObjects::closed();
    let objects: Arc<dyn ObjectStore> = objects;
    let place = || of(Place::bucket("memory", Arc::clone(&objects)));
    let mut world = World::at(place(), Arc::clone(&objects), small()).await;
    for number in 0..8 {
        world.put(&format!("{number:03}"), &format!("body {number}")).await;
    }
    {
        let mut suspended = pin!(world.try_publish());
        tokio::select! {
            _ = &mut suspended => panic!("its first write waits at the gate"),
            () = gate.have_come(1) => {}
        }
        gate.open(1_000);
        let other = Publication { place: place(), ..world.publication.clone() };
        let records = publish::CatalogRecords::new(&world.catalog, &world.store);
        other.run(&records, world.now(), &mut |_| {}).await.unwrap();
        assert!(matches!(suspended.await, Err(PublishError::Busy(_))), "it was overtaken");
    }
    // It reads what the other has written, and continues that.
    let before = world.all_files().await;
    assert_eq!(world.publish().await.documents, 0);
    assert_eq!(world.all_files().await, before);
    world.put("new", "body").await;
    assert_eq!(world.publish().await.changes, 1);
}

#[tokio::test]
async fn a_bucket_that_ignores_conditions_is_known_as_one() {
    let objects = Failing::new();
    let place = Place::bucket("failing", Arc::clone(&objects) as _);
    for _ in 0..2 {
        assert!(place.has_conditional_puts().await);
    }
    objects.ignores_conditions.store(true, Ordering::Relaxed);
    assert!(!place.has_conditional_puts().await);
    let local = tempfile::tempdir().unwrap();
    let local = Place::directory(local.path(), objects).unwrap().of_one_writer();
    assert!(!local.is_guarded(), "it has a lock");
}
