//! The connections that every service of a fleet needs.

use std::sync::Arc;

use bus::Bus;
use service::Context;
use store::Store;

use crate::bus::{NatsConfig, open_bus};
use crate::counted_bus::counted;
use crate::counted_store::count_operations;
use crate::store::{StoreConfig, open_store, watch_store};

/// The message bus and the store, both connected.
#[derive(Debug, Clone)]
pub struct Connections {
    /// The message bus.
    pub bus: Arc<dyn Bus>,
    /// The store, open for writing.
    pub store: Store,
}

/// Connects to the message bus alone, as soon as it is reachable. From then on the service is not ready while the bus
/// is unreachable.
///
/// # Errors
/// When the configuration or the permissions are wrong, or the service is to stop.
pub async fn join_bus<C>(context: &Context<C>, nats: &NatsConfig) -> anyhow::Result<Arc<dyn Bus>> {
    let Context { vars, readiness, stop, metrics, .. } = context;
    Ok(counted(open_bus(nats, vars, readiness, stop).await?, metrics))
}

/// Connects to the message bus and the store, as soon as they are reachable. From then on the service is not ready
/// while either fails.
///
/// # Errors
/// When the configuration or the permissions are wrong, the store lacks conditional puts, or the service is to stop.
pub async fn join<C>(
    context: &Context<C>,
    nats: &NatsConfig,
    store: &StoreConfig,
) -> anyhow::Result<Connections> {
    let Context { vars, readiness, stop, metrics, .. } = context;
    let bus = counted(open_bus(nats, vars, readiness, stop).await?, metrics);
    let store = open_store(store, vars, readiness, stop).await?;
    count_operations(&store, metrics);
    tokio::spawn(watch_store(store.clone(), readiness.clone(), stop.clone()));
    Ok(Connections { bus, store })
}
