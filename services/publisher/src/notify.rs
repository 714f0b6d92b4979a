//! Change Notifications: each hub is told what was published, in order, until it takes it.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use publish::{PublishError, UnderWay, Untold, paths};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;
use web::{Client, PostRequest, WebError};
use websub::{Channel, Notification};

use crate::hub_clients::{HubClient, HubClients};
use crate::payload_limits::{CHANGES_AT_A_TIME, PAYLOAD_BYTES};
use crate::shared::Shared;

/// The first pause after a failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// What a hub has not taken for so long is dropped: subscribers see the gap, and read the Change Lists.
const DROPPED_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// How a hub is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It gets each payload (Change Notification, section 4).
    Payload,
    /// It is told that the topic changed, and fetches the topic, as public hubs do (`hub.mode=publish`). Of two payloads
    /// in a row it may see the newer one alone; its subscribers find the other one in the Change List.
    Ping,
}

impl Way {
    /// How this hub is told, if these are those that get no payload.
    pub(crate) fn of(hub: &Url, pinged: &[Url]) -> Self {
        if pinged.contains(hub) { Self::Ping } else { Self::Payload }
    }
}

/// Why a hub could not be told.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error(transparent)]
    Hub(#[from] WebError),
    #[error(transparent)]
    Publication(#[from] PublishError),
    #[error(transparent)]
    Payload(#[from] websub::PublishError),
}

/// Tells one hub, until `stop`. `published` changes with each publication.
pub(crate) async fn tell(
    shared: Shared,
    hub: Url,
    way: Way,
    clients: HubClients,
    mut published: watch::Receiver<()>,
    stop: CancellationToken,
) {
    let told_by = match clients.of(&hub) {
        Ok(told_by) => told_by,
        Err(error) => {
            tracing::error!(%error, "no hub can be told");
            return;
        }
    };
    let mut pause = None;
    loop {
        let told = tokio::select! {
            told = tell_all(&shared, &told_by, &hub, way) => told,
            () = stop.cancelled() => return,
        };
        pause = match told {
            Ok(()) => None,
            Err(error) => {
                let next = pause.map_or(FIRST_PAUSE, |pause: Duration| (pause * 2).min(LONGEST_PAUSE));
                tracing::warn!(%error, hub = %hub, pause_seconds = next.as_secs(), "the hub is told again later");
                Some(next)
            }
        };
        tokio::select! {
            changed = published.changed(), if pause.is_none() => {
                if changed.is_err() {
                    return;
                }
            }
            // Without a failure, only a publication brings anything to tell.
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Tells all changes that the hub was not told yet. One with many of them leaves its turn to others between.
async fn tell_all(shared: &Shared, told_by: &HubClient, hub: &Url, way: Way) -> Result<(), NotifyError> {
    loop {
        // The semaphore is never closed.
        let _turn = told_by.turns.acquire().await;
        if !tell_some(shared, &told_by.client, hub, way).await? {
            return Ok(());
        }
    }
}

/// Tells some changes that the hub was not told yet. False if there are none.
async fn tell_some(shared: &Shared, client: &Client, hub: &Url, way: Way) -> Result<bool, NotifyError> {
    let publication = shared.publication();
    let (mut since, under_way) = publication.told_and_under_way(hub).await?;
    let oldest = SystemClock.now().checked_sub(DROPPED_AFTER).unwrap_or(Timestamp::MIN);
    let again = match under_way.filter(|payload| payload.until >= oldest) {
        Some(UnderWay { from, until }) => publication.changes_between(from, until, CHANGES_AT_A_TIME).await?,
        None => None,
    };
    // What the hub may have taken was one payload, and is one again: no other interval may overlap it.
    let most_bytes = if again.is_some() { usize::MAX } else { PAYLOAD_BYTES };
    if again.is_none()
        && since < oldest
        && publication.changes_after(since, 1).await?.is_some_and(|untold| untold.until < oldest)
    {
        tracing::warn!(hub = %hub, from = %since, until = %oldest, "the hub was not told of these changes");
        since = oldest;
    }
    let untold = match again {
        Some(again) => Some(again),
        None => publication.changes_after(since, CHANGES_AT_A_TIME).await?,
    };
    let Some(Untold { from, until, entries }) = untold else { return Ok(false) };
    let channel = channel(shared, hub);
    for notification in websub::publish(&channel, from, until, entries, most_bytes) {
        let Notification { from, until, body, .. } = notification?;
        let body = Bytes::from(body);
        publication.note_under_way(hub, since, UnderWay { from, until }).await?;
        // The topic may be fetched before the hub has answered.
        shared.note_payload(until, body.clone());
        client.post(request(&channel, way, body)).await?;
        publication.note_told(hub, until).await?;
        since = until;
    }
    Ok(true)
}

/// What a hub is sent.
fn request(channel: &Channel, way: Way, payload: Bytes) -> PostRequest {
    if way == Way::Ping {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("hub.mode", "publish").append_pair("hub.url", channel.topic.as_str());
        let form = Bytes::from(form.finish());
        return PostRequest::new(channel.hub.clone(), "application/x-www-form-urlencoded", form);
    }
    let [(_, media_type), (_, links)] = channel.headers();
    let mut request = PostRequest::new(channel.hub.clone(), media_type, payload);
    request.headers.push(("link", links));
    request
}

/// The topic of a publication at a hub.
pub(crate) fn channel(shared: &Shared, hub: &Url) -> Channel {
    let base = &shared.publication().base;
    // A base is a URL, and these paths need no escape.
    let url = |path| base.url(path).parse().unwrap_or_else(|_| hub.clone());
    Channel { topic: url(paths::TOPIC), hub: hub.clone(), capability_list: Some(url(paths::CAPABILITIES)) }
}

#[cfg(test)]
mod tests;
