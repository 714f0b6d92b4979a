//! Lays down the bytes of a resource, verified again as they pass.

use model::{Bitstream, ResourceRecord, ResourceUri};
use store::{Store, StoreError};

use crate::PublishError;
use crate::entry::{last_modified, media_type};
use crate::names::PublishedPath;
use crate::place::{About, OWN, Place};

/// How many bodies are written at a time.
pub(crate) const AT_A_TIME: usize = 16;

/// The file that spells the URI behind a path that is a digest.
pub(crate) fn spelled(sha256: fixity::Sha256) -> String {
    format!("{OWN}/long/{sha256}")
}

/// Where the bytes of resources go.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    store: Store,
    place: Place,
    with_bytes: bool,
}

impl Layer {
    pub(crate) fn new(store: &Store, place: &Place, with_bytes: bool) -> Self {
        Self { store: store.clone(), place: place.clone(), with_bytes }
    }

    /// Writes the file of a resource. The inner error is that of damaged or missing bytes; then an earlier file stays.
    /// Returns the number of bytes; none where no bytes are laid down.
    pub(crate) async fn lay(
        &self,
        uri: &ResourceUri,
        record: &ResourceRecord,
        bitstream: &Bitstream,
    ) -> Result<Result<Option<u64>, StoreError>, PublishError> {
        let path = PublishedPath::of(uri);
        if let Some(sha256) = path.long() {
            let spelling = uri.as_str().to_owned().into();
            self.place.put(&spelled(sha256), spelling, &About::default()).await?;
        }
        if !self.with_bytes {
            return Ok(Ok(None));
        }
        let pieces = match self.store.open_verified(bitstream).await {
            Ok(pieces) => pieces,
            Err(error) => return damaged(error),
        };
        let about = About {
            media_type: media_type(record, bitstream),
            encoding: bitstream.encoding.clone(),
            modified: Some(last_modified(bitstream)),
        };
        match self.place.put_pieces(path.as_str(), pieces, &about).await? {
            Ok(()) => Ok(Ok(Some(bitstream.computed.length()))),
            Err(error) => damaged(error),
        }
    }
}

/// Other failures of the store end the run.
fn damaged<T>(error: StoreError) -> Result<Result<T, StoreError>, PublishError> {
    match error {
        StoreError::NotFound { .. } | StoreError::Damaged { .. } => Ok(Err(error)),
        other => Err(other.into()),
    }
}
