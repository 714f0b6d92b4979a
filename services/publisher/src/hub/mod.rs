//! A hub of its own (WebSub): it takes subscriptions to the topic of the publication, and delivers each Change
//! Notification to their callbacks.

mod client;
mod deliver;
mod front;
mod payloads;
mod places;
mod produce;
mod registry;
mod request;
mod room;
#[cfg(test)]
pub(crate) mod testing;
mod verify;
mod waiting;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use control::Lease;
use publish::{PublishError, Subscribers};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use websub::Channel;

use crate::metrics::PublisherMetrics;
use crate::shared::Shared;

pub(crate) use front::{FleetFront, Front};
pub(crate) use request::answer;
pub(crate) use room::Room;

use payloads::Payloads;
use registry::Registry;

/// The most subscribers of before that are taken: also those beyond a limit that was lowered since.
const MOST_KNOWN: usize = 100_000;

/// Files of subscribers that are named in the log, of those that cannot be read. The others are counted.
const MOST_LOGGED: usize = 10;

/// The hub. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Parts>);

struct Parts {
    shared: Shared,
    channel: Channel,
    room: Room,
    /// Held by the process that has the hub open, where there are several.
    lease: Option<Lease>,
    /// Its place among the hubs without subscribers, until it has one.
    trial: Mutex<Option<OwnedSemaphorePermit>>,
    /// Of strangers and of subscribers, how many have requests that waited and are being verified.
    taking: AtomicUsize,
    payloads: Payloads,
    registry: Registry,
    metrics: PublisherMetrics,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Hub {
    /// Opens the hub with the subscribers of before. `url` is its own. Where several processes serve the publication,
    /// the `lease` lets one of them have it open.
    ///
    /// # Errors
    /// When the place of the publication fails.
    pub(crate) async fn open(
        shared: &Shared,
        url: &Url,
        room: Room,
        lease: Option<Lease>,
        stop: CancellationToken,
    ) -> Result<Self, PublishError> {
        let publication = shared.publication();
        let channel = crate::notify::channel(shared, url);
        let noted = publication.told_until(url).await?;
        let Subscribers { known, unreadable } = publication.subscribers(MOST_KNOWN).await?;
        for error in unreadable.iter().take(MOST_LOGGED) {
            tracing::error!(%error, "a subscriber cannot be read");
        }
        if !unreadable.is_empty() {
            let (subscribers, unreadable) = (known.len(), unreadable.len());
            tracing::error!(subscribers, unreadable, "the hub is open for those that can be read");
        }
        let until = match known.iter().map(|subscriber| subscriber.told).max() {
            Some(told) => told.max(noted),
            // Without subscribers, what was published while the hub was closed is not told.
            None => publication.published_until().await?.max(noted),
        };
        let hub = Self(Arc::new(Parts {
            shared: shared.clone(),
            channel,
            payloads: Payloads::begin(until, room.payload_bytes(), room.limits().payload_bytes),
            room,
            lease,
            trial: Mutex::new(None),
            taking: AtomicUsize::new(0),
            registry: Registry::default(),
            metrics: shared.metrics().clone(),
            tasks: TaskTracker::new(),
            stop,
        }));
        for subscriber in known {
            hub.take(subscriber);
        }
        Ok(hub)
    }

    /// Makes payloads of what is published, until the hub is to stop. Then it waits for deliveries under way.
    pub(crate) async fn run(self, published: watch::Receiver<()>) {
        produce::produce(&self, published).await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.metrics.subscribers.dec_by(self.0.registry.count() as i64);
    }

    /// How many subscribers it has.
    pub(crate) fn subscribers(&self) -> usize {
        self.0.registry.count()
    }

    /// Whether it has nothing to do: no subscribers, and no requests that are verified.
    pub(crate) fn is_idle(&self) -> bool {
        self.subscribers() == 0 && self.0.taking.load(Ordering::Relaxed) == 0
    }

    /// Has it hold a place among the hubs without subscribers, until it has one, or is closed.
    pub(crate) fn on_trial(&self, place: OwnedSemaphorePermit) {
        if self.subscribers() == 0 {
            *self.0.trial.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        }
    }

    /// Waits until the lease is lost; for ever where there is none.
    pub(crate) async fn lost(&self) {
        match &self.0.lease {
            Some(lease) => lease.lost().cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Whether this process may deliver, and change subscribers, by the clock: it may have been suspended for long.
    fn is_held(&self) -> bool {
        self.0.lease.as_ref().is_none_or(Lease::is_held)
    }
}
