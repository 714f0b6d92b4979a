//! `/v1/sources/{source}/resources/content`: the verified bytes of a resource.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use jiff::Timestamp;
use model::{Bitstream, ResourceUri};
use serde::Deserialize;
use serving::range::{self, Part};
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::extract::{self, Query, SourcePath};
use crate::memento;
use crate::resources;
use crate::state::Gateway;

/// The longest file name that the response suggests to a browser.
const LONGEST_NAME: usize = 100;

/// Selects a version of a resource.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContentParams {
    /// The URI, exactly as the Source writes it.
    #[param(max_length = 8192)]
    uri: String,
    /// The version that was stored at this time, such as 2026-01-31T12:00:00Z. Without it, the present one.
    at: Option<Timestamp>,
}

/// The bytes of a resource, as received and verified. They are verified again while they are sent: if they are not what
/// was stored, the response breaks off before its end.
#[utoipa::path(get, path = "/v1/sources/{source}/resources/content", tag = "resources",
    params(SourcePath, ContentParams,
        ("Range" = Option<String>, Header, description = "One range of bytes"),
        ("If-Range" = Option<String>, Header, description = "The `ETag` of the version whose range is requested"),
        ("If-Match" = Option<String>, Header, description = "Only this version"),
        ("If-None-Match" = Option<String>, Header, description = "Only another version than this")),
    responses(
    (status = 200, description = "All bytes", content_type = "*/*", body = Vec<u8>, headers(
        ("ETag" = String, description = "The SHA-256"), ("Link" = String, description = "timegate, timemap"))),
    (status = 206, description = "The bytes of the range", content_type = "*/*", body = Vec<u8>),
    (status = 304, description = "The version matches `If-None-Match`"),
    (status = 412, description = "The version does not match `If-Match`"),
    (status = 416, description = "The range is outside the bytes"),
))]
pub(crate) async fn content(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<ContentParams>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let uri = extract::resource_uri(&params.uri)?;
    let catalog = gateway.catalogs.get(&source).await?;
    let record = catalog.resource(&uri).await?.ok_or_else(|| resources::unknown(&uri))?;
    let (bitstream, from) = match params.at {
        Some(at) => {
            let versions = catalog.versions(&uri).await?.unwrap_or_default();
            let version = memento::version_at(&uri, &record, &versions, at)?;
            (version.bitstream.clone(), Some(version.from))
        }
        None => (record.bitstream.ok_or_else(|| deleted(&uri))?, None),
    };
    let about = memento::headers_of(&gateway, &headers, &source, &uri, from);
    let etag = format!("\"{}\"", bitstream.computed.sha256());
    if serving::etag_matches(&headers, header::IF_MATCH, &etag) == Some(false) {
        return Err(ApiError::precondition_failed(format!("{uri} is another version now: {etag}")));
    }
    if serving::etag_matches(&headers, header::IF_NONE_MATCH, &etag) == Some(true) {
        let answered = bitstream_headers(&uri, &bitstream, &etag);
        return Ok((StatusCode::NOT_MODIFIED, answered, about).into_response());
    }
    let length = bitstream.computed.length();
    let (status, range) = match range::asked(&headers, length, &etag) {
        Part::Whole => (StatusCode::OK, None),
        Part::Range(range) => (StatusCode::PARTIAL_CONTENT, Some(range)),
        Part::Nowhere => {
            let refusal = ApiError::unsatisfiable(format!("{uri} has {length} bytes"));
            return Err(with_text(refusal, format!("bytes */{length}")));
        }
    };
    let mut answered = bitstream_headers(&uri, &bitstream, &etag);
    let sent = range.as_ref().map_or(length, |range| range.end - range.start);
    answered.insert(header::CONTENT_LENGTH, sent.into());
    if let Some(range) = &range
        && let Ok(value) = format!("bytes {}-{}/{length}", range.start, range.end - 1).parse()
    {
        answered.insert(header::CONTENT_RANGE, value);
    }
    let body = match method {
        Method::HEAD => Body::empty(),
        _ => Body::from_stream(gateway.verified.open(&gateway.store, &bitstream, range).await?),
    };
    Ok((status, answered, about, body).into_response())
}

fn deleted(uri: &ResourceUri) -> ApiError {
    ApiError::not_found(format!("{uri} is not stored: its Source deleted it; its history says more"))
}

fn with_text(refusal: ApiError, content_range: String) -> ApiError {
    match content_range.parse() {
        Ok(value) => refusal.header(header::CONTENT_RANGE, value),
        Err(_) => refusal,
    }
}

/// The headers that describe a bitstream, for GET and HEAD.
fn bitstream_headers(uri: &ResourceUri, bitstream: &Bitstream, etag: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let said = bitstream.media_type.as_deref().and_then(|said| said.parse().ok());
    headers
        .insert(header::CONTENT_TYPE, said.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    if let Some(encoding) = bitstream.encoding.as_deref().and_then(|encoding| encoding.parse().ok()) {
        headers.insert(header::CONTENT_ENCODING, encoding);
    }
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // The next request may get another version.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    // If a browser displays content of a Source, the sandbox keeps scripts in it from running under the API's origin.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let disposition = format!("attachment; filename=\"{}\"", file_name(uri.as_str()));
    headers.extend(disposition.parse().map(|value| (header::CONTENT_DISPOSITION, value)));
    let digest = format!("sha-256=:{}:", BASE64.encode(bitstream.computed.sha256().as_bytes()));
    for (name, value) in [(header::ETAG.as_str(), etag), ("repr-digest", digest.as_str())] {
        if let (Ok(name), Ok(value)) = (name.parse::<header::HeaderName>(), value.parse()) {
            headers.insert(name, value);
        }
    }
    headers
}

/// A file name for browsers: the last segment of the URI's path, without characters that are unsafe in file systems or
/// headers.
fn file_name(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let name: String = last.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    // A leading dot hides a file, and a leading dash looks like an option.
    let name = name.trim_start_matches(['.', '-', '_']);
    // Keep the end, because the extension tells the file type.
    let name = &name[name.len().saturating_sub(LONGEST_NAME)..];
    if name.is_empty() { "resource".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_the_end_of_its_uri_and_nothing_that_does_harm() {
        for (uri, name) in [
            ("https://e.org/a/paper.pdf", "paper.pdf"),
            ("https://e.org/a/paper.pdf?x=/y#z/w", "paper.pdf"),
            ("https://e.org/a/", "a"),
            ("https://e.org/.bashrc", "bashrc"),
            ("https://e.org/-rf", "rf"),
            ("https://e.org/a\"; filename=\"b.exe", "a___filename__b.exe"),
            ("https://e.org/..%2f..%2fetc", "2f.._2fetc"),
            ("https://e.org/\u{202e}fdp.exe", "fdp.exe"),
            ("https://e.org/...", "resource"),
            ("urn:isbn:1", "urn_isbn_1"),
        ] {
            assert_eq!(file_name(uri), name, "{uri}");
        }
        assert_eq!(file_name(&format!("https://e.org/{}.pdf", "x".repeat(5_000))).len(), LONGEST_NAME);
    }
}
