//! Landing pages, with their links and the progress of each. Keyed by URI.

use model::{PageRecord, Persisted, ResourceUri};

use crate::keyspace::{Key, text_space};
use crate::scan::PageScan;
use crate::{Batch, CatalogError, Lookups};

text_space!(
    /// `l<uri>`
    LandingPages, Persisted::LandingPages, "landing page", ResourceUri => PageRecord
);

impl LandingPages {
    fn name_of(text: String) -> Result<ResourceUri, String> {
        ResourceUri::try_from(text).map_err(|error| format!("its key is no URI: {error}"))
    }
}

impl Lookups {
    /// The records of these pages, in the same order.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn pages_many(&self, uris: &[ResourceUri]) -> Result<Vec<Option<PageRecord>>, CatalogError> {
        self.get_many(uris.iter().map(|uri| Key::<LandingPages>::of(uri.as_str()))).await
    }

    /// The record of a page.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn page(&self, uri: &ResourceUri) -> Result<Option<PageRecord>, CatalogError> {
        self.get(&Key::<LandingPages>::of(uri.as_str())).await
    }

    /// Pages in the order of their URIs' bytes: those whose URI begins with `prefix`, behind `after`.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_pages(
        &self,
        prefix: &str,
        after: Option<&ResourceUri>,
    ) -> Result<PageScan, CatalogError> {
        let after = after.map(|uri| Key::<LandingPages>::of(uri.as_str()));
        self.scan::<LandingPages>(prefix.as_bytes(), after).await
    }
}

impl Batch {
    /// Writes a page over an earlier record.
    pub fn put_page(&mut self, uri: &ResourceUri, record: &PageRecord) {
        self.put(Key::<LandingPages>::of(uri.as_str()), record);
    }

    /// Deletes the record of a page.
    pub fn delete_page(&mut self, uri: &ResourceUri) {
        self.delete(Key::<LandingPages>::of(uri.as_str()));
    }
}
