//! A hub of its own (WebSub): it takes subscriptions to the topic of the publication, and delivers each Change
//! Notification to their callbacks.

mod client;
mod deliver;
mod payloads;
mod produce;
mod registry;
mod request;
mod verify;

use std::sync::Arc;

use publish::PublishError;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use web::Client;
use websub::Channel;

use crate::hub_limits::HubLimits;
use crate::metrics::PublisherMetrics;
use crate::shared::Shared;

pub(crate) use client::client;
pub(crate) use request::answer;

use payloads::Payloads;
use registry::Registry;
use verify::Verifications;

/// Subscribers that are behind and get earlier changes at the same time: each has some thousand entries in memory.
const CATCHING_UP: usize = 16;
/// The most subscribers of before that are taken: also those beyond a limit that was lowered since.
const MOST_KNOWN: usize = 100_000;

/// The hub. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hub(Arc<Parts>);

struct Parts {
    shared: Shared,
    channel: Channel,
    limits: HubLimits,
    client: Client,
    payloads: Payloads,
    registry: Registry,
    verifications: Verifications,
    catching_up: Semaphore,
    metrics: PublisherMetrics,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Hub {
    /// Opens the hub with the subscribers of before. `url` is its own; `client` calls the subscribers.
    pub(crate) async fn open(
        shared: &Shared,
        url: &Url,
        limits: HubLimits,
        client: Client,
        stop: CancellationToken,
    ) -> Result<Self, PublishError> {
        let publication = shared.publication();
        let channel = crate::notify::channel(shared, url);
        let until = publication.told_until(url).await?;
        let known = publication.subscribers(MOST_KNOWN).await?;
        let hub = Self(Arc::new(Parts {
            shared: shared.clone(),
            channel,
            client,
            payloads: Payloads::begin(until),
            registry: Registry::default(),
            verifications: Verifications::default(),
            catching_up: Semaphore::new(CATCHING_UP),
            metrics: shared.metrics().clone(),
            tasks: TaskTracker::new(),
            stop,
            limits,
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
    }
}
