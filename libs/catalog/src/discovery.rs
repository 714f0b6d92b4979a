//! The result of discovery. One record: it is read and written as a whole.

use model::DiscoveryRecord;

use crate::{Batch, CatalogError, Lookups};

const DISCOVERY: &str = "discovery";

impl Lookups {
    /// The result of the last discovery.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn discovery(&self) -> Result<Option<DiscoveryRecord>, CatalogError> {
        self.meta(DISCOVERY).await
    }
}

impl Batch {
    /// Writes the result of discovery over the earlier one.
    pub fn put_discovery(&mut self, record: &DiscoveryRecord) {
        self.put_meta(DISCOVERY, record);
    }
}
