//! The bus of a fleet: JetStream streams on NATS servers.
//!
//! Each stage is a work-queue stream, with a subject for each queue. Each filter is a durable pull consumer that the
//! whole fleet shares, so that the server itself enforces its limit. A bucket lists the open origin queues.

mod config;
mod connection;
mod consumers;
mod keys;
mod names;
mod origins;
mod permits;
mod publish;
mod pull;
mod receipt;
mod streams;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::jetstream::{self, stream::Stream};
use async_trait::async_trait;
use model::{Origin, SourceId};
use secrets::Vars;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, timeout};

pub use self::config::{Credentials, JetStreamConfig, TlsConfig};
pub use self::connection::Health;
use self::connection::{Failure, Link};
use self::keys::Keys;
use self::names::{Names, Stage};
use self::origins::OriginList;
use crate::{
    Bus, BusError, ConsumerSpec, Delivery, Depth, Filter, MessageId, OriginPermit, OriginQueues, Payload,
    Published, Queue,
};

/// The bus of a fleet: it keeps every promise of [`Bus`], even across the death of processes. Cheap to clone.
///
/// While the server is unreachable, calls retry for `retry_timeout_seconds` and then fail with
/// [`BusError::Unavailable`]. Earlier promises hold when the server is back, even after it was killed.
#[derive(Debug, Clone)]
pub struct JetStreamBus(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    link: Link,
    names: Names,
    config: JetStreamConfig,
    streams: HashMap<Stage, Stream<()>>,
    origins: OriginList,
    keys: Keys,
    /// The consumers that this process has opened and not closed.
    opened: Mutex<HashMap<Filter, ConsumerSpec>>,
    restoring: tokio::sync::Mutex<()>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl JetStreamBus {
    /// Connects to the server, creates or updates the streams, and reads the list of origin queues. `vars` resolves the
    /// secrets of the configuration.
    ///
    /// # Errors
    /// [`BusError::Refused`] when the configuration, the server or the credentials are invalid;
    /// [`BusError::Unavailable`] when the server cannot be reached in time.
    pub async fn connect(config: JetStreamConfig, vars: &Vars) -> Result<Self, BusError> {
        let link = Link::connect(&config, vars).await?;
        let names = Names::new(&config.namespace);
        if config.make_streams {
            streams::ensure(&link, &names, &config).await?;
        }
        let mut handles = HashMap::new();
        for stage in Stage::ALL {
            let handle = link.context.get_stream_no_info(names.stream(stage)).await;
            let refuse = |why| BusError::Refused { action: "name its streams".to_owned(), why };
            handles.insert(stage, handle.map_err(|error| refuse(error.to_string()))?);
        }
        let origins = OriginList::new(streams::ensure_origins(&link, &names, &config).await?);
        let keys = Keys::new(streams::ensure_permits(&link, &names, &config).await?, link.context.clone());
        let (ready, mut is_ready) = watch::channel(false);
        let follower = tokio::spawn(origins.clone().follow(link.clone(), ready));
        let shared = Arc::new(Shared {
            link,
            names,
            config,
            streams: handles,
            origins,
            keys,
            opened: Mutex::default(),
            restoring: tokio::sync::Mutex::default(),
            tasks: Mutex::new(vec![follower.abort_handle()]),
        });
        let keeper = tokio::spawn(keep_origins(Arc::downgrade(&shared), shared.origins.subscribe()));
        shared.tasks().push(keeper.abort_handle());
        let read = timeout(shared.config.patience(), is_ready.wait_for(|ready| *ready)).await;
        if !matches!(read, Ok(Ok(_))) {
            let action = "read the list of origin queues".to_owned();
            let source = "it did not come in time".into();
            return Err(BusError::Unavailable { action, source });
        }
        drop(read);
        Ok(Self(shared))
    }

    /// Watches the connection to the server, for the readiness of a service.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.0.link.health.clone()
    }

    /// The JetStream context, for other data on the same server: leases and checkpoints.
    pub fn context(&self) -> jetstream::Context {
        self.0.link.context.clone()
    }
}

#[async_trait]
impl Bus for JetStreamBus {
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        self.0.open(spec).await
    }

    async fn close(&self, filter: &Filter) -> Result<bool, BusError> {
        self.0.close(filter).await
    }

    fn origins(&self) -> watch::Receiver<OriginQueues> {
        self.0.origins.subscribe()
    }

    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError> {
        self.0.publish(queue, id, payload.to_bytes()).await
    }

    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        self.0.pull(filter, max, wait).await
    }

    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<OriginPermit, BusError> {
        self.0.acquire_permit(origin, limit).await
    }

    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<OriginPermit>, BusError> {
        self.0.try_acquire_spare(origin).await
    }

    async fn caught_up(&self, _: &Filter) -> Result<(), BusError> {
        Ok(())
    }

    async fn purge(&self, source: &SourceId) -> Result<usize, BusError> {
        self.0.purge(source).await
    }

    async fn depth(&self, filter: &Filter) -> Result<Depth, BusError> {
        self.0.depth(filter).await
    }

    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError> {
        self.0.under_way(source).await
    }
}

impl Shared {
    async fn purge(&self, source: &SourceId) -> Result<usize, BusError> {
        let stream = self.stream(Stage::Fetch);
        let subject = self.names.subject(&format!("fetch.*.{source}"));
        let action = || format!("drop the fetch jobs of {source}");
        let purge = || async { stream.purge().filter(&subject).await.map_err(Failure::temporary) };
        let purged = self.link.with_retries(action, purge).await?;
        Ok(usize::try_from(purged.purged).unwrap_or(usize::MAX))
    }

    fn stream(&self, stage: Stage) -> &Stream<()> {
        // `connect` has inserted every stage.
        &self.streams[&stage]
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<Filter, ConsumerSpec>> {
        // Each change is a single insertion or removal, so the map is consistent even after a panic.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened_spec(&self, filter: &Filter) -> Option<ConsumerSpec> {
        self.opened().get(filter).cloned()
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for task in self.tasks().drain(..) {
            task.abort();
        }
    }
}

/// Maintains the origin queues that this process has opened, as long as it uses the bus.
async fn keep_origins(shared: Weak<Shared>, mut origins: watch::Receiver<OriginQueues>) {
    // Also where queues open and close all the time.
    let mut mending = tokio::time::interval(permits::MEND);
    mending.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let changed = tokio::select! {
            changed = origins.changed() => Some(changed),
            _ = mending.tick() => None,
        };
        let Some(shared) = shared.upgrade() else { return };
        match changed {
            Some(Ok(())) => shared.reopen_origins().await,
            Some(Err(_closed)) => return,
            None => shared.mend_origins().await,
        }
    }
}

#[cfg(test)]
mod tests;
