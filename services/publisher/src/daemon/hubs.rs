//! Keeps the hub of a publication open while it is this publisher's, and has subscribers or requests. A lease lets one
//! publisher have it open.

use std::time::Duration;

use control::{Claim, Lease, Leases, MemberId};
use model::{Clock as _, SystemClock};
use publish::PublishError;
use tokio_util::sync::CancellationToken;

use crate::hub::{FleetFront, Hub};

/// The pause while another publisher has the hub open.
const WHILE_HELD: Duration = Duration::from_secs(1);
/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How long a hub without subscribers stays open.
const IDLE: Duration = Duration::from_secs(60);

/// Keeps the hub until `stop`.
pub(crate) async fn keep(front: FleetFront, leases: Leases, me: MemberId, stop: CancellationToken) {
    let source = front.shared().publication().source.source.clone();
    loop {
        let opened = tokio::select! {
            opened = open(&front, &leases, &me, &stop) => opened,
            () = stop.cancelled() => return,
        };
        let pause = match opened {
            Ok(Opened::Hub(hub, closed)) => {
                run(hub, &front, &closed).await;
                continue;
            }
            Ok(Opened::NotNeeded) => None,
            Ok(Opened::Held) => Some(WHILE_HELD),
            Err(error) => {
                let pause_seconds = AFTER_FAILURE.as_secs();
                tracing::error!(source.id = %source, %error, pause_seconds, "a hub cannot be opened now");
                Some(AFTER_FAILURE)
            }
        };
        tokio::select! {
            () = front.called(), if pause.is_none() => {}
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            () = stop.cancelled() => return,
        }
    }
}

/// What came of an attempt to open a hub.
enum Opened {
    /// It is open, until the token is cancelled.
    Hub(Hub, CancellationToken),
    /// It has no subscribers, and no request waits.
    NotNeeded,
    /// Another publisher has it open.
    Held,
}

/// Why a hub cannot be opened.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(transparent)]
    Publication(#[from] PublishError),
    #[error(transparent)]
    Lease(#[from] control::ControlError),
}

async fn open(
    front: &FleetFront,
    leases: &Leases,
    me: &MemberId,
    stop: &CancellationToken,
) -> Result<Opened, OpenError> {
    let publication = front.shared().publication();
    let turn = front.room().opening().await;
    let is_needed =
        !publication.waiting_requests(1).await?.is_empty() || publication.has_subscribers().await?;
    if !is_needed {
        return Ok(Opened::NotNeeded);
    }
    let lease: Lease = match leases.acquire(&publication.source.source, me, SystemClock.now()).await? {
        Claim::Taken(lease) => lease,
        Claim::Held(_) => return Ok(Opened::Held),
    };
    let closed = stop.child_token();
    let room = front.room().clone();
    let hub = Hub::open(front.shared(), front.url(), room, Some(lease), closed.clone()).await?;
    drop(turn);
    Ok(Opened::Hub(hub, closed))
}

/// Runs the hub until it is to stop, is another publisher's, or has nothing to do.
async fn run(hub: Hub, front: &FleetFront, closed: &CancellationToken) {
    let source = front.shared().publication().source.source.as_str();
    tracing::info!(source, subscribers = hub.subscribers(), "a hub is open");
    front.set_open(Some(hub.clone()));
    let running = hub.clone().run(front.shared().published());
    tokio::pin!(running);
    let why = tokio::select! {
        () = &mut running => None,
        () = hub.lost() => Some("its lease is lost"),
        () = idle(&hub) => Some("it has no subscribers"),
        () = hub.take_waiting(front) => Some("requests end"),
    };
    front.set_open(None);
    closed.cancel();
    if why.is_some() {
        running.await;
    }
    tracing::info!(source, why = why.unwrap_or("it is to stop"), "a hub is closed");
}

/// Waits until the hub has had no subscribers for a while.
async fn idle(hub: &Hub) {
    let mut was_empty = false;
    loop {
        tokio::time::sleep(IDLE).await;
        let is_empty = hub.subscribers() == 0;
        if is_empty && was_empty {
            return;
        }
        was_empty = is_empty;
    }
}
