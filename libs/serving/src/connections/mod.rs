//! Connections to the port of a server. Their number is bounded, and that of each client. Each is served by its own task
//! with small buffers, and with a time limit for the head of each request.

mod connection;
mod events;
mod limits;
#[cfg(test)]
mod tests;

use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clients::{Clients, TooMany};

pub use events::ConnectionEvents;
pub use limits::{BUFFER_BYTES, ConnectionLimits};

/// The pause after an accept failed, for example because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Serves connections until `stop`, then completes the requests under way.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    events: impl ConnectionEvents,
    stop: CancellationToken,
) {
    let open = TaskTracker::new();
    let permits = Arc::new(Semaphore::new(limits.most));
    let clients = Clients::new(limits.per_client, Arc::clone(&limits.proxies));
    while let Some(permit) = permit(&permits, &limits, &events, &stop).await {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let place = match clients.connection(peer.ip()) {
                    Ok(place) => place,
                    Err(TooMany(client)) => {
                        events.refused(client);
                        continue;
                    }
                };
                let events = events.clone();
                let counted = events.opened();
                let (router, clients, limits) = (router.clone(), clients.clone(), limits.clone());
                let serving =
                    connection::serve(stream, peer.ip(), router, clients, limits, events, stop.clone());
                drop(open.spawn(async move {
                    serving.await;
                    drop((permit, place, counted));
                }));
            }
            // The client hung up before the accept.
            Err(error) if is_of_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted now");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

/// Waits for a permit for one more connection. None when the service is to stop.
async fn permit(
    permits: &Arc<Semaphore>,
    limits: &ConnectionLimits,
    events: &impl ConnectionEvents,
    stop: &CancellationToken,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Some(permit);
    }
    events.full();
    tracing::debug!(connections = limits.most, "all connections are open: the next one waits until one ends");
    tokio::select! {
        permit = Arc::clone(permits).acquire_owned() => permit.ok(),
        () = stop.cancelled() => None,
    }
}

fn is_of_client(error: &Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
