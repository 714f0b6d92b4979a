//! Documents, as they were published.

use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use object_store::ObjectMeta;
use publish::{Document, DocumentBody, Place, paths};
use serving::range::{self, Part};

use crate::answers::{not_found, package_withdrawn, unavailable};
use crate::conditions::{Condition, condition, http_date};
use crate::shared::Shared;

/// Caches may answer in our place for a week: with a document or a version of a resource that never changes.
pub(crate) const FINAL: HeaderValue = HeaderValue::from_static("public, max-age=604800, immutable");

/// Answers with a document.
pub(crate) async fn answer(shared: &Shared, path: &str, method: &Method, asked: &HeaderMap) -> Response {
    if paths::is_package(path) {
        match shared.has_withdrawn(path).await {
            Ok(false) => {}
            Ok(true) => return package_withdrawn(),
            Err(error) => {
                tracing::error!(%error, path, "the manifest of a package cannot be read");
                return unavailable();
            }
        }
    }
    let place = &shared.publication().place;
    let Document { meta, sha256, is_final, body } = match place.document(path).await {
        Ok(Some(found)) => found,
        Ok(None) => return missing(shared, path).await,
        Err(error) => {
            tracing::error!(%error, path, "a document cannot be read");
            return unavailable();
        }
    };
    // The bytes of a small one are in memory, and so is their digest.
    let etag = sha256.map_or_else(|| etag(&meta), |sha256| format!("\"{sha256}\""));
    let modified = Timestamp::from_second(meta.last_modified.timestamp()).unwrap_or_default();
    let mut headers = described(path, &etag, modified);
    if is_final {
        headers.insert(header::CACHE_CONTROL, FINAL);
    }
    if let Some(answer) = unmet(asked, &etag, modified, &headers) {
        return answer;
    }
    let length = meta.size;
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let range = match range::asked(asked, length, &etag) {
        Part::Whole => {
            headers.insert(header::CONTENT_LENGTH, length.into());
            let body = match body {
                _ if *method == Method::HEAD => Some(Body::empty()),
                DocumentBody::Small(bytes) => Some(Body::from(bytes)),
                DocumentBody::Large(found) => Some(Body::from_stream(found.into_stream())),
                DocumentBody::Package => bytes_of(place, path, None, &etag).await,
            };
            return body.map_or_else(unavailable, |body| (headers, body).into_response());
        }
        Part::Range(range) => range,
        Part::Nowhere => {
            let range = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, range).into_response();
        }
    };
    let told = format!("bytes {}-{}/{length}", range.start, range.end - 1).parse().ok();
    headers.extend(told.map(|value| (header::CONTENT_RANGE, value)));
    headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
    if *method == Method::HEAD {
        return (StatusCode::PARTIAL_CONTENT, headers).into_response();
    }
    if let DocumentBody::Small(bytes) = body {
        // The range lies within a document that is in memory, so both ends fit.
        let part = bytes.slice(range.start as usize..range.end as usize);
        return (StatusCode::PARTIAL_CONTENT, headers, Body::from(part)).into_response();
    }
    let part = bytes_of(place, path, Some(range), &etag).await;
    part.map_or_else(unavailable, |part| (StatusCode::PARTIAL_CONTENT, headers, part).into_response())
}

/// The bytes of a large document, or of a range of it. None if they cannot be read now.
async fn bytes_of(place: &Place, path: &str, range: Option<Range<u64>>, etag: &str) -> Option<Body> {
    let found = match range {
        Some(range) => place.open_range(path, range).await,
        None => place.open(path).await,
    };
    match found {
        // One that was replaced meanwhile has another tag: the bytes would be of another version.
        Ok(found) => {
            let found = found.filter(|found| self::etag(&found.meta) == etag)?;
            Some(Body::from_stream(found.into_stream()))
        }
        Err(error) => {
            tracing::error!(%error, path, "a document cannot be read");
            None
        }
    }
}

/// The answer where there is no document. A package that was removed for what is withdrawn is gone: its manifest, by
/// which it was refused before, is too.
async fn missing(shared: &Shared, path: &str) -> Response {
    if !paths::is_package(path) || shared.takedowns().is_none() {
        return not_found();
    }
    match shared.publication().package_was_removed(path).await {
        Ok(true) => package_withdrawn(),
        Ok(false) => not_found(),
        Err(error) => {
            tracing::error!(%error, path, "it cannot be told whether a package was removed");
            unavailable()
        }
    }
}

