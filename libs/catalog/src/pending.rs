//! Pending records: work that is not done yet. Keyed by URI, so a later change of a resource overwrites an
//! earlier one.

use model::{PendingRecord, Persisted, ResourceUri};

use crate::keyspace::{Key, text_space};
use crate::scan::PendingScan;
use crate::{Batch, CatalogError, Lookups, stored};

text_space!(
    /// `p<uri>`
    Pending, Persisted::Pending, "pending resource", ResourceUri => PendingRecord,
    compact stored::write_pending, stored::read_pending
);

impl Pending {
    fn name_of(text: String) -> Result<ResourceUri, String> {
        ResourceUri::try_from(text).map_err(|error| error.to_string())
    }

    fn key(uri: &ResourceUri) -> Key<Self> {
        Key::of(uri.as_str())
    }
}

impl Lookups {
    /// The pending record of a resource.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn pending(&self, uri: &ResourceUri) -> Result<Option<PendingRecord>, CatalogError> {
        self.get(&Pending::key(uri)).await
    }

    /// The pending records of several resources, in the given order; reads are concurrent.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn pending_many(
        &self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<PendingRecord>>, CatalogError> {
        self.get_many(uris.iter().map(Pending::key)).await
    }

    /// All pending records in the order of their URIs' bytes, from the one after `after`.
    ///
    /// A scan from the beginning passes all recently deleted records (some seconds for a million, until they
    /// are compacted away). So a worker continues from its last position.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_pending(&self, after: Option<&ResourceUri>) -> Result<PendingScan, CatalogError> {
        self.scan::<Pending>(b"", after.map(Pending::key)).await
    }

    /// The pending records of resources whose URI begins with `prefix`, from the one after `after`.
    ///
    /// # Errors
    /// As [`scan_pending`](Self::scan_pending).
    pub async fn scan_pending_below(
        &self,
        prefix: &str,
        after: Option<&ResourceUri>,
    ) -> Result<PendingScan, CatalogError> {
        self.scan::<Pending>(prefix.as_bytes(), after.map(Pending::key)).await
    }

    /// Counts the pending records.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn count_pending(&self) -> Result<u64, CatalogError> {
        self.count::<Pending>().await
    }
}

impl Batch {
    /// Writes a pending record over an earlier one.
    pub fn put_pending(&mut self, uri: &ResourceUri, record: &PendingRecord) {
        self.put(Pending::key(uri), record);
    }

    /// Removes a pending record: its work is done.
    pub fn delete_pending(&mut self, uri: &ResourceUri) {
        self.delete(Pending::key(uri));
        self.pending_done += 1;
    }

    /// Counts a resource whose plan was carried out before it was written, so that there is none to remove.
    pub fn note_plan_done(&mut self) {
        self.pending_done += 1;
    }
}
