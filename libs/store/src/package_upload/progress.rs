//! Progress of an upload: its checkpoint, and the digests of its parts.

use bytes::Bytes;
use fixity::{Computed, Hasher};
use model::{Location, Method, PackageId, SourceId, StoredBitstream};
use object_store::UpdateVersion;

use crate::files::blocking;
use crate::package_head::PackageHead;
use crate::parts::PartsOf;
use crate::upload_checkpoint::{Remainder, UploadCheckpoint, VERSION};
use crate::{Key, StoreError};

/// State that stays the same until the upload starts anew.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) checkpoint: Key,
    pub(super) tail: Key,
    pub(super) source: SourceId,
    pub(super) package: PackageId,
    pub(super) head: PackageHead,
    pub(super) part_bytes: u64,
}

/// The checkpoint's content, and the digests of the parts.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) hasher: Hasher,
    pub(super) upload: Option<String>,
    pub(super) parts: Vec<String>,
    pub(super) version: Option<UpdateVersion>,
    pub(super) has_tail: bool,
}

impl Kept {
    pub(super) async fn hash(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let mut hasher = std::mem::replace(&mut self.hasher, Hasher::new([]));
        let hash = move || {
            hasher.update(&bytes);
            Ok(hasher)
        };
        self.hasher = blocking("hash a part", hash).await?;
        Ok(())
    }

    pub(super) fn computed(&mut self) -> Computed {
        std::mem::replace(&mut self.hasher, Hasher::new([])).finish()
    }
}

impl About {
    /// Resumes the upload of another process.
    pub(super) fn resume(&mut self, package: PackageId, head: PackageHead, part_bytes: u64) {
        self.package = package;
        self.head = head;
        self.part_bytes = part_bytes;
    }

    pub(super) fn key(&self) -> Key {
        Key::Package { source: self.source.clone(), package: self.package }
    }

    pub(super) fn parts_of(&self, upload: String) -> PartsOf {
        PartsOf { key: self.key(), upload, part_bytes: self.part_bytes }
    }

    pub(super) fn checkpoint(&self, kept: &Kept, rest: Remainder) -> UploadCheckpoint {
        UploadCheckpoint {
            version: VERSION,
            package: self.package,
            head: self.head.clone(),
            upload: kept.upload.clone(),
            part_bytes: self.part_bytes,
            parts: kept.parts.clone(),
            rest,
        }
    }

    pub(super) fn stored(&self, package: PackageId, computed: Computed) -> StoredBitstream {
        let PackageHead { validators, media_type, encoding, modified, final_url, .. } = self.head.clone();
        let source = self.source.clone();
        let stored_length = computed.length();
        let location =
            Location::Package { source, package, offset: 0, stored_length, method: Method::Stored };
        StoredBitstream { location, computed, media_type, encoding, validators, modified, final_url }
    }
}
