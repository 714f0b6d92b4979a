//! Resources in their encoded form. A scan over all of them decodes only the fields that it needs.

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use model::{Holding, ResourceRecord, ResourceUri};

use crate::keyspace::all_of;
use crate::lookups::Stride;
use crate::resources::Resources;
use crate::scan::{Cursor, Scan};
use crate::{CatalogError, Lookups};

/// Resources in their encoded form, some at a time.
pub type UnreadScan = Scan<Vec<LazyResource>>;

/// A resource that was not decoded yet.
#[derive(Debug, Clone)]
pub struct LazyResource {
    lookups: Lookups,
    key: Bytes,
    value: Bytes,
}

impl LazyResource {
    pub(crate) fn new(lookups: &Lookups, key: Bytes, value: Bytes) -> Self {
        Self { lookups: lookups.clone(), key, value }
    }

    /// Its URI, as its Source writes it.
    ///
    /// # Errors
    /// When the key cannot be read.
    pub fn uri(&self) -> Result<&str, CatalogError> {
        std::str::from_utf8(self.name()).map_err(|error| self.corrupt(error))
    }

    /// The bytes of its URI, the sort key of resources.
    pub fn uri_bytes(&self) -> &[u8] {
        self.name()
    }

    /// Whether the record may contain this text: a URI or another word of a link, a listing or a header. If not, it
    /// need not be decoded. Digests, times and names of archives are not stored as text.
    pub fn mentions(&self, text: &str) -> bool {
        // As JSON has it, without the quotes. Links are JSON in each form of a record.
        let Ok(encoded) = serde_json::to_string(text) else { return true };
        let wanted = &encoded[1..encoded.len() - 1];
        let has = |wanted: &str| memchr::memmem::find(&self.value, wanted.as_bytes()).is_some();
        has(wanted) || wanted != text && has(text)
    }

    /// The stored version: the rest of the record is skipped.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn holding(&self) -> Result<Holding, CatalogError> {
        Resources::read_holding(&self.value).map_err(|why| self.corrupt(why))
    }

    /// The whole record.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn read(&self) -> Result<(ResourceUri, ResourceRecord), CatalogError> {
        self.lookups.read_entry::<Resources>(&self.key, &self.value)
    }

    fn name(&self) -> &[u8] {
        &self.key[1..]
    }

    fn corrupt(&self, why: impl ToString) -> CatalogError {
        self.lookups.corrupt::<Resources>(self.name(), why)
    }
}

impl Lookups {
    /// All resources in the order of their URIs' bytes, `at_a_time` in a batch, tombstones included.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn scan_resources_unread(&self, at_a_time: usize) -> Result<UnreadScan, CatalogError> {
        let (from, end) = all_of::<Resources>();
        let cursor = Cursor::open(self.clone(), from, end, Stride::Each).await?;
        let lookups = self.clone();
        let batches = stream::try_unfold((cursor, lookups), move |(mut cursor, lookups)| async move {
            let mut batch = Vec::with_capacity(at_a_time);
            while batch.len() < at_a_time
                && let Some((key, value)) = cursor.found().await?
            {
                batch.push(LazyResource::new(&lookups, key, value));
            }
            Ok((!batch.is_empty()).then_some((batch, (cursor, lookups))))
        });
        Ok(Scan::new(batches.boxed()))
    }
}
