//! A hub asks whether a subscription, or its end, was intended (WebSub, 5.3), or denies it (5.2).

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{AskedMode, ControlError, SubscriptionId, SubscriptionStep};
use websub::{Intent, Mode};

use super::Callbacks;
use super::callback_lookup::CallbackLookup;

/// `GET` at a callback. All requests that the fleet did not intend get the same response.
pub(super) async fn verify(
    State(callbacks): State<Callbacks>,
    Path((id, part)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let known = match callbacks.look_up(&id, &part).await {
        Ok(known) => known,
        Err(error) => return not_now(&error),
    };
    let Ok(intent) = Intent::parse(query.as_deref().unwrap_or_default()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match (known, intent) {
        (CallbackLookup::Nothing, _) => StatusCode::NOT_FOUND.into_response(),
        (CallbackLookup::RateLimited(seconds), _) => too_many(seconds),
        (CallbackLookup::Found { subscription, .. }, intent) => {
            if let Err(seconds) = callbacks.0.limiter.count(&subscription.id) {
                return too_many(seconds);
            }
            answer(&callbacks, &subscription.id, intent).await
        }
        // The subscription has ended, so a repeated question about its end gets a yes.
        (CallbackLookup::Gone, Intent::Verify { mode: Mode::Unsubscribe, challenge, .. }) => echo(challenge),
        (CallbackLookup::Gone, Intent::Denied { .. }) => StatusCode::OK.into_response(),
        (CallbackLookup::Gone, Intent::Verify { mode: Mode::Subscribe, .. }) => {
            StatusCode::NOT_FOUND.into_response()
        }
    }
}

async fn answer(callbacks: &Callbacks, id: &SubscriptionId, intent: Intent) -> Response {
    let (step, challenge) = match intent {
        Intent::Verify { mode, topic, challenge, lease_seconds } => {
            let mode = match mode {
                Mode::Subscribe => AskedMode::Subscribe,
                Mode::Unsubscribe => AskedMode::Unsubscribe,
            };
            (SubscriptionStep::Verify { mode, topic, lease_seconds }, Some(challenge))
        }
        Intent::Denied { topic, reason } => (SubscriptionStep::Deny { topic, reason }, None),
    };
    let fleet = &callbacks.0.fleet;
    let now = fleet.clock.now();
    match fleet.subscriptions.step(id, &step, now).await {
        Ok(found) => {
            let state = found.as_ref().map_or("ended", |found| found.status(now));
            tracing::info!(subscription.id = %id, state, "a hub verified a subscription");
            challenge.map_or_else(|| StatusCode::OK.into_response(), echo)
        }
        Err(ControlError::NotRequested(why)) => {
            tracing::info!(subscription.id = %id, %why, "a hub asks about a request that was not sent");
            StatusCode::NOT_FOUND.into_response()
        }
        Err(ControlError::Absent { .. }) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => not_now(&error),
    }
}

/// A yes: the response echoes the challenge. It is untrusted text, so browsers must not interpret it.
fn echo(challenge: String) -> Response {
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    let nosniff = HeaderValue::from_static("nosniff");
    let headers =
        [(header::CONTENT_TYPE, text), (HeaderName::from_static("x-content-type-options"), nosniff)];
    (headers, challenge).into_response()
}

pub(super) fn too_many(seconds: u64) -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, HeaderValue::from(seconds))]).into_response()
}

pub(super) fn not_now(error: &dyn std::error::Error) -> Response {
    tracing::warn!(%error, "a hub has to send again later");
    let soon = [(header::RETRY_AFTER, HeaderValue::from(5_u64))];
    (StatusCode::SERVICE_UNAVAILABLE, soon).into_response()
}
