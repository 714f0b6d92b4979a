//! Requests to the hub: 202 to what is well-formed, before the subscriber is asked (WebSub, 5.1).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use publish::Admission;
use websub::{Mode, SubscriptionRequest};

use super::Front;
use super::front::NotLeft;
use crate::answers::{later, said, unavailable};
use crate::form;

/// The longest body: two URLs, a secret, and what they take as a form.
const MOST_BYTES: usize = 16 * 1024;

/// Answers a request to the hub. `admission` is what its sender was admitted by.
pub(crate) async fn answer(
    front: &Front,
    method: &Method,
    headers: &HeaderMap,
    admission: Admission,
    body: Body,
) -> Response {
    if *method != Method::POST {
        return status(front, method);
    }
    let form = match form::read(headers, body, MOST_BYTES).await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    let request = match SubscriptionRequest::parse(&form) {
        Ok(request) => request,
        Err(error) => return said(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let topic = front.channel().topic.as_str();
    if request.topic != topic {
        return said(StatusCode::NOT_FOUND, &format!("this hub has one topic, {topic}"));
    }
    let metrics = front.shared().metrics();
    if request.mode == Mode::Subscribe
        && let Some(Err(full)) = front.hub().map(|hub| hub.has_room(&request.callback))
    {
        metrics.no_room();
        return later(&full.to_string());
    }
    let Some(permit) = front.room().verifications().begin(&request.callback) else {
        metrics.no_room();
        return later("this hub asks many subscribers to confirm; try again in a minute");
    };
    match front {
        Front::Alone(hub) => {
            hub.verify(request, permit, admission);
            accepted()
        }
        Front::Fleet(front) => match front.leave(&request, admission).await {
            Ok(()) => accepted(),
            Err(full @ (NotLeft::Full | NotLeft::ManyHubs(_))) => {
                metrics.no_room();
                later(&full.to_string())
            }
            Err(error) => {
                tracing::error!(%error, "a request to a hub cannot be noted now");
                unavailable()
            }
        },
    }
}

/// The answer to a request that is verified soon.
fn accepted() -> Response {
    said(StatusCode::ACCEPTED, "the callback is asked to confirm")
}

/// What the hub is, for people and monitors.
fn status(front: &Front, method: &Method) -> Response {
    let topic = &front.channel().topic;
    let mut text =
        format!("This is the WebSub hub of {topic}. Subscribe with a POST (WebSub, section 5.1).\n");
    // Another process knows it.
    if let Some(hub) = front.hub() {
        text.push_str(&format!("subscribers {}\n", hub.subscribers()));
    }
    for (name, count) in front.shared().metrics().counts() {
        text.push_str(&format!("{name} {count}\n"));
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(text) };
    (headers, body).into_response()
}
