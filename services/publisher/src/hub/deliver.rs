//! Delivers to one subscriber, in order, one payload at a time. Others do not wait for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use publish::{PublishError, Subscriber};
use web::{GetRequest, PostRequest, WebError};
use websub::{Method, SIGNATURE_HEADER, Signature, XML, denial};

use super::Hub;
use super::payloads::Next;
use super::produce::PayloadError;
use super::registry::Subscription;
use crate::payload_limits::PAYLOAD_BYTES;

/// Changes that are in memory at a time for one that is behind: about those of one payload.
const CHANGES_OF_ONE: usize = 1_000;
/// The longest wait without a look at the lease.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The pause after a subscription could not be ended.
const UNTIL_NEXT_END: Duration = Duration::from_secs(10);
/// Changes that one that failed gets first, as a test whether it is back.
const MOST_TRIED: usize = 50;

/// Why a subscriber was not told.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    /// It did not take it.
    #[error(transparent)]
    Callback(#[from] WebError),
    /// There is nothing to deliver now.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

impl From<PublishError> for DeliveryError {
    fn from(error: PublishError) -> Self {
        Self::Payload(error.into())
    }
}

/// Why a subscription ends.
enum Ending {
    /// Its lease is over.
    Lease,
    /// The callback answered 410.
    Gone,
    /// It took nothing for too long.
    Failed,
    /// Other readers are admitted now.
    Readers,
}

impl Ending {
    /// The reason, for logs and metrics.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Lease => "lease-over",
            Self::Gone => "gone",
            Self::Failed => "failed",
            Self::Readers => "readers",
        }
    }
}

/// Delivers until the subscription ends, or the hub is to stop.
pub(super) async fn deliver(hub: Hub, subscription: Arc<Subscription>) {
    let host = subscription.callback.host_str().unwrap_or_default();
    let ending = loop {
        let ending = tokio::select! {
            ending = deliver_all(&hub, &subscription) => ending,
            () = subscription.stop.cancelled() => return,
        };
        let Some(ending) = ending else { return };
        let why = ending.as_str();
        let Err(error) = hub.end(&subscription, why).await else {
            tracing::info!(host, why, "a subscription has ended");
            break ending;
        };
        tracing::error!(%error, host, why, "a subscription cannot be ended now");
        // It may be renewed meanwhile, and is delivered to then.
        tokio::select! {
            () = tokio::time::sleep(UNTIL_NEXT_END) => {}
            () = subscription.stop.cancelled() => return,
        }
    };
    let hours = hub.0.room.limits().give_up.as_secs_f64() / 3_600.0;
    let reason = match ending {
        Ending::Failed => Some(format!("no delivery was taken for {hours:.1} hours; subscribe again")),
        Ending::Readers => Some("the readers of this publication have changed; subscribe again".to_owned()),
        Ending::Lease | Ending::Gone => None,
    };
    if let Some(reason) = reason {
        let url = denial(&subscription.callback, hub.0.channel.topic.as_str(), &reason);
        // It is told once. Who cannot be reached finds the subscription ended.
        tokio::select! {
            _ = hub.0.room.client().get(GetRequest::new(url)) => {}
            () = hub.0.stop.cancelled() => {}
        }
    }
}

