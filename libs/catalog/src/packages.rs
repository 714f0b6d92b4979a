//! Packages that dumps list, and the progress of each. Keyed by URI.

use model::{PackageRecord, Persisted};

use crate::keyspace::{Key, text_space};
use crate::scan::PackageScan;
use crate::{Batch, CatalogError, Lookups};

text_space!(
    /// `k<uri>`
    Packages, Persisted::PackageRecords, "package", String => PackageRecord
);

impl Packages {
    fn name_of(text: String) -> Result<String, String> {
        Ok(text)
    }
}

impl Lookups {
    /// The record of a package.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn package(&self, uri: &str) -> Result<Option<PackageRecord>, CatalogError> {
        self.get(&Key::<Packages>::of(uri)).await
    }

    /// All packages in the order of their URIs' bytes.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_packages(&self) -> Result<PackageScan, CatalogError> {
        self.scan::<Packages>(b"", None).await
    }
}

impl Batch {
    /// Writes a package over an earlier record.
    pub fn put_package(&mut self, uri: &str, record: &PackageRecord) {
        self.put(Key::<Packages>::of(uri), record);
    }

    /// Removes a package.
    pub fn delete_package(&mut self, uri: &str) {
        self.delete(Key::<Packages>::of(uri));
    }
}
