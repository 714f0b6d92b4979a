//! How a Source answers: documents, resources, conditions, ranges, and faults in between.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Method, Request, StatusCode, header};

use super::clock::SimTime;
use super::content::Pieces;
use super::document::{Damage, Page};
use super::fault::Fault;
use super::inner::Inner;
use super::requests::InFlight;
use crate::serving::cut_off;

/// The one handler: counts, waits, and hands over to what lies at the path.
pub(crate) async fn answer(State(inner): State<Arc<Inner>>, request: Request<Body>) -> Response {
    let path = request.uri().path();
    let open = if inner.is_resource_path(path) {
        Some(inner.counters.resource())
    } else {
        inner.counters.document();
        None
    };
    if inner.spec.count_paths {
        inner.counters.path(path);
    }
    if let Some(latency) = inner.spec.latency {
        tokio::time::sleep(latency).await;
    }
    let fault = inner.faults().take(path);
    if let Some(Fault::Slow(delay)) = fault {
        tokio::time::sleep(delay).await;
    }
    let response = respond(&inner, &request, fault.as_ref(), open);
    inner.counters.answered(response.status().as_u16());
    response
}

fn respond(
    inner: &Arc<Inner>,
    request: &Request<Body>,
    fault: Option<&Fault>,
    open: Option<InFlight>,
) -> Response {
    let path = request.uri().path();
    match fault {
        Some(Fault::Status { code, retry_after, .. }) => {
            let code = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = text(code, "text/plain", format!("{code}, as the test wants it\n"));
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, (*seconds).into());
            }
            return response;
        }
        Some(Fault::Redirect(to)) => {
            let to = if to.starts_with('/') { format!("{}{to}", inner.base()) } else { to.clone() };
            let builder = Response::builder().status(StatusCode::FOUND).header(header::LOCATION, to);
            return builder.body(Body::empty()).unwrap_or_default();
        }
        Some(Fault::HtmlPage) => {
            let page = "<!DOCTYPE html><html><head><title>Sorry</title></head><body><p>Down for maintenance.<br></body></html>\n";
            return text(StatusCode::OK, "text/html; charset=utf-8", page.to_owned());
        }
        _ => {}
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET and HEAD\n".to_owned());
    }
    let found = if path == "/" {
        Some(home(inner))
    } else if path == "/robots.txt" {
        let robots = format!("User-agent: *\nDisallow:\n\nSitemap: {}\n", inner.uri("resourcelist.xml"));
        Some(text(StatusCode::OK, "text/plain", robots))
    } else if open.is_some() {
        resource(inner, request, fault, open)
    } else {
        document(inner, request, fault)
    };
    found.unwrap_or_else(|| text(StatusCode::NOT_FOUND, "text/plain", format!("nothing at {path}\n")))
}

fn home(inner: &Inner) -> Response {
    let link = inner.uri("capabilitylist.xml");
    let page = format!(
        "<!DOCTYPE html>\n<html><head><title>A simulated Source</title>\n<link rel=\"resourcesync\" \
         href=\"{link}\">\n</head><body><p>{} resources.</p></body></html>\n",
        inner.world().live()
    );
    text(StatusCode::OK, "text/html; charset=utf-8", page)
}

