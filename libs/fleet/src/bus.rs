//! The message bus that all services of a fleet share.

use std::sync::Arc;

use bus::{Bus, BusError, ConsumerSpec, JetStreamBus};
use service::{Readiness, Vars};
use tokio_util::sync::CancellationToken;

use crate::connect;

/// Where the message bus is: field `nats` of each service's configuration.
pub use bus::JetStreamConfig as NatsConfig;

/// Connects to the message bus, as soon as it answers, and creates or updates what the fleet keeps there.
///
/// # Errors
/// When the configuration is wrong, or the service is to stop.
pub async fn open_bus(
    config: &NatsConfig,
    vars: &Vars,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<Arc<dyn Bus>> {
    config.check()?;
    let bus = connect("bus", readiness, stop, BusError::is_temporary, || {
        JetStreamBus::connect(config.clone(), vars)
    })
    .await?;
    tracing::info!(bus.namespace = config.namespace, "the message bus is reached");
    Ok(Arc::new(bus))
}

/// Opens a consumer, as soon as the bus lets it.
///
/// # Errors
/// When the bus refuses, or the service is to stop.
pub async fn open_consumer(
    bus: &Arc<dyn Bus>,
    spec: &ConsumerSpec,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    connect("consumer", readiness, stop, BusError::is_temporary, || bus.open(spec.clone())).await
}