/// Delivers each payload until the subscription is to end, and returns why. None if an unsubscription has ended it, or
/// the hub stops.
async fn deliver_all(hub: &Hub, subscription: &Subscription) -> Option<Ending> {
    let limits = hub.0.room.limits();
    let mut newest = hub.0.payloads.newest();
    let mut pause: Option<Duration> = None;
    loop {
        newest.mark_unchanged();
        let subscriber = subscription.now().await?;
        if left_of(&subscriber).is_zero() {
            return Some(Ending::Lease);
        }
        if !is_admitted(hub, &subscriber) {
            return Some(Ending::Readers);
        }
        match tell(hub, subscription).await {
            Ok(()) => pause = None,
            Err(DeliveryError::Callback(error)) if error.status() == Some(410) => return Some(Ending::Gone),
            Err(error) => {
                let next = pause.map_or(limits.first_pause, |pause| pause * 2).min(limits.longest_pause);
                pause = Some(next);
                // The path of a callback may be a secret of the subscriber.
                let host = subscription.callback.host_str().unwrap_or_default();
                tracing::info!(%error, host, pause_ms = next.as_millis(), "a subscriber is told again later");
                if matches!(error, DeliveryError::Callback(_)) && is_given_up(hub, subscription).await {
                    return Some(Ending::Failed);
                }
            }
        }
        let subscriber = subscription.now().await?;
        if !is_admitted(hub, &subscriber) {
            continue;
        }
        let wait = pause.unwrap_or(LONGEST_WAIT).min(left_of(&subscriber));
        tokio::select! {
            changed = newest.changed(), if pause.is_none() => {
                if changed.is_err() {
                    return None;
                }
            }
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Whether what it was admitted by still holds.
fn is_admitted(hub: &Hub, subscriber: &Subscriber) -> bool {
    hub.0.shared.admits(&subscriber.admission)
}

/// What is left of a lease.
fn left_of(subscriber: &Subscriber) -> Duration {
    let left = subscriber.lease_until.duration_since(SystemClock.now());
    Duration::try_from(left).unwrap_or_default()
}

/// Notes a failure. Returns whether it goes on for too long.
async fn is_given_up(hub: &Hub, subscription: &Subscription) -> bool {
    hub.0.metrics.delivered(false);
    let now = SystemClock.now();
    let mut since = now;
    let Some(before) = subscription.now().await else { return false };
    if let Some(known) = before.failing_since {
        since = known;
    } else if let Err(error) = hub.change(subscription, |it| it.failing_since = Some(now)).await {
        tracing::error!(%error, "a subscriber's failure cannot be noted now");
    }
    now.duration_since(since).unsigned_abs() >= hub.0.room.limits().give_up
}

/// Delivers all that the subscriber was not told yet, while it is admitted.
async fn tell(hub: &Hub, subscription: &Subscription) -> Result<(), DeliveryError> {
    loop {
        let is_told = |told| matches!(hub.0.payloads.after(told), Next::UpToDate);
        match subscription.now().await {
            Some(subscriber) if is_admitted(hub, &subscriber) && !is_told(subscriber.told) => {}
            _ => return Ok(()),
        }
        // Before a payload is taken or made: who waits for a slow origin holds nothing that others need.
        let Some(_place) = hub.0.room.places().enter(&subscription.callback).await else { return Ok(()) };
        let Some(subscriber) = subscription.now().await else { return Ok(()) };
        if !is_admitted(hub, &subscriber) {
            return Ok(());
        }
        match hub.0.payloads.after(subscriber.told) {
            Next::UpToDate => return Ok(()),
            Next::Payload(payload) => {
                send(hub, &subscriber, payload.body).await?;
                note(hub, subscription, payload.until).await?;
            }
            Next::Behind(to) => catch_up(hub, subscription, &subscriber, to).await?,
        }
    }
}

/// Delivers one payload of the Change Lists, up to a time at which a payload begins or ends. It is made in a turn of
/// those that are behind, and delivered in none: its origin may be slow.
async fn catch_up(
    hub: &Hub,
    subscription: &Subscription,
    subscriber: &Subscriber,
    to: Timestamp,
) -> Result<(), DeliveryError> {
    let Ok(_body) = hub.0.room.bodies().acquire().await else { return Ok(()) };
    let most = if subscriber.failing_since.is_some() { MOST_TRIED } else { CHANGES_OF_ONE };
    let made = {
        let Ok(_turn) = hub.0.room.catching_up().acquire().await else { return Ok(()) };
        let publication = hub.0.shared.publication();
        let Some(untold) = publication.changes_between(subscriber.told, to, most).await? else {
            return Ok(note(hub, subscription, to).await?);
        };
        websub::publish(&hub.0.channel, untold.from, untold.until, untold.entries, PAYLOAD_BYTES).next()
    };
    let Some(made) = made.transpose().map_err(PayloadError::from)? else { return Ok(()) };
    // It may have got another secret, or have ended, while it waited.
    let Some(subscriber) = subscription.now().await else { return Ok(()) };
    // The number of such bodies is bounded: they take no room of the newest payloads.
    send(hub, &subscriber, Bytes::from(made.body)).await?;
    Ok(note(hub, subscription, made.until).await?)
}

async fn note(hub: &Hub, subscription: &Subscription, until: Timestamp) -> Result<(), PublishError> {
    let told = hub.change(subscription, |subscriber| {
        subscriber.told = until;
        subscriber.failing_since = None;
    });
    told.await.map(drop)
}

/// Sends one payload. Any 2xx takes it.
async fn send(hub: &Hub, subscriber: &Subscriber, body: Bytes) -> Result<(), DeliveryError> {
    hub.hold()?;
    let [_, (_, links)] = hub.0.channel.headers();
    let mut request = PostRequest::new(subscriber.callback.clone(), XML, body);
    request.headers.push(("link", links));
    if let Some(secret) = &subscriber.secret {
        let signature = Signature::new(Method::Sha256, secret, &request.body);
        request.headers.push((SIGNATURE_HEADER, signature.to_string()));
    }
    hub.0.room.client().post(request).await?;
    hub.0.metrics.delivered(true);
    Ok(())
}

#[cfg(test)]
mod tests;
