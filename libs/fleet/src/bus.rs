//! The message bus that all services of a fleet share.

use std::sync::Arc;

use bus::jetstream::Health;
use bus::{Bus, BusError, ConsumerSpec, JetStreamBus};
use secrets::Vars;
use service::Readiness;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::connect;

/// The connection to the message bus: field `nats` of each service's configuration.
pub use bus::JetStreamConfig as NatsConfig;

/// Connects to the message bus as soon as it is reachable, and creates or updates its streams and buckets.
///
/// # Errors
/// When the configuration is wrong, or the service is to stop.
pub(crate) async fn open_bus(
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
    tokio::spawn(watch(bus.health(), readiness.clone(), stop.clone()));
    Ok(Arc::new(bus))
}

/// Marks the service as not ready, with the reason, while the server is unreachable. Ends with `stop`.
async fn watch(mut health: watch::Receiver<Health>, readiness: Readiness, stop: CancellationToken) {
    let mut latch = None;
    loop {
        let now = health.borrow_and_update().clone();
        if !now.up {
            let held = latch.get_or_insert_with(|| readiness.latch("bus", "the connection is lost"));
            if let Some(trouble) = &now.trouble {
                held.waits_for(trouble);
            }
        } else if let Some(held) = latch.take() {
            held.release();
        }
        tokio::select! {
            changed = health.changed() => if changed.is_err() { return },
            () = stop.cancelled() => return,
        }
    }
}

/// Opens a consumer as soon as the bus is reachable.
///
/// # Errors
/// When the bus refuses, or the service is to stop.
pub(crate) async fn open_consumer(
    bus: &Arc<dyn Bus>,
    spec: &ConsumerSpec,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    connect("consumer", readiness, stop, BusError::is_temporary, || bus.open(spec.clone())).await
}

#[cfg(test)]
mod tests {
    use service::Waiting;

    use super::*;

    #[tokio::test]
    async fn a_lost_connection_takes_the_readiness_and_a_new_one_gives_it_back() {
        let readiness = Readiness::default();
        let stop = CancellationToken::new();
        readiness.latch("service", "starting").release();
        let up = Health { up: true, connections: 1, trouble: None };
        let (said, health) = watch::channel(up.clone());
        let watching = tokio::spawn(watch(health, readiness.clone(), stop.clone()));
        let until = async |ready: bool| {
            testkit::waiting::until(format!("ready: {ready}"), || readiness.is_ready() == ready).await;
        };
        until(true).await;
        said.send_replace(Health { up: false, connections: 1, trouble: Some("refused".to_owned()) });
        until(false).await;
        assert_eq!(readiness.waiting_for(), [Waiting { part: "bus", reason: "refused".to_owned() }]);
        said.send_replace(Health { connections: 2, ..up });
        until(true).await;
        stop.cancel();
        watching.await.unwrap();
    }
}
