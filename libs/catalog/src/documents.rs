//! Documents of the Source: the place of each in the tree, and how far it is processed. Keyed by URI.

use model::{DocumentRecord, Persisted};

use crate::keyspace::{Key, text_space};
use crate::scan::DocumentScan;
use crate::{Batch, CatalogError, Lookups};

text_space!(
    /// `d<uri>`
    Documents, Persisted::Documents, "document", String => DocumentRecord
);

impl Documents {
    fn name_of(text: String) -> Result<String, String> {
        Ok(text)
    }
}

impl Lookups {
    /// The record of a document.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn document(&self, uri: &str) -> Result<Option<DocumentRecord>, CatalogError> {
        self.get(&Key::<Documents>::of(uri)).await
    }

    /// All documents in the order of their URIs' bytes.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_documents(&self) -> Result<DocumentScan, CatalogError> {
        self.scan::<Documents>(b"", None).await
    }
}

impl Batch {
    /// Writes a document over an earlier record.
    pub fn put_document(&mut self, uri: &str, record: &DocumentRecord) {
        self.put(Key::<Documents>::of(uri), record);
    }

    /// Removes a document.
    pub fn delete_document(&mut self, uri: &str) {
        self.delete(Key::<Documents>::of(uri));
    }
}
