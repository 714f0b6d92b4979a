//! Resources: their bytes from the store, by the records of the catalog.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use catalog::CatalogError;
use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _};
use model::{Bitstream, ResourceRecord, ResourceUri};
use publish::paths::VERSIONS;
use publish::{PublishError, last_modified, media_type};
use serving::range::{self, Part};
use store::{ByteStream, StoreError};

use crate::answers::{not_found, unavailable, withdrawn};
use crate::conditions::{Condition, condition, http_date};
use crate::digests::{CONTENT_DIGEST, REPR_DIGEST, digest};
use crate::documents::FINAL;
use crate::harvest::Harvest;
use crate::shared::Shared;

#[cfg(test)]
mod tests;

/// Answers with the bytes of a resource.
pub(crate) async fn answer(
    shared: &Shared,
    harvest: &Harvest,
    path: &str,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    let (version, path) = versioned(path);
    let found = match find(shared, harvest, path, version).await {
        Ok(found) => found,
        Err(error) => {
            tracing::error!(%error, path, "a resource cannot be looked up");
            return unavailable();
        }
    };
    let Some((uri, record, bitstream)) = found else { return not_found() };
    if shared.is_withdrawn(&uri) {
        return withdrawn();
    }
    match &bitstream {
        Some(bitstream) => {
            let mut response = send(shared, harvest, (&uri, &record), bitstream, method, asked).await;
            // Bytes that are named by their digest stay what they are; a URL at the bucket does not.
            let has_bytes = response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED;
            if version.is_some() && has_bytes {
                response.headers_mut().insert(header::CACHE_CONTROL, FINAL);
            }
            response
        }
        None if version.is_some() => (StatusCode::GONE, "This version is not kept.\n").into_response(),
        None => (StatusCode::GONE, "The resource was deleted.\n").into_response(),
    }
}

/// The version that a path names, and the path of its resource.
fn versioned(path: &str) -> (Option<Sha256>, &str) {
    let named = path.strip_prefix(VERSIONS).and_then(|rest| rest.strip_prefix('/'));
    let named = named.and_then(|rest| rest.split_once('/'));
    match named.and_then(|(digest, rest)| Some((digest.parse::<Sha256>().ok()?, rest))) {
        Some((sha256, rest)) => (Some(sha256), rest),
        None => (None, path),
    }
}

/// The resource at a path, its record, and the bytes of it, or of one version of it.
async fn find(
    shared: &Shared,
    harvest: &Harvest,
    path: &str,
    version: Option<Sha256>,
) -> Result<Option<(ResourceUri, ResourceRecord, Option<Bitstream>)>, PublishError> {
    let Some(uri) = shared.publication().resource_at(path).await? else { return Ok(None) };
    let catalog = match harvest.catalog().await {
        Ok(catalog) => catalog,
        // Nothing of the Source is stored yet.
        Err(error) if matches!(*error, CatalogError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(record) = catalog.resource(&uri).await? else { return Ok(None) };
    let present = match &record.bitstream {
        Some(present) => Some(present.clone()),
        None => last_version(shared, &record).await?,
    };
    let bitstream = match version {
        None => present,
        Some(sha256) => {
            let is_it = |stored: &Bitstream| stored.computed.sha256() == sha256;
            match present.filter(is_it) {
                Some(present) => Some(present),
                None => {
                    let kept = catalog.versions(&uri).await?.unwrap_or_default().kept.into_iter();
                    let kept = kept.filter(|version| version.lost.is_none()).map(|version| version.bitstream);
                    kept.rev().find(is_it)
                }
            }
        }
    };
    Ok(Some((uri, record, bitstream)))
}

/// The last version of a deleted resource, as long as readers may have a list that names it.
async fn last_version(shared: &Shared, record: &ResourceRecord) -> Result<Option<Bitstream>, PublishError> {
    let Some(deleted) = &record.deleted else { return Ok(None) };
    let is_gone = record.settled_at < shared.gone_before().await?;
    Ok((!is_gone).then(|| deleted.clone()))
}

async fn send(
    shared: &Shared,
    harvest: &Harvest,
    (uri, record): (&ResourceUri, &ResourceRecord),
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
    if let Some(lasts) = shared.redirect().filter(|_| *method == Method::GET) {
        match at_bucket(harvest, &headers, bitstream, lasts).await {
            Ok(Some(redirect)) => return redirect,
            Ok(None) => {}
            // It is sent instead.
            Err(error) => tracing::error!(%error, "no URL of the bucket can be signed"),
        }
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
        None => headers.extend(digest(bitstream.computed.sha256()).map(|value| (CONTENT_DIGEST, value))),
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
    // Lists name the present version.
    let present = record.bitstream.as_ref().filter(|present| *present == bitstream);
    match harvest.verified.open(harvest.store(), bitstream, range).await {
        Ok(bytes) => {
            let bytes = if present.is_some() { noting(shared, uri, bytes) } else { bytes };
            (status, headers, Body::from_stream(bytes)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the bytes of a resource cannot be read");
            if present.is_some() {
                shared.note_damage(uri, &error).await;
            }
            unavailable()
        }
    }
}

/// The same bytes. Damage that is met while they are sent is noted.
fn noting(shared: &Shared, uri: &ResourceUri, bytes: ByteStream) -> ByteStream {
    let (shared, uri) = (shared.clone(), uri.clone());
    let noting = bytes.or_else(move |error| {
        let (shared, uri) = (shared.clone(), uri.clone());
        async move {
            shared.note_damage(&uri, &error).await;
            Err(error)
        }
    });
    noting.boxed()
}

/// Leads a reader to the bucket, which sends ranges too. None for a bitstream that lies in one object with others.
async fn at_bucket(
    harvest: &Harvest,
    headers: &HeaderMap,
    bitstream: &Bitstream,
    lasts: Duration,
) -> Result<Option<Response>, StoreError> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|told| told.to_str().ok());
    let media_type = media_type.unwrap_or("application/octet-stream");
    let encoding = bitstream.encoding.as_deref();
    let url = harvest.store().presigned(&bitstream.location, lasts, media_type, encoding).await?;
    Ok(url.map(|url| {
        // Each reader gets a URL of its own.
        let headers = [(header::LOCATION, url.to_string()), (header::CACHE_CONTROL, "no-store".to_owned())];
        (StatusCode::TEMPORARY_REDIRECT, headers).into_response()
    }))
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
    headers.extend(digest(bitstream.computed.sha256()).map(|value| (REPR_DIGEST, value)));
    headers
}
