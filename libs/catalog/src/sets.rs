//! Sets of resources, and the progress of each. Keyed by the URI that identifies the set.

use futures::TryStreamExt;
use model::{Persisted, SetId, SetRecord};

use crate::keyspace::{Key, text_space};
use crate::{Batch, CatalogError, Lookups};

text_space!(
    /// `s<set>`
    Sets, Persisted::Sets, "set", SetId => SetRecord
);

impl Sets {
    fn name_of(text: String) -> Result<SetId, String> {
        Ok(SetId::new(text))
    }

    fn key(id: &SetId) -> Key<Self> {
        Key::of(id.as_str())
    }
}

impl Lookups {
    /// The record of a set.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn set(&self, id: &SetId) -> Result<Option<SetRecord>, CatalogError> {
        self.get(&Sets::key(id)).await
    }

    /// All sets. A Source has a handful.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn sets(&self) -> Result<Vec<(SetId, SetRecord)>, CatalogError> {
        self.scan::<Sets>(b"", None).await?.try_collect().await
    }
}

impl Batch {
    /// Writes a set over an earlier record.
    pub fn put_set(&mut self, id: &SetId, record: &SetRecord) {
        self.put(Sets::key(id), record);
    }

    /// Forgets a set. Resources stay members of it by name, which counts for nothing then.
    pub fn delete_set(&mut self, id: &SetId) {
        self.delete(Sets::key(id));
    }
}
