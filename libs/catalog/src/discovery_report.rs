//! The last discovery report.

use model::DiscoveryReport;

use crate::meta::LOOK;
use crate::{Batch, CatalogError, Lookups};

impl Lookups {
    /// The report of the last discovery.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn look(&self) -> Result<Option<DiscoveryReport>, CatalogError> {
        self.meta(LOOK).await
    }
}

impl Batch {
    /// Writes the discovery report over the earlier one.
    pub fn put_look(&mut self, record: &DiscoveryReport) {
        self.put_meta(LOOK, record);
    }
}
