//! A delivery from a hub: its signature decides. It is queued first, and answered then (CN-4).

use std::sync::Arc;

use ::bus::{BusError, MessageId, Payload, Queue};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{Hint, Subscription, SubscriptionState};
use data_encoding::HEXLOWER;
use model::{ChangeNotification, Push};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use url::Url;
use websub::{Authenticity, Links, PushKey, SIGNATURE_HEADER, judge};

use super::Callbacks;
use super::callback_lookup::CallbackLookup;
use super::verify::{not_now, too_many};
use crate::body::{self, BodyError};
use crate::verdicts::DeliveryVerdict as Verdict;

/// `POST` at a callback.
pub(super) async fn deliver(
    State(callbacks): State<Callbacks>,
    Path((id, part)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let metrics = &callbacks.0.metrics;
    let (verdict, response) = match callbacks.look_up(&id, &part).await {
        Ok(CallbackLookup::Found { subscription, key }) => {
            let (verdict, response) = callbacks.receive(&subscription, key, &headers, body).await;
            callbacks.0.counts.count(&subscription.id, verdict, callbacks.0.fleet.clock.now());
            if !matches!(verdict, Verdict::Queued | Verdict::Duplicate | Verdict::Hinted) {
                let verdict = verdict.as_str();
                tracing::debug!(subscription.id = %subscription.id, verdict, "delivery dropped");
            }
            (verdict, response)
        }
        Ok(CallbackLookup::RateLimited(seconds)) => (Verdict::RateLimited, too_many(seconds)),
        Ok(CallbackLookup::Gone) => status(Verdict::Ended, StatusCode::GONE),
        Ok(CallbackLookup::Nothing) => status(Verdict::Unknown, StatusCode::NOT_FOUND),
        Err(error) => (Verdict::NotQueued, not_now(&error)),
    };
    metrics.delivered(verdict);
    response
}

/// A verdict with the response that has this status.
fn status(verdict: Verdict, status: StatusCode) -> (Verdict, Response) {
    (verdict, status.into_response())
}

impl Callbacks {
    async fn receive(
        &self,
        subscription: &Subscription,
        key: &PushKey,
        headers: &HeaderMap,
        body: Body,
    ) -> (Verdict, Response) {
        let limits = &self.0.limits;
        if let Err(seconds) = self.0.limiter.count(&subscription.id) {
            return (Verdict::RateLimited, too_many(seconds));
        }
        if subscription.state == SubscriptionState::Ending {
            return status(Verdict::Ended, StatusCode::GONE);
        }
        if body::is_too_long(headers, limits.body_bytes) {
            return status(Verdict::Oversized, StatusCode::PAYLOAD_TOO_LARGE);
        }
        // Held until the payload is queued, because the permits bound the memory.
        let Some(_permit) = self.0.limiter.permit(&subscription.id) else {
            return (Verdict::RateLimited, too_many(1));
        };
        let body = match body::receive(headers, body, limits.body_bytes, limits.body_time).await {
            Ok(body) => body,
            Err(BodyError::TooLong) => return status(Verdict::Oversized, StatusCode::PAYLOAD_TOO_LARGE),
            Err(BodyError::Broken) => return status(Verdict::Slow, StatusCode::BAD_REQUEST),
            Err(BodyError::TooSlow) => return status(Verdict::Slow, StatusCode::REQUEST_TIMEOUT),
        };
        // A rejected delivery gets the same response as an accepted one, so that a forger learns nothing.
        match authenticate(subscription, key, headers, &body) {
            Err(Verdict::Unsigned) if self.admits_unsigned(subscription) => self.hint(subscription).await,
            Err(verdict) => status(verdict, StatusCode::ACCEPTED),
            Ok(()) => self.queue(subscription, body).await,
        }
    }

    /// Whether the operator accepts unsigned deliveries as hints.
    fn admits_unsigned(&self, subscription: &Subscription) -> bool {
        let source = self.0.fleet.sources.get(&subscription.source);
        source.is_some_and(|source| source.enabled && source.push == Push::Unsigned)
    }

    /// Gives the Source a hint. The payload is ignored, because everyone who knows the callback URL could have sent it.
    async fn hint(&self, subscription: &Subscription) -> (Verdict, Response) {
        let by = format!("hub {}", subscription.hub().unwrap_or_default());
        let given_at = self.0.fleet.clock.now();
        let hint = Hint { source: subscription.source.clone(), given_at, by, unproved: true };
        match timeout(self.0.limits.queue_time, self.0.fleet.hints.give(&hint)).await {
            Ok(Ok(())) => status(Verdict::Hinted, StatusCode::ACCEPTED),
            Ok(Err(error)) => (Verdict::NotQueued, not_now(&error)),
            Err(late) => (Verdict::NotQueued, not_now(&late)),
        }
    }

    async fn queue(&self, subscription: &Subscription, body: Vec<u8>) -> (Verdict, Response) {
        let id = message_id(subscription, &body);
        let notification = ChangeNotification {
            source: subscription.source.clone(),
            set: subscription.set.clone(),
            topic: subscription.topic.clone(),
            subscription: subscription.id.to_string(),
            received_at: self.0.fleet.clock.now(),
            body,
        };
        let queue = Queue::Notices { source: subscription.source.clone() };
        let publishing = self.0.fleet.bus.publish(queue, id, Payload::of(Arc::new(notification)));
        match timeout(self.0.limits.queue_time, publishing).await {
            Ok(Ok(published)) => {
                let verdict = if published.duplicate { Verdict::Duplicate } else { Verdict::Queued };
                status(verdict, StatusCode::ACCEPTED)
            }
            Ok(Err(error @ BusError::TooLarge { .. })) => {
                tracing::warn!(subscription.id = %subscription.id, %error, "a payload is too large for the bus");
                status(Verdict::Oversized, StatusCode::PAYLOAD_TOO_LARGE)
            }
            Ok(Err(error)) => (Verdict::NotQueued, not_now(&error)),
            Err(late) => (Verdict::NotQueued, not_now(&late)),
        }
    }
}

/// Verifies a delivery with the key under which its callback was found.
///
/// # Errors
/// Why the delivery is dropped.
fn authenticate(
    subscription: &Subscription,
    key: &PushKey,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), Verdict> {
    let signatures = headers.get_all(SIGNATURE_HEADER).iter().map(|value| value.as_bytes());
    match judge(&key.secret(subscription.id.as_str()), signatures, body) {
        Authenticity::Right(_) => {}
        Authenticity::Missing => return Err(Verdict::Unsigned),
        Authenticity::Unreadable(_) => return Err(Verdict::Unreadable),
        Authenticity::Wrong => return Err(Verdict::BadSignature),
    }
    let links = headers.get_all(header::LINK).iter().filter_map(|value| value.to_str().ok());
    // A topic that is no valid URL cannot be matched with a delivery.
    let base = Url::parse(&subscription.topic).map_err(|_| Verdict::Misdirected)?;
    match Links::parse(links, &base).topic {
        Some(topic) if !is_same(&topic, &subscription.topic) => Err(Verdict::Misdirected),
        _ => Ok(()),
    }
}

/// The message ID. It is the same for repeated deliveries.
fn message_id(subscription: &Subscription, body: &[u8]) -> MessageId {
    let mut hasher = Sha256::new();
    hasher.update(subscription.id.as_str());
    hasher.update(body);
    MessageId::new(format!("notices-{}", HEXLOWER.encode(&hasher.finalize())))
}

/// Whether two URLs are equal after normalization. Some hubs rewrite the URLs that they read.
fn is_same(one: &str, other: &str) -> bool {
    one == other || Url::parse(one).is_ok_and(|one| Url::parse(other) == Ok(one))
}
