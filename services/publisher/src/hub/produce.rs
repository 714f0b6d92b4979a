//! Makes the payloads of what is published. The Change Lists are the outbox. The end of a payload is noted before the
//! payload is delivered: after a kill, no subscriber was told of changes behind the noted time.

use std::time::Duration;

use bytes::Bytes;
use publish::PublishError;
use tokio::sync::watch;

use super::Hub;
use super::payloads::Payload;

/// The largest payload.
pub(super) const MOST_BYTES: usize = 512 * 1024;
/// Changes that are in memory at a time.
const MOST_CHANGES: usize = 5_000;
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);

/// Why no payload can be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayloadError {
    #[error(transparent)]
    Publication(#[from] PublishError),
    #[error(transparent)]
    Payload(#[from] websub::PublishError),
}

/// Makes payloads until the hub is to stop. `published` changes with each publication.
pub(super) async fn produce(hub: &Hub, mut published: watch::Receiver<()>) {
    let stop = &hub.0.stop;
    loop {
        let made = tokio::select! {
            made = make(hub) => made,
            () = stop.cancelled() => return,
        };
        let pause = made.is_err().then_some(PAUSE);
        if let Err(error) = made {
            let pause_seconds = PAUSE.as_secs();
            tracing::error!(%error, pause_seconds, "subscribers cannot be told of changes now");
        }
        tokio::select! {
            changed = published.changed(), if pause.is_none() => {
                if changed.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(pause.unwrap_or(Duration::MAX)) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn make(hub: &Hub) -> Result<(), PayloadError> {
    let publication = hub.0.shared.publication();
    let channel = &hub.0.channel;
    while let Some(untold) = publication.changes_after(hub.0.payloads.until(), MOST_CHANGES).await? {
        for made in websub::publish(channel, untold.from, untold.until, untold.entries, MOST_BYTES) {
            let made = made?;
            let body = Bytes::from(made.body);
            publication.note_told(&channel.hub, made.until).await?;
            hub.0.shared.note_payload(made.until, body.clone());
            hub.0.payloads.push(Payload { from: made.from, until: made.until, body });
        }
    }
    Ok(())
}
