//! Digests in headers (RFC 9530).

use axum::http::{HeaderName, HeaderValue};
use data_encoding::BASE64;
use fixity::Sha256;

/// The digest of what a response has as its content.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// The digest of the whole representation, also of one that is sent in part.
pub(crate) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// A digest as these headers have it.
pub(crate) fn digest(sha256: Sha256) -> Option<HeaderValue> {
    format!("sha-256=:{}:", BASE64.encode(sha256.as_bytes())).parse().ok()
}