fn document(inner: &Arc<Inner>, request: &Request<Body>, fault: Option<&Fault>) -> Option<Response> {
    let page = Page::at(request.uri().path(), &inner.spec.set)?;
    let document = inner.document(page)?;
    let validated = Validators { etag: document.etag.clone(), modified: document.modified };
    if validated.unchanged_for(request.headers()) {
        return Some(validated.respond(StatusCode::NOT_MODIFIED, None, Body::empty()));
    }
    let damage = match fault {
        Some(Fault::TruncateDocument) => Some(Damage::Truncated),
        Some(Fault::MalformedDocument) => Some(Damage::Malformed),
        _ => None,
    };
    // The middle is found by writing the document once more: only where a fault asks for it.
    let damage = damage.and_then(|damage| Some((damage, inner.document(page)?.count() / 2)));
    let pieces = document.pieces(inner.spec.gzip, damage);
    let body = if *request.method() == Method::HEAD { Body::empty() } else { body(pieces, fault) };
    let media_type = if inner.spec.gzip { "application/gzip" } else { "application/xml" };
    let mut response = validated.respond(StatusCode::OK, None, body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    Some(response)
}

fn resource(
    inner: &Arc<Inner>,
    request: &Request<Body>,
    fault: Option<&Fault>,
    open: Option<InFlight>,
) -> Option<Response> {
    let index = inner.resource_index(request.uri().path())?;
    let present = {
        let world = inner.world();
        world.at(index, world.now())?
    };
    let validated =
        Validators { etag: format!("\"{index}-{}\"", present.version), modified: present.modified };
    if validated.unchanged_for(request.headers()) {
        return Some(validated.respond(StatusCode::NOT_MODIFIED, None, Body::empty()));
    }
    let length = inner.content.length(index, present.version);
    let asked =
        if validated.allow_range(request.headers()) { range(request.headers(), length) } else { None };
    let (status, part) = match asked {
        None => (StatusCode::OK, 0..length),
        Some(Ok(part)) => (StatusCode::PARTIAL_CONTENT, part),
        Some(Err(())) => {
            let mut response = text(StatusCode::RANGE_NOT_SATISFIABLE, "text/plain", String::new());
            let all = header::HeaderValue::from_str(&format!("bytes */{length}")).ok()?;
            response.headers_mut().insert(header::CONTENT_RANGE, all);
            return Some(response);
        }
    };
    let mut pieces = inner.content.pieces(index, present.version, part.start, part.end);
    if fault == Some(&Fault::WrongDigest) {
        pieces = pieces.spoiled();
    }
    let body = match *request.method() {
        Method::HEAD => Body::empty(),
        _ => body(Open { pieces, open }, fault),
    };
    let size = part.end - part.start;
    let mut response = validated.respond(status, Some(size), body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::ACCEPT_RANGES, header::HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT {
        let told = format!("bytes {}-{}/{length}", part.start, part.end - 1);
        headers.insert(header::CONTENT_RANGE, header::HeaderValue::from_str(&told).ok()?);
    }
    Some(response)
}

/// What tells one state of a document or resource from another.
struct Validators {
    etag: String,
    modified: SimTime,
}

impl Validators {
    /// Whether the client already has this state (RFC 9110, 13.1.2 and 13.1.3).
    fn unchanged_for(&self, headers: &HeaderMap) -> bool {
        if let Some(tags) = value(headers, header::IF_NONE_MATCH) {
            return tags.split(',').any(|tag| matches!(tag.trim(), "*") || tag.trim() == self.etag);
        }
        let since = value(headers, header::IF_MODIFIED_SINCE).and_then(SimTime::from_http_date);
        since.is_some_and(|since| self.modified <= since)
    }

    /// Whether `If-Range` lets a range be served (RFC 9110, 13.1.5).
    fn allow_range(&self, headers: &HeaderMap) -> bool {
        match value(headers, header::IF_RANGE) {
            Some(tag) if tag.starts_with('"') => tag == self.etag,
            Some(date) => SimTime::from_http_date(date) == Some(self.modified),
            None => true,
        }
    }

    fn respond(&self, status: StatusCode, length: Option<u64>, body: Body) -> Response {
        let mut builder = Response::builder()
            .status(status)
            .header(header::ETAG, &self.etag)
            .header(header::LAST_MODIFIED, self.modified.http_date());
        if let Some(length) = length {
            builder = builder.header(header::CONTENT_LENGTH, length);
        }
        builder.body(body).unwrap_or_default()
    }
}

/// The pieces of a resource, which count as open until the last one is handed over: never longer than the client sees it.
struct Open {
    pieces: Pieces,
    open: Option<InFlight>,
}

impl Iterator for Open {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let piece = self.pieces.next();
        if self.pieces.is_done() {
            self.open = None;
        }
        piece
    }
}

/// A single range of `Range: bytes=…`, cut to what there is; `Err` when it lies outside, `None` when there is none to heed.
fn range(headers: &HeaderMap, length: u64) -> Option<Result<Range<u64>, ()>> {
    let (first, last) = value(headers, header::RANGE)?.strip_prefix("bytes=")?.split_once('-')?;
    let part = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(suffix)) if first.is_empty() => length.saturating_sub(suffix)..length,
        _ => return None,
    };
    Some(if part.start < part.end { Ok(part) } else { Err(()) })
}

fn value(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn text(status: StatusCode, media_type: &'static str, text: String) -> Response {
    let builder = Response::builder().status(status).header(header::CONTENT_TYPE, media_type);
    builder.body(Body::from(text)).unwrap_or_default()
}

fn body(pieces: impl Iterator<Item = Bytes> + Send + 'static, fault: Option<&Fault>) -> Body {
    match fault {
        Some(Fault::CutOff { after, .. }) => Body::from_stream(cut_off(pieces, *after)),
        _ => Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranged(text: &str) -> Option<Result<Range<u64>, ()>> {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, text.parse().unwrap());
        range(&headers, 100)
    }

    #[test]
    fn ranges_are_cut_to_the_length_refused_outside_it_and_ignored_when_odd() {
        assert_eq!(ranged("bytes=0-9"), Some(Ok(0..10)));
        assert_eq!(ranged("bytes=90-"), Some(Ok(90..100)));
        assert_eq!(ranged("bytes=90-900"), Some(Ok(90..100)));
        assert_eq!(ranged("bytes=-5"), Some(Ok(95..100)));
        assert_eq!(ranged("bytes=100-"), Some(Err(())));
        assert_eq!(ranged("bytes=9-1"), None);
        assert_eq!(ranged("bytes=0-1,5-6"), None);
        assert_eq!(ranged("lines=1-2"), None);
    }
}
