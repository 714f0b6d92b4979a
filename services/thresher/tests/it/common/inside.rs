//! The inside of a Destination: tests open its store to read and damage it.

use std::path::{Path, PathBuf};

use catalog::{Batch, Catalog, CatalogConfig};
use futures::TryStreamExt as _;
use model::{Location, ResourceRecord, ResourceUri, SourceId};
use object_store::ObjectStoreExt as _;
use store::{Key, Store, StoreOptions, StoreTarget};

use super::Destination;

/// The catalog of the Source with this entry URL. No command may run while it is open.
pub(crate) struct Inside {
    pub(crate) catalog: Catalog,
    pub(crate) store: Store,
    root: PathBuf,
}

impl Inside {
    pub(crate) async fn of(copy: &Destination, url: &str) -> Self {
        let target: StoreTarget = copy.into.parse().expect("a place");
        let store = Store::open_with(&target, copy.variables(), StoreOptions::default()).await;
        let store = store.expect("the store is there");
        let source = SourceId::of_entry(&url.parse().expect("a URL"));
        let path = Key::Catalog(source).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await;
        Self { catalog: catalog.expect("a catalog"), store, root: Path::new(&copy.into).join(".thresher") }
    }

    /// The record of a resource.
    pub(crate) async fn record(&self, uri: &str) -> ResourceRecord {
        let found = self.catalog.resource(&name(uri)).await.expect("a catalog");
        found.unwrap_or_else(|| panic!("nothing is known of {uri}"))
    }

    /// Edits the record of a resource.
    pub(crate) async fn edit(&self, uri: &str, edit: impl FnOnce(&mut ResourceRecord)) {
        let mut record = self.record(uri).await;
        edit(&mut record);
        let mut batch = Batch::new();
        batch.put_resource(&name(uri), &record);
        self.catalog.commit(batch).await.expect("a catalog");
    }

    /// The location of a resource's bytes.
    pub(crate) async fn location(&self, uri: &str) -> Location {
        self.record(uri).await.bitstream.expect("it is held").location
    }

    /// The content of an object of the store.
    pub(crate) async fn object(&self, key: &Key) -> Vec<u8> {
        let found = self.store.object_store().get(&key.path()).await.expect("an object");
        found.bytes().await.expect("an object").to_vec()
    }

    /// Overwrites an object of the store.
    pub(crate) async fn overwrite(&self, key: &Key, bytes: Vec<u8>) {
        self.store.object_store().put(&key.path(), bytes.into()).await.expect("a store to write to");
    }

    /// Removes an object of the store.
    pub(crate) async fn remove(&self, key: &Key) {
        self.store.object_store().delete(&key.path()).await.expect("a store to write to");
    }

    /// The content of each object below a folder of the store.
    pub(crate) async fn below(&self, folder: &str) -> Vec<Vec<u8>> {
        let objects = self.store.object_store();
        let listed: Vec<_> = objects.list(Some(&folder.into())).try_collect().await.expect("a store to list");
        let mut found = Vec::new();
        for meta in listed {
            let object = objects.get(&meta.location).await.expect("an object");
            found.push(object.bytes().await.expect("an object").to_vec());
        }
        found
    }

    /// The file that contains a resource's bytes.
    pub(crate) async fn file(&self, uri: &str) -> PathBuf {
        self.root.join(Key::of(&self.location(uri).await).to_string())
    }

    /// Damages the first stored byte of a resource.
    pub(crate) async fn flip(&self, uri: &str) {
        let file = self.file(uri).await;
        let mut bytes = std::fs::read(&file).expect("our own file");
        let offset = self.location(uri).await.span().map_or(0, |span| span.offset);
        bytes[usize::try_from(offset).expect("a small file")] ^= 1;
        std::fs::write(&file, bytes).expect("our own file");
    }

    pub(crate) async fn close(self) {
        self.catalog.close().await.expect("it can be closed");
    }
}

fn name(uri: &str) -> ResourceUri {
    uri.parse().expect("a resource's URI")
}
