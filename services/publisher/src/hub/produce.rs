//! Makes the payloads of what is published. The Change Lists are the outbox. The end of a payload is noted before the
//! payload is delivered: after a kill, no subscriber was told of changes behind the noted time.

use std::time::Duration;

use publish::PublishError;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Hub;
use super::payloads::Payload;
use crate::payload_limits::{CHANGES_AT_A_TIME, PAYLOAD_BYTES};

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// How long payloads stay in memory without another one: time enough for those who answer.
const KEPT: Duration = Duration::from_secs(60);

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
    let mut idle_since = Instant::now();
    loop {
        let before = hub.0.payloads.until();
        let made = tokio::select! {
            made = make(hub) => made,
            () = stop.cancelled() => return,
        };
        if hub.0.payloads.until() != before {
            idle_since = Instant::now();
        }
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
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            () = tokio::time::sleep_until(idle_since + KEPT), if !hub.0.payloads.is_empty() => {
                hub.0.payloads.give_up();
            }
            () = stop.cancelled() => return,
        }
    }
}

async fn make(hub: &Hub) -> Result<(), PayloadError> {
    let publication = hub.0.shared.publication();
    let channel = &hub.0.channel;
    loop {
        // The semaphore is never closed.
        let _turn = hub.0.room.producing().acquire().await;
        let since = hub.0.payloads.until();
        let Some(untold) = publication.changes_after(since, CHANGES_AT_A_TIME).await? else { return Ok(()) };
        for made in websub::publish(channel, untold.from, untold.until, untold.entries, PAYLOAD_BYTES) {
            let made = made?;
            let body = hub.0.payloads.counted(made.body);
            publication.note_told(&channel.hub, made.until).await?;
            hub.0.shared.note_payload(made.until, body.clone());
            hub.0.payloads.push(Payload { from: made.from, until: made.until, body });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Case;

    #[tokio::test(start_paused = true)]
    async fn an_idle_hub_gives_its_memory_back() {
        let case = Case::new().await;
        let mut newest = case.hub.0.payloads.newest();
        let running = tokio::spawn(case.hub.clone().run(case.hub.0.shared.published()));
        case.change().await;
        newest.changed().await.unwrap();
        assert!(!case.hub.0.payloads.is_empty());
        // What is published without changes keeps none of them.
        for _ in 0..3 {
            tokio::time::sleep(KEPT / 2).await;
            case.hub.0.shared.publish(&mut |_| {}).await.unwrap();
        }
        assert!(case.hub.0.payloads.is_empty());
        case.stop();
        running.await.unwrap();
    }
}
