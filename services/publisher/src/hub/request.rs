//! Requests to the hub: 202 to what is well-formed, before the subscriber is asked (WebSub, 5.1).

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::TryStreamExt as _;
use websub::{FORM, Mode, SubscriptionRequest};

use super::Hub;

/// The longest body: two URLs, a secret, and what they take as a form.
const MOST_BYTES: usize = 16 * 1024;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);

/// Answers a request to the hub.
pub(crate) async fn answer(hub: &Hub, method: &Method, headers: &HeaderMap, body: Body) -> Response {
    if *method != Method::POST {
        return status(hub, method);
    }
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case(FORM) {
        return said(StatusCode::UNSUPPORTED_MEDIA_TYPE, &format!("send a request to this hub as {FORM}"));
    }
    let form = match tokio::time::timeout(BODY_TIME, read(body)).await {
        Ok(Ok(Some(form))) => form,
        Ok(Ok(None)) => return said(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long"),
        Ok(Err(_)) => return said(StatusCode::BAD_REQUEST, "the request broke off"),
        Err(_) => return said(StatusCode::REQUEST_TIMEOUT, "the request came too slowly"),
    };
    let request = match SubscriptionRequest::parse(&String::from_utf8_lossy(&form)) {
        Ok(request) => request,
        Err(error) => return said(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let topic = hub.0.channel.topic.as_str();
    if request.topic != topic {
        return said(StatusCode::NOT_FOUND, &format!("this hub has one topic, {topic}"));
    }
    if request.mode == Mode::Subscribe
        && let Err(full) = hub.has_room(&request.callback)
    {
        hub.0.metrics.no_room();
        return later(&full.to_string());
    }
    let Some(permit) = hub.0.verifications.begin(&request.callback) else {
        hub.0.metrics.no_room();
        return later("this hub asks many subscribers to confirm; try again in a minute");
    };
    hub.verify(request, permit);
    said(StatusCode::ACCEPTED, "the callback is asked to confirm")
}

/// What the hub is, for people and monitors.
fn status(hub: &Hub, method: &Method) -> Response {
    let mut text = format!(
        "This is the WebSub hub of {}. Subscribe with a POST (WebSub, section 5.1).\nsubscribers {}\n",
        hub.0.channel.topic,
        hub.0.registry.count()
    );
    for (name, count) in hub.0.metrics.counts() {
        text.push_str(&format!("{name} {count}\n"));
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(text) };
    (headers, body).into_response()
}

/// The body. None if it is too long.
async fn read(body: Body) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut pieces = body.into_data_stream();
    let mut form = Vec::new();
    while let Some(piece) = pieces.try_next().await? {
        if form.len() + piece.len() > MOST_BYTES {
            return Ok(None);
        }
        form.extend_from_slice(&piece);
    }
    Ok(Some(form))
}

fn said(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}

fn later(text: &str) -> Response {
    let pause = [(header::RETRY_AFTER, HeaderValue::from_static("60"))];
    (StatusCode::SERVICE_UNAVAILABLE, pause, format!("{text}\n")).into_response()
}
