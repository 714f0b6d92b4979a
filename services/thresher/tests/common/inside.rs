//! The inside of a Destination in a directory: what is held, opened by hand, to be looked at and harmed.

use std::path::{Path, PathBuf};

use catalog::{Batch, Catalog, CatalogConfig};
use model::{Location, ResourceRecord, ResourceUri, SourceId};
use store::{Key, Store, StoreOptions, StoreTarget};

use super::Destination;

/// The catalog of the Source that was entered at a URL. No command may run as long as it is open.
pub(crate) struct Inside {
    pub(crate) catalog: Catalog,
    root: PathBuf,
}

impl Inside {
    pub(crate) async fn of(copy: &Destination, url: &str) -> Self {
        let target: StoreTarget = copy.into.parse().expect("a place");
        let store = Store::open(&target, StoreOptions::default()).await.expect("the store is there");
        let source = SourceId::of_entry(&url.parse().expect("a URL"));
        let path = Key::Catalog(source).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await;
        Self { catalog: catalog.expect("a catalog"), root: Path::new(&copy.into).join(".thresher") }
    }

    /// What is known of a resource.
    pub(crate) async fn record(&self, uri: &str) -> ResourceRecord {
        let found = self.catalog.resource(&name(uri)).await.expect("a catalog");
        found.unwrap_or_else(|| panic!("nothing is known of {uri}"))
    }

    /// Edits what is known of a resource.
    pub(crate) async fn edit(&self, uri: &str, edit: impl FnOnce(&mut ResourceRecord)) {
        let mut record = self.record(uri).await;
        edit(&mut record);
        let mut batch = Batch::new();
        batch.put_resource(&name(uri), &record);
        self.catalog.commit(batch).await.expect("a catalog");
    }

    /// Where a resource's bytes lie.
    pub(crate) async fn location(&self, uri: &str) -> Location {
        self.record(uri).await.bitstream.expect("it is held").location
    }

    /// The file in which a resource's bytes lie.
    pub(crate) async fn file(&self, uri: &str) -> PathBuf {
        self.root.join(Key::of(&self.location(uri).await).to_string())
    }

    /// Damages the first byte that is stored of a resource.
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
