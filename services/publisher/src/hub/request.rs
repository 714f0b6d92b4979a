//! Requests to the hub: 202 to what is well-formed, before the subscriber is asked (WebSub, 5.1).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use websub::{Mode, SubscriptionRequest};

use super::Hub;
use crate::answers::{later, said};
use crate::form;

/// The longest body: two URLs, a secret, and what they take as a form.
const MOST_BYTES: usize = 16 * 1024;

/// Answers a request to the hub.
pub(crate) async fn answer(hub: &Hub, method: &Method, headers: &HeaderMap, body: Body) -> Response {
    if *method != Method::POST {
        return status(hub, method);
    }
    let form = match form::read(headers, body, MOST_BYTES).await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    let request = match SubscriptionRequest::parse(&form) {
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
