//! What every service of a fleet works with.

use std::sync::Arc;

use bus::Bus;
use service::Context;
use store::Store;

use crate::bus::{NatsConfig, open_bus};
use crate::counted_bus::counted;
use crate::counted_store::count_operations;
use crate::store::{StoreConfig, open_store, watch_store};

/// The message bus and the store, both of which answer.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The message bus.
    pub bus: Arc<dyn Bus>,
    /// The store, open for writing.
    pub store: Store,
}

/// Opens the message bus alone, as soon as it answers. From then on the service is not ready while it is in trouble.
///
/// # Errors
/// When the configuration or the permissions are wrong, or the service is to stop.
pub async fn join_bus<C>(context: &Context<C>, nats: &NatsConfig) -> anyhow::Result<Arc<dyn Bus>> {
    let Context { vars, readiness, stop, metrics, .. } = context;
    Ok(counted(open_bus(nats, vars, readiness, stop).await?, metrics))
}

/// Opens the message bus and the store, as soon as they answer. From then on the service is not ready while either is in
/// trouble.
///
/// # Errors
/// When the configuration or the permissions are wrong, the store lacks conditional puts, or the service is to stop.
pub async fn join<C>(context: &Context<C>, nats: &NatsConfig, store: &StoreConfig) -> anyhow::Result<Joined> {
    let Context { vars, readiness, stop, metrics, .. } = context;
    let bus = counted(open_bus(nats, vars, readiness, stop).await?, metrics);
    let store = open_store(store, vars, readiness, stop).await?;
    count_operations(&store, metrics);
    tokio::spawn(watch_store(store.clone(), readiness.clone(), stop.clone()));
    Ok(Joined { bus, store })
}
