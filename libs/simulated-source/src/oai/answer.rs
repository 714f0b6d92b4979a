//! The responses of a repository: protocol, files, pages, and failures.

use std::io::Write as _;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::request::Parts;
use http::{Method, Request, StatusCode, header};

use super::fault::{Failure, RepositoryFault as Fault, value};
use super::files::MEDIA_TYPE;
use super::inner::{Changing, Inner};
use super::landing;
use super::respond::{Reply, respond};
use super::xml::LATIN1_MARK;
use crate::serving::cut_off;

const MAX_FORM_BYTES: usize = 64 * 1024;
const PAGE: &str = "<!DOCTYPE html><html><head><title>Just a moment</title></head><body><p>Checking your browser.<br></body></html>\n";

/// The only handler.
pub(super) async fn answer(State(inner): State<Arc<Inner>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let form = if parts.method == Method::POST { to_bytes(body, MAX_FORM_BYTES).await.ok() } else { None };
    let raw = match form {
        Some(form) => String::from_utf8_lossy(&form).into_owned(),
        None => parts.uri.query().unwrap_or_default().to_owned(),
    };
    let arguments: Vec<(String, String)> =
        form_urlencoded::parse(raw.as_bytes()).map(|(name, value)| (name.into(), value.into())).collect();
    let verb = arguments.iter().find(|(name, _)| name == "verb").map(|(_, value)| value.as_str());
    let path = parts.uri.path();
    let contact = parts.headers.get(header::FROM).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let what = verb.unwrap_or(path);
    let _open = Open::arrived(&inner, what, format!("{path}?{raw}"), contact);
    inner.gate.pass(what).await;
    if let Some(latency) = inner.spec.latency {
        tokio::time::sleep(latency).await;
    }
    let response =
        if path == "/oai" { protocol(&inner, &parts, &arguments, &raw) } else { site(&inner, &parts) };
    inner.changing().log.answered(response.status().as_u16());
    response
}

/// A request that is open: until its response goes out, or until its client is gone.
struct Open<'a>(&'a Inner);

impl<'a> Open<'a> {
    fn arrived(inner: &'a Inner, what: &str, request: String, contact: &str) -> Self {
        inner.changing().log.arrived(what, request, contact);
        Self(inner)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.changing().log.left();
    }
}

