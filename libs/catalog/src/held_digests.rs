//! Digests of the bytes that were stored before the Source was moved, each with a resource that has them. Keyed by the
//! digest. Runs find bytes by them that a list names under another URI; then the index is removed.

use model::{Persisted, ResourceUri};

use crate::keyspace::{Key, text_space};
use crate::meta::ADOPTS;
use crate::scan::Scan;
use crate::{Batch, CatalogError, Lookups};

text_space!(
    /// `h<digest>`
    HeldDigests, Persisted::HeldDigests, "stored digest", String => ResourceUri
);

impl HeldDigests {
    fn name_of(text: String) -> Result<String, String> {
        Ok(text)
    }

    fn key(digest: &str) -> Key<Self> {
        Key::of(digest)
    }
}

impl Lookups {
    /// Whether there is an index of digests, because the Source was moved.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn adopts(&self) -> Result<bool, CatalogError> {
        Ok(self.meta(ADOPTS).await?.unwrap_or_default())
    }

    /// The resources that have these digests, as text, in the given order; reads are concurrent.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn holders_of(&self, digests: &[String]) -> Result<Vec<Option<ResourceUri>>, CatalogError> {
        self.get_many(digests.iter().map(|digest| HeldDigests::key(digest))).await
    }

    /// All digests of the index, as text, and their resources.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_held_digests(&self) -> Result<Scan<(String, ResourceUri)>, CatalogError> {
        self.scan::<HeldDigests>(b"", None).await
    }
}

impl Batch {
    /// Records that a resource has bytes with this digest, as text. One resource for each digest is enough.
    pub fn put_held_digest(&mut self, digest: &str, uri: &ResourceUri) {
        self.put(HeldDigests::key(digest), uri);
    }

    /// Removes a digest from the index.
    pub fn delete_held_digest(&mut self, digest: &str) {
        self.delete(HeldDigests::key(digest));
    }

    /// Records whether there is an index of digests.
    pub fn put_adopts(&mut self, adopts: bool) {
        self.put_meta(ADOPTS, &adopts);
    }
}
