//! Resources that a server found damaged, each in a small file at the place: another process may be the one that
//! publishes.

use fixity::Sha256;
use model::ResourceUri;

use crate::damaged::{MOST_NOTES, folder};
use crate::place::About;
use crate::{Publication, PublishError};

impl Publication {
    /// Notes that a server found the bytes of a resource damaged or missing. The next run reads them, and tells the
    /// resource as deleted if they are. A resource has one note. Returns false if too many wait.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn note_damage(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        if self.place.list(&folder(), MOST_NOTES).await?.len() >= MOST_NOTES {
            return Ok(false);
        }
        let path = format!("{}/{}", folder(), Sha256::of(uri.as_str().as_bytes()));
        self.place.put(&path, uri.as_str().to_owned().into(), &About::default()).await?;
        Ok(true)
    }
}
