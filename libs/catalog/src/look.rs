//! The last look at what the Source offers.

use model::LookRecord;

use crate::meta::LOOK;
use crate::{Batch, CatalogError, Lookups};

impl Lookups {
    /// What discovery saw when it last looked.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn look(&self) -> Result<Option<LookRecord>, CatalogError> {
        self.meta(LOOK).await
    }
}

impl Batch {
    /// Writes the last look over the one before.
    pub fn put_look(&mut self, record: &LookRecord) {
        self.put_meta(LOOK, record);
    }
}
