//! Keeps the hub of a publication open while it is this publisher's, and has subscribers or requests. A lease lets one
//! publisher have it open.

use std::time::Duration;

use control::{Claim, Lease, Leases, MemberId};
use model::{Clock as _, SystemClock};
use publish::PublishError;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::hub::{FleetFront, Hub};

/// The pause while another publisher has the hub open.
const WHILE_HELD: Duration = Duration::from_secs(1);
/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How often it is looked whether a hub has nothing to do. It is closed when it has nothing to do twice in a row.
const IDLE: Duration = Duration::from_secs(10);

/// A place among the hubs without subscribers.
type Trial = OwnedSemaphorePermit;

/// Keeps the hub until `stop`.
pub(crate) async fn keep(front: FleetFront, leases: Leases, me: MemberId, stop: CancellationToken) {
    front.set_mine(true);
    keep_open(&front, &leases, &me, &stop).await;
    front.set_mine(false);
}

async fn keep_open(front: &FleetFront, leases: &Leases, me: &MemberId, stop: &CancellationToken) {
    let source = front.shared().publication().source.source.clone();
    let mut trial = None;
    let mut calls = front.calls();
    loop {
        // Requests that wait by now are seen.
        calls.mark_unchanged();
        let opened = tokio::select! {
            opened = open(front, leases, me, stop, trial.take()) => opened,
            () = stop.cancelled() => return,
        };
        let pause = match opened {
            Ok(Opened::Hub(hub, closed)) => {
                run(hub, front, &closed).await;
                continue;
            }
            Ok(Opened::ManyOthers) => {
                trial = tokio::select! {
                    trial = front.room().trial() => trial,
                    () = stop.cancelled() => return,
                };
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
            _ = calls.changed(), if pause.is_none() => {}
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
    /// It has no subscribers yet, as many others that are open.
    ManyOthers,
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
    trial: Option<Trial>,
) -> Result<Opened, OpenError> {
    let publication = front.shared().publication();
    let turn = front.room().opening().await;
    // First: where another publisher has it open, the place is not asked each second.
    let lease: Lease = match leases.acquire(&publication.source.source, me, SystemClock.now()).await? {
        Claim::Taken(lease) => lease,
        Claim::Held(_) => return Ok(Opened::Held),
    };
    let trial = if publication.has_subscribers().await? {
        None
    } else if publication.waiting_requests(None, 1).await?.is_empty() {
        lease.release().await;
        return Ok(Opened::NotNeeded);
    } else if let Some(trial) = trial.or_else(|| front.room().trial_now()) {
        Some(trial)
    } else {
        lease.release().await;
        return Ok(Opened::ManyOthers);
    };
    let closed = stop.child_token();
    let room = front.room().clone();
    let hub = Hub::open(front.shared(), front.url(), room, Some(lease), closed.clone()).await?;
    if let Some(trial) = trial {
        hub.on_trial(trial);
    }
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

/// Waits until the hub has had nothing to do for a while.
async fn idle(hub: &Hub) {
    let mut was_idle = false;
    loop {
        tokio::time::sleep(IDLE).await;
        let is_idle = hub.is_idle();
        if is_idle && was_idle {
            return;
        }
        was_idle = is_idle;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;
    use crate::hub::testing::{Case, subscriber};

    #[tokio::test(start_paused = true)]
    async fn a_hub_that_requests_opened_closes_after_a_while_and_its_place_is_free_with_the_first_subscriber()
    {
        let case = Case::new().await;
        let room = case.room.clone();
        let mut others: Vec<Trial> = std::iter::from_fn(|| room.trial_now()).collect();
        assert_eq!(others.len(), 64);
        case.hub.on_trial(others.pop().unwrap());
        assert!(room.trial_now().is_none(), "all places are taken");
        timeout(4 * IDLE, idle(&case.hub)).await.expect("it is to close");
        case.hub.take(subscriber("http://127.0.0.1:1/", case.told));
        assert!(room.trial_now().is_some(), "its place is free");
        assert!(timeout(10 * IDLE, idle(&case.hub)).await.is_err(), "it stays open");
        case.stop();
    }
}
