//! The conformance suite on each kind of store.

use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use testkit::servers::S3Fixture;

use crate::conformance;

#[tokio::test]
async fn a_store_in_memory_conforms() {
    conformance::all(Arc::new(InMemory::new())).await;
}

#[tokio::test]
async fn a_local_directory_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conformance::all(Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap())).await;
}

#[tokio::test]
async fn a_real_s3_server_conforms() {
    let fixture = S3Fixture::get().await;
    let store: Arc<dyn ObjectStore> = Arc::new(fixture.store().unwrap());
    // The bucket is created with its first object.
    store.put(&"bucket".into(), "is here".into()).await.unwrap();
    conformance::all(store).await;
}
