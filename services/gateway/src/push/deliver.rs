//! A hub delivers: what it brings is judged by its bytes alone, queued, and only then answered (CN-4).

use ::bus::{BusError, MessageId, Queue};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{Subscription, SubscriptionState};
use data_encoding::HEXLOWER;
use futures::StreamExt as _;
use model::Notice;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use url::Url;
use websub::{Authenticity, Links, SIGNATURE_HEADER, judge};

use super::known::Known;
use super::verify::{not_now, too_many};
use super::{Callbacks, Verdict};

/// `POST` at a callback.
pub(super) async fn deliver(
    State(callbacks): State<Callbacks>,
    Path((id, part)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let metrics = &callbacks.0.metrics;
    let subscription = match callbacks.known(&id, &part).await {
        Ok(Known::Of(subscription)) => subscription,
        Ok(Known::Gone) => {
            metrics.delivered(Verdict::Ended);
            return StatusCode::GONE.into_response();
        }
        Ok(Known::Nothing) => {
            metrics.delivered(Verdict::Unknown);
            return StatusCode::NOT_FOUND.into_response();
        }
        Err(error) => {
            metrics.delivered(Verdict::NotQueued);
            return not_now(&error);
        }
    };
    let (verdict, response) = callbacks.take(&subscription, &headers, body).await;
    metrics.delivered(verdict);
    callbacks.0.tally.count(&subscription.id, verdict, callbacks.0.clock.now());
    if !matches!(verdict, Verdict::Queued | Verdict::Doubled) {
        let verdict = verdict.as_str();
        tracing::debug!(subscription.id = %subscription.id, verdict, "a delivery is not taken");
    }
    response
}

impl Callbacks {
    async fn take(
        &self,
        subscription: &Subscription,
        headers: &HeaderMap,
        body: Body,
    ) -> (Verdict, Response) {
        let say = |verdict, status: StatusCode| (verdict, status.into_response());
        let limits = &self.0.limits;
        if let Err(seconds) = self.0.hands.count(&subscription.id) {
            return (Verdict::Flooding, too_many(seconds));
        }
        if subscription.state == SubscriptionState::Ending {
            return say(Verdict::Ended, StatusCode::GONE);
        }
        if declared(headers).is_some_and(|length| length > limits.body_bytes as u64) {
            return say(Verdict::Oversized, StatusCode::PAYLOAD_TOO_LARGE);
        }
        // Held until the payload is queued: it bounds the memory.
        let Some(_room) = self.0.hands.room(&subscription.id) else {
            return (Verdict::Flooding, too_many(1));
        };
        let body = match timeout(limits.body_time, receive(body, limits.body_bytes)).await {
            Ok(Ok(body)) => body,
            Ok(Err(Verdict::Oversized)) => return say(Verdict::Oversized, StatusCode::PAYLOAD_TOO_LARGE),
            Ok(Err(broken)) => return say(broken, StatusCode::BAD_REQUEST),
            Err(_late) => return say(Verdict::Slow, StatusCode::REQUEST_TIMEOUT),
        };
        // What is not honest is answered like what is: nobody learns from it what was wrong.
        match self.judged(subscription, headers, &body) {
            Some(verdict) => say(verdict, StatusCode::ACCEPTED),
            None => self.queue(subscription, body).await,
        }
    }

    /// Why a delivery is dropped; none if it is honest.
    fn judged(&self, subscription: &Subscription, headers: &HeaderMap, body: &[u8]) -> Option<Verdict> {
        // Whose callback it is was found by this very key.
        let key = self.0.push.keys().named(&subscription.key)?;
        let signatures = headers.get_all(SIGNATURE_HEADER).iter().map(|value| value.as_bytes());
        match judge(&key.secret(subscription.id.as_str()), signatures, body) {
            Authenticity::Right(_) => {}
            Authenticity::Missing => return Some(Verdict::Unsigned),
            Authenticity::Unreadable(_) => return Some(Verdict::Unreadable),
            Authenticity::Wrong => return Some(Verdict::Forged),
        }
        let links = headers.get_all(header::LINK).iter().filter_map(|value| value.to_str().ok());
        let base = Url::parse(&subscription.topic).ok()?;
        let topic = Links::parse(links, &base).topic;
        topic.is_some_and(|topic| topic != subscription.topic).then_some(Verdict::Misdirected)
    }

    async fn queue(&self, subscription: &Subscription, body: Vec<u8>) -> (Verdict, Response) {
        let id = name(subscription, &body);
        let notice = Notice {
            source: subscription.source.clone(),
            set: subscription.set.clone(),
            topic: subscription.topic.clone(),
            subscription: subscription.id.to_string(),
            received_at: self.0.clock.now(),
            body,
        };
        let queue = Queue::Notices { source: subscription.source.clone() };
        let publishing = self.0.bus.publish(queue, id, model::encode(&notice).into());
        match timeout(self.0.limits.queue_time, publishing).await {
            Ok(Ok(published)) => {
                let verdict = if published.duplicate { Verdict::Doubled } else { Verdict::Queued };
                (verdict, StatusCode::ACCEPTED.into_response())
            }
            Ok(Err(error @ BusError::TooLarge { .. })) => {
                tracing::warn!(subscription.id = %subscription.id, %error, "a payload has no room on the bus");
                (Verdict::Oversized, StatusCode::PAYLOAD_TOO_LARGE.into_response())
            }
            Ok(Err(error)) => (Verdict::NotQueued, not_now(&error)),
            Err(late) => (Verdict::NotQueued, not_now(&late)),
        }
    }
}

/// The name of the message: the same for what is delivered twice.
fn name(subscription: &Subscription, body: &[u8]) -> MessageId {
    let mut hasher = Sha256::new();
    hasher.update(subscription.id.as_str());
    hasher.update(body);
    MessageId::new(format!("notices-{}", HEXLOWER.encode(&hasher.finalize())))
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body that may not be longer than so many bytes.
async fn receive(body: Body, most: usize) -> Result<Vec<u8>, Verdict> {
    let (mut received, mut pieces) = (Vec::new(), body.into_data_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Verdict::Slow)?;
        if received.len() + piece.len() > most {
            return Err(Verdict::Oversized);
        }
        received.extend_from_slice(&piece);
    }
    Ok(received)
}
