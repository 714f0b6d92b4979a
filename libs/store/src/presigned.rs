//! URLs at which a bucket itself gives an object, for a time, to all who have them.

use std::time::Duration;

use model::Location;
use object_store::signer::{Method, SignedUrlOptions, Signer as _, Url};

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
        let (Backend::Bucket(bucket), Location::Object { .. }) = (self.backend(), location) else {
            return Ok(None);
        };
        let Some(Presigner { s3, prefix }) = &bucket.presigner else { return Ok(None) };
        let key = Key::of(location);
        let path = prefix.parts().chain(key.path().parts()).collect();
        let told = [("response-content-type", Some(media_type)), ("response-content-encoding", encoding)];
        let told = told.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let options = SignedUrlOptions::new().with_query(told);
        let url = s3.signed_url_opts(Method::GET, &path, lasts, &options).await;
        url.map(Some).at_object(self.root(), &key)
    }
}