fn protocol(inner: &Inner, parts: &Parts, arguments: &[(String, String)], raw: &str) -> Response {
    let mut changing = inner.changing();
    let changing = &mut *changing;
    let verb = arguments.iter().find(|(name, _)| name == "verb").map_or("", |(_, value)| value.as_str());
    let is_served = matches!(verb, "ListRecords" | "ListIdentifiers" | "GetRecord");
    let failure = if is_served { failure(inner, changing) } else { None };
    match failure {
        Some(Failure::Status(status, seconds)) => {
            let mut response = plain(status, "text/plain", format!("{status}, as the test wants it\n"));
            if seconds > 0 {
                changing.log.rest(seconds);
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            return response;
        }
        Some(Failure::Html(status)) => return plain(status, "text/html; charset=utf-8", PAGE),
        Some(Failure::Empty(status)) => return plain(status, "text/xml; charset=utf-8", ""),
        Some(Failure::Cut(_) | Failure::Broken(_) | Failure::Lost(_)) | None => {}
    }
    let (text, status) = match respond(inner, changing, arguments, raw) {
        Reply::Xml(text, status) => (text, status),
        Reply::Html(status) => return plain(status, "text/html; charset=utf-8", PAGE),
        Reply::Status(status) => return plain(status, "text/plain", format!("{status}\n")),
    };
    if let Some(Failure::Lost(status)) = failure {
        return plain(status, "text/plain", format!("{status}, as the test wants it\n"));
    }
    let mut bytes = latin1(text);
    if let Some(Failure::Cut(length)) = failure {
        bytes.truncate(length);
    }
    if let Some(Failure::Broken(length)) = failure {
        let total = bytes.len();
        let body = Body::from_stream(cut_off(std::iter::once(Bytes::from(bytes)), length as u64));
        let builder = Response::builder().status(StatusCode::OK).header(header::CONTENT_LENGTH, total);
        return builder.header(header::CONTENT_TYPE, "text/xml").body(body).unwrap_or_default();
    }
    compressed(inner, changing, parts, bytes, status)
}

/// The failure of this response, if it fails.
fn failure(inner: &Inner, changing: &mut Changing) -> Option<Failure> {
    changing.served += 1;
    if let Some(failure) = changing.faults.take() {
        return Some(failure);
    }
    let per_mille = value!(changing.faults, Flaky)?;
    // A mix of seed and number, so that the same run fails at the same places.
    let mixed = (inner.spec.seed ^ changing.served).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let drawn = mixed ^ (mixed >> 29);
    if drawn % 1_000 >= u64::from(per_mille) {
        return None;
    }
    Some(match drawn / 1_000 % 4 {
        0 => Failure::Status(500, 0),
        1 => Failure::Status(422, 0),
        2 => Failure::Cut(2_000),
        _ => Failure::Html(200),
    })
}

/// The bytes of an answer: marks become bytes of ISO 8859-1.
pub(super) fn latin1(text: String) -> Vec<u8> {
    if !text.contains(LATIN1_MARK) {
        return text.into_bytes();
    }
    let mut bytes = Vec::with_capacity(text.len());
    for (number, part) in text.split(LATIN1_MARK).enumerate() {
        if number > 0 {
            bytes.push(0xe9);
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

fn compressed(inner: &Inner, changing: &Changing, parts: &Parts, bytes: Vec<u8>, status: u16) -> Response {
    let accepted = parts.headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let accepts = accepted.is_some_and(|value| value.contains("gzip"));
    let is_broken = accepts && changing.faults.has(&Fault::BrokenGzip);
    let is_unlabelled = changing.faults.has(&Fault::UnlabelledGzip);
    if !(is_broken || is_unlabelled || (inner.spec.gzip && accepts)) {
        return plain(status, "text/xml; charset=utf-8", bytes);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    let mut packed = packed.unwrap_or_default();
    if is_broken {
        packed.truncate(packed.len() / 2);
    }
    let mut response = plain(status, "text/xml; charset=utf-8", packed);
    if !is_unlabelled {
        let value = header::HeaderValue::from_static("gzip");
        response.headers_mut().insert(header::CONTENT_ENCODING, value);
    }
    response
}

/// Everything beside the protocol: home page, landing pages, files.
fn site(inner: &Inner, parts: &Parts) -> Response {
    let path = parts.uri.path();
    let mut steps = path.trim_start_matches('/').split('/');
    let (first, index) = (steps.next().unwrap_or_default(), steps.next().and_then(|step| step.parse().ok()));
    let number = steps.next().and_then(|step| step.parse().ok());
    let is_live = |index: u64| inner.changing().world.get(index).is_some_and(|state| !state.deleted);
    match (first, index, number) {
        ("", None, None) => {
            let base = inner.base();
            let page = format!(
                "<!DOCTYPE html>\n<html><head><title>A simulated repository</title></head><body>\
                 <p><a href=\"{base}?verb=Identify\">OAI-PMH</a></p></body></html>\n"
            );
            plain(200, "text/html; charset=utf-8", page)
        }
        ("robots.txt", None, None) => {
            let path = if inner.changing().faults.has(&Fault::Disallowed) { "/oai" } else { "" };
            plain(200, "text/plain", format!("User-agent: *\nDisallow: {path}\n"))
        }
        ("item", Some(index), None) if is_live(index) => landing::answer(inner, index),
        ("files", Some(index), Some(number)) if number < inner.spec.files && is_live(index) => {
            let state = inner.changing().world.file(index, number);
            if !state.is_served {
                return plain(404, "text/plain", format!("nothing at {path}\n"));
            }
            plain(200, MEDIA_TYPE, inner.content.whole(inner.file(index, number), state.version))
        }
        _ => plain(404, "text/plain", format!("nothing at {path}\n")),
    }
}

pub(super) fn plain(status: u16, media_type: &str, body: impl Into<Body>) -> Response {
    let builder = Response::builder().status(status).header(header::CONTENT_TYPE, media_type);
    builder.body(body.into()).unwrap_or_default()
}
