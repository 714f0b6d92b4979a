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
    let OpenFile { length, modified, sha256, media_type, .. } = open;
    let etag = open.etag.clone();
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
        _ => Body::from_stream(pieces(open, range)),
    };
    (status, headers, body).into_response()
}

/// The bytes of a range. A file that is written meanwhile breaks off: its pieces may be of two versions, and the reader
/// was told the tag and the digest of one.
fn pieces(open: OpenFile, range: std::ops::Range<u64>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((open, range), |(mut open, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let count = PIECE_BYTES.min(range.end - range.start);
            // At most a piece.
            let mut piece = BytesMut::zeroed(count as usize);
            open.file.seek(SeekFrom::Start(range.start))?;
            open.file.read_exact(&mut piece)?;
            if !open.is_unchanged()? {
                return Err(io::Error::other("the file was written while it was sent"));
            }
            Ok((piece.freeze(), (open, range.start + count..range.end)))
        });
        read.await.map_err(io::Error::other).flatten().map(Some)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::SystemTime;

    use futures::TryStreamExt as _;
    use object_store::memory::InMemory;
    use publish::Place;

    use super::*;

    const LENGTH: u64 = 2 * PIECE_BYTES + 1;

    /// Reads a file of which something becomes after its first piece.
    async fn read(becomes: impl FnOnce(&Path)) -> io::Result<Vec<u8>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a");
        fs::write(&path, vec![b'a'; LENGTH as usize])?;
        File::options().write(true).open(&path)?.set_modified(SystemTime::UNIX_EPOCH)?;
        let place = Place::bucket("memory", Arc::new(InMemory::new()));
        let url = "http://mirror.example/files/".parse().unwrap();
        let files = FileRecords::new(folder.path(), &url, &place).unwrap();
        let open = files.open_at("files/a")?.unwrap();
        let mut body = std::pin::pin!(pieces(open, 0..LENGTH));
        let mut read = body.try_next().await?.unwrap().to_vec();
        becomes(&path);
        while let Some(piece) = body.try_next().await? {
            read.extend_from_slice(&piece);
        }
        Ok(read)
    }

    #[tokio::test]
    async fn a_file_that_is_written_while_it_is_sent_breaks_off() {
        let old = vec![b'a'; LENGTH as usize];
        assert_eq!(read(|_| {}).await.unwrap(), old);
        for length in [LENGTH, LENGTH + 1, LENGTH - 1] {
            let overwritten = read(|path| fs::write(path, vec![b'b'; length as usize]).unwrap()).await;
            assert!(overwritten.is_err(), "{length}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_while_it_is_sent_is_sent_to_its_end() {
        let replaced = read(|path| {
            let other = path.with_extension("new");
            fs::write(&other, vec![b'b'; LENGTH as usize]).unwrap();
            fs::rename(other, path).unwrap();
        });
        assert_eq!(replaced.await.unwrap(), vec![b'a'; LENGTH as usize]);
    }
}