/// Answers with a document of a set by rule, if the publication has that set.
pub(crate) async fn answer_of_set(
    shared: &Shared,
    path: &str,
    method: &Method,
    asked: &HeaderMap,
) -> Response {
    let sets = &shared.publication().sets;
    let is_there = paths::of_set(path).is_some_and(|(name, rest)| {
        paths::is_document(rest) && sets.iter().any(|set| set.rule().name() == name)
    });
    if is_there { answer(shared, path, method, asked).await } else { not_found() }
}

/// The headers of a document.
pub(crate) fn described(path: &str, etag: &str, modified: Timestamp) -> HeaderMap {
    let path = paths::of_set(path).map_or(path, |(_, rest)| rest);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(path)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.extend(etag.parse().ok().map(|value| (header::ETAG, value)));
    headers.extend(http_date(modified).map(|value| (header::LAST_MODIFIED, value)));
    if path == paths::PAGE {
        // It has no scripts, no styles, no images.
        let policy = HeaderValue::from_static("default-src 'none'");
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers
}

/// The answer to a reader that has this version, or asks for another one. None if it is to get the document.
pub(crate) fn unmet(
    asked: &HeaderMap,
    etag: &str,
    modified: Timestamp,
    headers: &HeaderMap,
) -> Option<Response> {
    match condition(asked, etag, modified) {
        Condition::NotModified => Some((StatusCode::NOT_MODIFIED, headers.clone()).into_response()),
        Condition::Failed => Some(StatusCode::PRECONDITION_FAILED.into_response()),
        Condition::Met => None,
    }
}

/// The store's own validator, of a large document: it changes with each write.
fn etag(meta: &ObjectMeta) -> String {
    let given = meta.e_tag.as_deref().map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned());
    let plain = given.filter(|tag| tag.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
    let tag = plain.unwrap_or_else(|| format!("{:x}-{:x}", meta.last_modified.timestamp_micros(), meta.size));
    format!("\"{tag}\"")
}

fn media_type(path: &str) -> &'static str {
    match path {
        paths::PAGE => "text/html; charset=utf-8",
        paths::ROBOTS => "text/plain; charset=utf-8",
        path if paths::is_package(path) => "application/zip",
        _ => "application/xml",
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use object_store::ObjectStoreExt as _;
    use publish::{Base, Publication};
    use store::{SourceMarker, Store};
    use testkit::gated::GatedObjects;

    use super::*;
    use crate::settings::Settings;
    use crate::shared::Held;

    #[tokio::test]
    async fn a_large_package_is_read_only_where_its_bytes_are_sent() {
        let (objects, gate) = GatedObjects::closed();
        gate.open(1);
        let path = "resourcedump/a.zip";
        let package: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        objects.put(&path.into(), package.clone().into()).await.unwrap();
        let publication = Publication::of_documents(
            Place::bucket("memory", objects.clone()),
            Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
            SourceMarker::new("one".parse().unwrap(), "http://e.org/"),
        );
        let shared = Shared::of_held(publication, Held::Harvest(Store::in_memory()), &Settings::default());
        // The status, the tag, the content, and how many GETs it took.
        let ask = async |method: Method, asked: &[(HeaderName, &str)]| {
            let asked = asked.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            let before = objects.gets();
            let response = answer(&shared, path, &method, &asked).await;
            let (head, body) = response.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let etag = head.headers[header::ETAG].to_str().unwrap().to_owned();
            (head.status.as_u16(), etag, body, objects.gets() - before)
        };
        let (status, etag, body, gets) = ask(Method::HEAD, &[]).await;
        assert_eq!((status, body.len(), gets), (200, 0, 0));
        let (status, _, body, gets) = ask(Method::GET, &[(header::IF_NONE_MATCH, etag.as_str())]).await;
        assert_eq!((status, body.len(), gets), (304, 0, 0));
        let (status, _, body, gets) = ask(Method::GET, &[(header::RANGE, "bytes=70000-70009")]).await;
        assert_eq!((status, &body[..], gets), (206, &package[70_000..70_010], 1));
        let (status, _, body, gets) = ask(Method::GET, &[]).await;
        assert!(status == 200 && body == package && gets == 1, "{status}, {} bytes, {gets} GETs", body.len());
    }
}
