//! Resources: their bytes from the store, by the records of the catalog.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use data_encoding::BASE64;
use model::{Bitstream, ResourceRecord, ResourceUri};
use publish::{Publication, PublishError, last_modified, media_type};
use serving::range::{self, Part};

use crate::answers::{not_found, unavailable, withdrawn};
use crate::conditions::{Condition, condition, http_date};
use crate::harvest::Harvest;
use crate::shared::Shared;

/// The digest of what a response has as its content (RFC 9530).
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// The digest of the whole representation, also of one that is sent in part (RFC 9530).
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// Answers with the bytes of a resource.
pub(crate) async fn answer(
    shared: &Shared,
    harvest: &Harvest,
    path: &str,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    let found = match find(shared.publication(), harvest, path).await {
        Ok(found) => found,
        Err(error) => {
            tracing::error!(%error, path, "a resource cannot be looked up");
            return unavailable();
        }
    };
    let Some((uri, record)) = found else { return not_found() };
    if shared.is_withdrawn(&uri) {
        return withdrawn();
    }
    match &record.bitstream {
        Some(bitstream) => send(harvest, &record, bitstream, method, asked).await,
        None => (StatusCode::GONE, "The resource was deleted.\n").into_response(),
    }
}

async fn find(
    publication: &Publication,
    harvest: &Harvest,
    path: &str,
) -> Result<Option<(ResourceUri, ResourceRecord)>, PublishError> {
    let Some(uri) = publication.resource_at(path).await? else { return Ok(None) };
    let record = harvest.catalog().await.resource(&uri).await?;
    Ok(record.map(|record| (uri, record)))
}

async fn send(
    harvest: &Harvest,
    record: &ResourceRecord,
    bitstream: &Bitstream,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    let etag = format!("\"{}\"", bitstream.computed.sha256());
    let mut headers = described(record, bitstream, &etag);
    match condition(asked, &etag, last_modified(bitstream)) {
        Condition::NotModified => return (StatusCode::NOT_MODIFIED, headers).into_response(),
        Condition::Failed => return StatusCode::PRECONDITION_FAILED.into_response(),
        Condition::Met => {}
    }
    let length = bitstream.computed.length();
    let (status, range) = match range::asked(asked, length, &etag) {
        Part::Whole => (StatusCode::OK, None),
        Part::Range(range) => (StatusCode::PARTIAL_CONTENT, Some(range)),
        Part::Nowhere => {
            let range = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, range).into_response();
        }
    };
    match &range {
        None => headers.extend(digest(bitstream).map(|value| (CONTENT_DIGEST, value))),
        Some(range) => {
            let told = format!("bytes {}-{}/{length}", range.start, range.end - 1).parse().ok();
            headers.extend(told.map(|value| (header::CONTENT_RANGE, value)));
        }
    }
    let sent = range.as_ref().map_or(length, |range| range.end - range.start);
    headers.insert(header::CONTENT_LENGTH, sent.into());
    if *method == Method::HEAD {
        return (status, headers).into_response();
    }
    match harvest.verified.open(&harvest.store, bitstream, range).await {
        Ok(bytes) => (status, headers, Body::from_stream(bytes)).into_response(),
        Err(error) => {
            tracing::error!(%error, "the bytes of a resource cannot be read");
            unavailable()
        }
    }
}

/// The headers that describe a resource, for GET and HEAD.
fn described(record: &ResourceRecord, bitstream: &Bitstream, etag: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let told = media_type(record, bitstream).and_then(|told| told.parse().ok());
    let told = told.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, told);
    let encoding = bitstream.encoding.as_deref().and_then(|encoding| encoding.parse().ok());
    headers.extend(encoding.map(|value| (header::CONTENT_ENCODING, value)));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // The next request may get another version.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
    // Content of others must not run under the name of this host.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.extend(etag.parse().ok().map(|value| (header::ETAG, value)));
    headers.extend(http_date(last_modified(bitstream)).map(|value| (header::LAST_MODIFIED, value)));
    headers.extend(digest(bitstream).map(|value| (REPR_DIGEST, value)));
    headers
}

fn digest(bitstream: &Bitstream) -> Option<HeaderValue> {
    format!("sha-256=:{}:", BASE64.encode(bitstream.computed.sha256().as_bytes())).parse().ok()
}
