//! Properties of the catalog itself: its schema, and its counters.

use model::{CompactedPack, Persisted, Seq};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::keyspace::{Key, text_space};
use crate::{Batch, CatalogError, Lookups};

/// The schema that this version writes. It is increased when records change so that an older version would
/// misread them; a new optional field is no such change.
///
/// 1: a row for each entry of the change log. 2: pages of them. 3: the compact form of what each resource has. Records of
/// all earlier schemas can still be read.
pub const SCHEMA: u32 = Persisted::Catalogs.version() as u32;

pub(crate) const ADOPTS: &str = "adopts";
pub(crate) const SCHEMA_KEY: &str = "schema";
pub(crate) const LAST_RUN: &str = "last-run";
pub(crate) const LAST_SEQ: &str = "last-seq";
pub(crate) const HISTORY: &str = "history";
pub(crate) const LOOK: &str = "look";
pub(crate) const NEXT_CHANGE: &str = "next-change";
pub(crate) const VIEW_NAMES: &str = "view-names";
pub(crate) const REWRITTEN: &str = "rewritten-packs";

text_space!(
    /// `m<name>`
    Meta, Persisted::Properties, "catalog property", String => Value
);

impl Meta {
    fn name_of(text: String) -> Result<String, String> {
        Ok(text)
    }
}

impl Lookups {
    /// The largest number of a pending record; later plans use larger ones. Zero in a fresh catalog.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn last_seq(&self) -> Result<Seq, CatalogError> {
        Ok(self.meta(LAST_SEQ).await?.unwrap_or_default())
    }

    /// Recently compacted packs: their bitstreams were moved into other packs. No record points to them, but
    /// a reader may still use them.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn rewritten_packs(&self) -> Result<Vec<CompactedPack>, CatalogError> {
        Ok(self.meta(REWRITTEN).await?.unwrap_or_default())
    }

    /// The version of the list of dangerous names that the view was written with; zero if none was recorded.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn view_names(&self) -> Result<u32, CatalogError> {
        Ok(self.meta(VIEW_NAMES).await?.unwrap_or_default())
    }

    pub(crate) async fn meta<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, CatalogError> {
        let Some(value) = self.get(&Key::<Meta>::of(name)).await? else { return Ok(None) };
        serde_json::from_value(value).map(Some).map_err(|error| self.corrupt::<Meta>(name.as_bytes(), error))
    }

    /// Checks that this version understands the catalog's schema. `None`: no schema is written yet.
    pub(crate) async fn check_schema(&self) -> Result<Option<u32>, CatalogError> {
        match self.meta::<u32>(SCHEMA_KEY).await? {
            Some(found) if found > SCHEMA => {
                Err(CatalogError::NewerSchema { path: self.path().to_owned(), found, known: SCHEMA })
            }
            found => Ok(found),
        }
    }
}

impl Batch {
    /// Records the largest number of a pending record.
    pub fn put_last_seq(&mut self, seq: Seq) {
        self.put_meta(LAST_SEQ, &seq);
    }

    /// Records the recently compacted packs, and replaces the earlier list.
    pub fn put_rewritten_packs(&mut self, packs: &[CompactedPack]) {
        self.put_meta(REWRITTEN, &packs);
    }

    /// Records the version of the list of dangerous names that the view is written with.
    pub fn put_view_names(&mut self, names: u32) {
        self.put_meta(VIEW_NAMES, &names);
    }

    pub(crate) fn put_meta<T: Serialize>(&mut self, name: &str, value: &T) {
        self.put_value(Key::<Meta>::of(name), value);
    }
}
