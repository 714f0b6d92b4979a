//! Files of a directory, as they are now.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use publish::files::{FileRecords, OpenFile};
use serving::range::{self, Part};

use crate::answers::{not_found, unavailable, withdrawn};
use crate::conditions::{Condition, condition, http_date};
use crate::digests::{CONTENT_DIGEST, REPR_DIGEST, digest};
use crate::shared::Shared;

/// How much is read at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// Answers with a file.
pub(crate) async fn answer(
    shared: &Shared,
    files: &Arc<FileRecords>,
    path: &str,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    if files.uri_at(path).is_some_and(|uri| shared.is_withdrawn(&uri)) {
        return withdrawn();
    }
    let (files, wanted) = (Arc::clone(files), path.to_owned());
    let open = tokio::task::spawn_blocking(move || files.open_at(&wanted));
    match open.await.map_err(io::Error::other).flatten() {
        Ok(Some(file)) => send(file, method, asked),
        Ok(None) => not_found(),
        Err(error) => {
            tracing::error!(%error, path, "a file cannot be opened");
            unavailable()
        }
    }
}

fn send(open: OpenFile, method: &Method, asked: &HeaderMap) -> Response {
    let OpenFile { file, length, modified, etag, sha256, media_type, .. } = open;
    let mut headers = HeaderMap::new();
    let told = HeaderValue::from_static(media_type.unwrap_or("application/octet-stream"));
    headers.insert(header::CONTENT_TYPE, told);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // The next request may get another version.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
    // Content of others must not run under the name of this host.
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.extend(etag.parse().ok().map(|value| (header::ETAG, value)));
    headers.extend(http_date(modified).map(|value| (header::LAST_MODIFIED, value)));
    let digest = sha256.and_then(digest);
    headers.extend(digest.clone().map(|value| (REPR_DIGEST, value)));
    match condition(asked, &etag, modified) {
        Condition::NotModified => return (StatusCode::NOT_MODIFIED, headers).into_response(),
        Condition::Failed => return StatusCode::PRECONDITION_FAILED.into_response(),
        Condition::Met => {}
    }
    let (status, range) = match range::asked(asked, length, &etag) {
        Part::Whole => {
            headers.extend(digest.map(|value| (CONTENT_DIGEST, value)));
            (StatusCode::OK, 0..length)
        }
        Part::Range(range) => {
            let told = format!("bytes {}-{}/{length}", range.start, range.end - 1).parse().ok();
            headers.extend(told.map(|value| (header::CONTENT_RANGE, value)));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Part::Nowhere => {
            let range = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, range).into_response();
        }
    };
    headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ => Body::from_stream(pieces(file, range)),
    };
    (status, headers, body).into_response()
}

/// The bytes of a range. A file that became shorter meanwhile breaks off.
fn pieces(file: std::fs::File, range: std::ops::Range<u64>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, range), |(mut file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let count = PIECE_BYTES.min(range.end - range.start);
            // At most a piece.
            let mut piece = BytesMut::zeroed(count as usize);
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(&mut piece)?;
            Ok::<_, io::Error>((piece.freeze(), (file, range.start + count..range.end)))
        });
        read.await.map_err(io::Error::other).flatten().map(Some)
    })
}
