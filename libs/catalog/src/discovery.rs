//! What finding out what the Source offers has given. One record: it is read and written as a whole.

use model::DiscoveryRecord;

use crate::{Batch, CatalogError, Lookups};

const DISCOVERY: &str = "discovery";

impl Lookups {
    /// What was found when the Source was last asked what it offers.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn discovery(&self) -> Result<Option<DiscoveryRecord>, CatalogError> {
        self.meta(DISCOVERY).await
    }
}

impl Batch {
    /// Writes what was found over what was there.
    pub fn put_discovery(&mut self, record: &DiscoveryRecord) {
        self.put_meta(DISCOVERY, record);
    }
}
