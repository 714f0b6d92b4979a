//! URLs at which a bucket itself gives an object, for a time, to all who have them.

use std::time::Duration;

use model::{Location, Method};
use object_store::signer::{Method as HttpMethod, SignedUrlOptions, Signer as _, Url};

use crate::backend::Backend;
use crate::error::AtObject;
use crate::s3::Presigner;
use crate::{Key, Store, StoreError};

impl Store {
    /// A URL at which the bucket gives a bitstream by GET, with this media type and Content-Encoding, for so long. None in
    /// a local store, and for a bitstream that lies in one object with others.
    ///
    /// The URL has the endpoint in it that this process uses. Nothing is requested; so nothing shows whether the object
    /// is there.
    ///
    /// # Errors
    /// When there are no credentials to sign with.
    pub async fn presigned(
        &self,
        location: &Location,
        lasts: Duration,
        media_type: &str,
        encoding: Option<&str>,
    ) -> Result<Option<Url>, StoreError> {
        let Backend::Bucket(bucket) = self.backend() else { return Ok(None) };
        if !is_alone(location) {
            return Ok(None);
        }
        let Some(Presigner { s3, prefix }) = &bucket.presigner else { return Ok(None) };
        let key = Key::of(location);
        let path = prefix.parts().chain(key.path().parts()).collect();
        let told = [("response-content-type", Some(media_type)), ("response-content-encoding", encoding)];
        let told = told.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let options = SignedUrlOptions::new().with_query(told);
        let url = s3.signed_url_opts(HttpMethod::GET, &path, lasts, &options).await;
        url.map(Some).at_object(self.root(), &key)
    }
}

/// Whether a bitstream is all of its object. A member of a package is behind a header of its own, so one that begins at
/// the first byte was received as an upload.
fn is_alone(location: &Location) -> bool {
    matches!(location, Location::Object { .. } | Location::Package { offset: 0, method: Method::Stored, .. })
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use model::{PackageId, SourceId};

    use super::*;

    #[test]
    fn what_is_all_of_its_object_is_told_from_a_member() {
        let source: SourceId = "a".parse().unwrap();
        let member = |offset, method| Location::Package {
            source: source.clone(),
            package: PackageId::fresh(),
            offset,
            stored_length: 7,
            method,
        };
        assert!(is_alone(&Location::Object { sha256: Sha256::of(b"a") }));
        assert!(is_alone(&member(0, Method::Stored)));
        assert!(!is_alone(&member(512, Method::Stored)) && !is_alone(&member(0, Method::Deflated)));
    }
}
