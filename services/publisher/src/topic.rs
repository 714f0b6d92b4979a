//! The topic of Change Notifications: it leads subscribers to the hubs, and has the newest payload.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use publish::paths;

use crate::answers::not_found;
use crate::shared::Shared;

/// Answers with the newest payload since the start, or nothing.
pub(crate) fn answer(shared: &Shared, method: &Method) -> Response {
    let publication = shared.publication();
    if publication.hubs.is_empty() {
        return not_found();
    }
    let newest = shared.newest();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
    headers.insert(header::CONTENT_LENGTH, newest.len().into());
    let topic = (publication.base.url(paths::TOPIC), "self");
    let hubs = publication.hubs.iter().map(|hub| (hub.to_string(), "hub"));
    let links = std::iter::once(topic).chain(hubs).map(|(url, rel)| format!("<{url}>; rel=\"{rel}\""));
    let links = links.collect::<Vec<_>>().join(", ");
    headers.extend(links.parse().ok().map(|value| (header::LINK, value)));
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(newest) };
    (headers, body).into_response()
}
