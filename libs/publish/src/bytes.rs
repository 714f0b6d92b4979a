//! Lays down the bytes of a resource, verified again as they pass.

use fixity::Sha256;
use model::ResourceUri;

use crate::PublishError;
use crate::place::{About, OWN, Place};
use crate::records::{BodyError, Records, Stored};

/// How many bodies are written at a time.
pub(crate) const AT_A_TIME: usize = 16;

/// The file that spells the URI behind a path that is a digest.
pub(crate) fn spelled(sha256: Sha256) -> String {
    format!("{OWN}/long/{sha256}")
}

/// The URI behind a path that is a digest. None if none was spelled.
pub(crate) async fn uri_spelled(place: &Place, sha256: Sha256) -> Result<Option<ResourceUri>, PublishError> {
    let path = spelled(sha256);
    let Some(text) = place.read(&path).await? else { return Ok(None) };
    let uri = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    uri.map(Some).ok_or_else(|| PublishError::changed(&path, "it is no URI"))
}

/// Where the bytes of resources go.
#[derive(Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub(crate) records: &'a dyn Records,
    pub(crate) place: &'a Place,
    pub(crate) with_bytes: bool,
}

impl Layer<'_> {
    /// Writes the file of a resource. The inner error is that of damaged or missing bytes; then an earlier file stays.
    /// Returns the number of bytes; none where no bytes are laid down.
    pub(crate) async fn lay(
        &self,
        uri: &ResourceUri,
        stored: &Stored,
    ) -> Result<Result<Option<u64>, BodyError>, PublishError> {
        let path = self.records.path(uri);
        if !self.with_bytes {
            self.spell(uri, path.long()).await?;
            return Ok(Ok(None));
        }
        let pieces = match self.records.open(uri, stored).await {
            Ok(pieces) => pieces,
            Err(error) => return error.of_resource(),
        };
        let about = About {
            media_type: stored.media_type.clone(),
            encoding: stored.encoding.clone(),
            modified: Some(stored.lastmod),
            ..About::default()
        };
        match self.place.put_pieces(path.as_str(), pieces, &about).await? {
            Ok(()) => {
                // Behind the bytes: of a damaged one, each run tries again to lay them down.
                self.spell(uri, path.long()).await?;
                Ok(Ok(Some(stored.length)))
            }
            Err(error) => error.of_resource(),
        }
    }

    /// Writes the file that spells a URI whose path is a digest.
    async fn spell(&self, uri: &ResourceUri, long: Option<Sha256>) -> Result<(), PublishError> {
        let Some(sha256) = long else { return Ok(()) };
        self.place.put(&spelled(sha256), uri.as_str().to_owned().into(), &About::default()).await
    }
}
