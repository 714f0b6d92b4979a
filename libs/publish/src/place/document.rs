//! Files for readers: small ones are in memory, and each tells whether it ever changes.

use bytes::Bytes;
use fixity::Sha256;
use object_store::{GetResult, ObjectMeta};
use resourcesync::{Options, Reader};

use super::Place;
use super::small::{SMALL_BYTES, SmallFile};
use crate::PublishError;
use crate::paths::{is_change_list, is_immutable, is_package};

/// More than the header of any document of ours takes.
const HEAD_BYTES: u64 = 16 * 1024;

/// A file for a reader, with its length and times.
#[derive(Debug)]
pub struct Document {
    /// What the store tells of it.
    pub meta: ObjectMeta,
    /// The digest of its bytes, if they are in memory.
    pub sha256: Option<Sha256>,
    /// Whether it never changes: a part, a package, or a closed Change List.
    pub is_final: bool,
    /// Its bytes.
    pub body: DocumentBody,
}

/// The bytes of a [`Document`].
#[derive(Debug)]
pub enum DocumentBody {
    /// A small one, in memory.
    Small(Bytes),
    /// A large one, to be read from the place.
    Large(GetResult),
    /// A large package, to be opened at the place. Most readers of packages ask for a range, or whether they have it.
    Package,
}

impl Place {
    /// A file for a reader. A small one may have been read up to a second ago; but it is never older than what this
    /// place has written.
    ///
    /// # Errors
    /// [`PublishError::Place`] when the place fails. A missing file is none.
    pub async fn document(&self, path: &str) -> Result<Option<Document>, PublishError> {
        let in_memory = |SmallFile { meta, bytes, sha256, is_final }| Document {
            meta,
            sha256: Some(sha256),
            is_final,
            body: DocumentBody::Small(bytes),
        };
        let small = (!self.is_shared).then_some(&self.small);
        let reading = match small.map(|small| small.get(path)) {
            Some(Ok(file)) => return Ok(Some(in_memory(file))),
            Some(Err(reading)) => Some(reading),
            None => None,
        };
        if is_package(path) {
            let Some(meta) = self.head(path).await? else { return Ok(None) };
            if meta.size > SMALL_BYTES {
                return Ok(Some(Document {
                    meta,
                    sha256: None,
                    is_final: true,
                    body: DocumentBody::Package,
                }));
            }
        }
        let Some(found) = self.open(path).await? else { return Ok(None) };
        let meta = found.meta.clone();
        if meta.size > SMALL_BYTES {
            let is_final = is_immutable(path) || self.is_closed_list(path, &meta).await?;
            return Ok(Some(Document { meta, sha256: None, is_final, body: DocumentBody::Large(found) }));
        }
        let bytes = found.bytes().await.map_err(|error| self.failed(path, error))?;
        let is_final = is_immutable(path) || is_change_list(path) && is_closed(&bytes);
        let file = SmallFile { meta, sha256: Sha256::of(&bytes), bytes, is_final };
        if let Some(reading) = reading {
            self.small.keep(path, &file, reading);
        }
        Ok(Some(in_memory(file)))
    }

    /// Whether a large file is a Change List that is closed, by its head.
    async fn is_closed_list(&self, path: &str, meta: &ObjectMeta) -> Result<bool, PublishError> {
        if !is_change_list(path) {
            return Ok(false);
        }
        let Some(head) = self.open_range(path, 0..HEAD_BYTES).await? else { return Ok(false) };
        // One that was open a moment ago is another version.
        let is_same = head.meta.e_tag == meta.e_tag && head.meta.last_modified == meta.last_modified;
        let head = head.bytes().await.map_err(|error| self.failed(path, error))?;
        Ok(is_same && is_closed(&head))
    }
}

/// Whether a Change List has its end, in its document or in a large begin of it. It is never written again then.
fn is_closed(document: &[u8]) -> bool {
    let reader = Reader::new(document, Options::default());
    reader.is_ok_and(|mut reader| reader.header().is_ok_and(|header| header.until.is_some()))
}
