//! Resources: the record of each, tombstones included. Keyed by URI.

use model::{Holding, Persisted, ResourceRecord, ResourceUri};

use crate::keyspace::{Key, KeySpace as _, text_space};
use crate::scan::ResourceScan;
use crate::{Batch, CatalogError, Lookups, stored};

text_space!(
    /// `r<uri>`
    Resources, Persisted::Resources, "resource", ResourceUri => ResourceRecord,
    compact stored::write_resource, stored::read_resource
);

impl Resources {
    /// The stored version alone: the rest of a record is skipped.
    pub(crate) fn read_holding(value: &[u8]) -> Result<Holding, String> {
        stored::read_either(value, stored::read_holding)
    }

    fn name_of(text: String) -> Result<ResourceUri, String> {
        ResourceUri::try_from(text).map_err(|error| error.to_string())
    }

    fn key(uri: &ResourceUri) -> Key<Self> {
        Key::of(uri.as_str())
    }

    /// The URI in a key, if it is one of a resource.
    fn uri_of(key: &[u8]) -> Option<&str> {
        std::str::from_utf8(key.strip_prefix(&[Self::PREFIX])?).ok()
    }
}

impl Lookups {
    /// The record of a resource.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn resource(&self, uri: &ResourceUri) -> Result<Option<ResourceRecord>, CatalogError> {
        self.get(&Resources::key(uri)).await
    }

    /// The records of several resources, in the given order; reads are concurrent.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn resources_many(
        &self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<ResourceRecord>>, CatalogError> {
        self.get_many(uris.iter().map(Resources::key)).await
    }

    /// Whether there is no resource, tombstones included.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn holds_no_resource(&self) -> Result<bool, CatalogError> {
        self.is_empty::<Resources>().await
    }

    /// All resources whose URI begins with `prefix`, in the order of their URIs' bytes, from the one after `after`.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_resources(
        &self,
        prefix: Option<&str>,
        after: Option<&ResourceUri>,
    ) -> Result<ResourceScan, CatalogError> {
        self.scan::<Resources>(prefix.unwrap_or_default().as_bytes(), after.map(Resources::key)).await
    }
}

impl Batch {
    /// The URIs of the resources that it writes.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.written().filter_map(Resources::uri_of)
    }

    /// Writes a resource over an earlier record.
    pub fn put_resource(&mut self, uri: &ResourceUri, record: &ResourceRecord) {
        self.put(Resources::key(uri), record);
    }
}
