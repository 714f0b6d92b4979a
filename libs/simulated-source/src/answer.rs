//! The responses of a Source: documents, resources, conditions, ranges, and faults.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{Method, Request, StatusCode, header};

use super::condition::{Validators, range};
use super::content::Pieces;
use super::document::Page;
use super::fault::Fault;
use super::inner::Inner;
use super::open::until_sent;
use super::requests;
use super::xml::Damage;
use crate::serving::cut_off;

/// The only handler: counts, waits, and dispatches by path.
pub(crate) async fn answer(State(inner): State<Arc<Inner>>, request: Request<Body>) -> Response {
    let path = request.uri().path();
    inner.counters.arrived();
    let any = inner.counters.open();
    let open = if inner.is_resource_path(path) {
        Some(inner.counters.resource())
    } else {
        inner.counters.document();
        None
    };
    if inner.spec.count_paths {
        inner.counters.path(path);
    }
    if open.is_some() {
        inner.gate.pass(path).await;
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
    until_sent(response, any)
}

fn respond(
    inner: &Arc<Inner>,
    request: &Request<Body>,
    fault: Option<&Fault>,
    open: Option<requests::Open>,
) -> Response {
    let path = request.uri().path();
    match fault {
        Some(Fault::Status { code, retry_after, .. }) => {
            let code = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = text(code, "text/plain", format!("{code}, as the test wants it\n"));
            if let Some(seconds) = retry_after {
                inner.counters.rest(Duration::from_secs(*seconds));
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
        let delay = inner.spec.crawl_delay.map(|delay| format!("Crawl-delay: {}\n", delay.as_secs_f64()));
        let delay = delay.unwrap_or_default();
        let list = inner.uri("resourcelist.xml");
        let robots = format!("User-agent: *\nDisallow:\n{delay}\nSitemap: {list}\n");
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
    // The middle is found by writing the document once more, only if a fault needs it.
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
    open: Option<requests::Open>,
) -> Option<Response> {
    let (index, present) = inner.present(request.uri().path())?;
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

/// The pieces of a resource, which count as open until the last one is sent: never longer than the client
/// sees it.
struct Open {
    pieces: Pieces,
    open: Option<requests::Open>,
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
