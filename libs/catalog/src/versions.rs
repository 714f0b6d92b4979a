//! Earlier versions of resources, where the operator keeps them. Keyed by the resource's URI.

use model::{Persisted, ResourceUri, Versions};

use crate::keyspace::{Key, text_space};
use crate::meta::HISTORY;
use crate::scan::Scan;
use crate::{Batch, CatalogError, Lookups, stored};

/// Versions with the URIs of their resources.
pub type VersionScan = Scan<(ResourceUri, Versions)>;

text_space!(
    /// `v<uri>`
    History, Persisted::KeptVersions, "history of a resource", ResourceUri => Versions,
    compact stored::write_versions, stored::read_versions
);

impl History {
    fn name_of(text: String) -> Result<ResourceUri, String> {
        ResourceUri::try_from(text).map_err(|error| error.to_string())
    }

    fn key(uri: &ResourceUri) -> Key<Self> {
        Key::of(uri.as_str())
    }
}

impl Lookups {
    /// The kept versions of a resource.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn versions(&self, uri: &ResourceUri) -> Result<Option<Versions>, CatalogError> {
        self.get(&History::key(uri)).await
    }

    /// The kept versions of each of these resources, in their order.
    ///
    /// # Errors
    /// As [`versions`](Self::versions).
    pub async fn versions_many(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Versions>>, CatalogError> {
        self.get_many(uris.iter().map(History::key)).await
    }

    /// All resources with kept versions whose URI begins with `prefix`, in the order of their URIs' bytes.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_versions(&self, prefix: Option<&str>) -> Result<VersionScan, CatalogError> {
        self.scan::<History>(prefix.unwrap_or_default().as_bytes(), None).await
    }

    /// How many versions of each resource are kept beside the stored one. None if none ever were; then there
    /// are no kept versions.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn history(&self) -> Result<Option<u32>, CatalogError> {
        self.meta(HISTORY).await
    }
}

impl Batch {
    /// Writes the kept versions of a resource over an earlier record; an empty list removes it.
    pub fn put_versions(&mut self, uri: &ResourceUri, versions: &Versions) {
        if versions == &Versions::default() {
            self.delete(History::key(uri));
        } else {
            self.put(History::key(uri), versions);
        }
    }

    /// Records how many versions of each resource to keep beside the stored one.
    pub fn put_history(&mut self, versions: u32) {
        self.put_meta(HISTORY, &versions);
    }
}
