//! The control store, which schedulers, gateways and operators share.

use std::time::Duration;

use bus::BusError;
use control::{Config as ControlConfig, Control, ControlError, MemberId, Membership, Role};
use jiff::Timestamp;
use secrets::Vars;
use service::{Latch, Readiness};
use tokio_util::sync::CancellationToken;

use crate::{NatsConfig, connect};

/// The interval of checks whether the control store is reachable.
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// Connects to the control store as soon as it is reachable. It is on the servers of the message bus, and has a
/// connection of its own.
///
/// # Errors
/// When the configuration is wrong, or the service is to stop.
pub async fn open_control(
    config: &NatsConfig,
    vars: &Vars,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<Control> {
    let shared = ControlConfig {
        servers: config.servers.clone(),
        namespace: config.namespace.clone(),
        make_buckets: config.make_streams,
        replicas: config.replicas,
        ..ControlConfig::default()
    };
    // Boxed: together with all other futures of the start, this one is too large for the stack of a debug build.
    connect("control", readiness, stop, ControlError::is_temporary, || {
        Box::pin(async {
            let options = config.connect_options(vars).await.map_err(refused)?;
            Control::connect_with(&shared, options).await
        })
    })
    .await
}

/// Registers a process as a member as soon as the control store is reachable, for as long as the result lives.
///
/// # Errors
/// When the control store refuses, or the service is to stop.
pub async fn become_member(
    control: &Control,
    id: &MemberId,
    role: Role,
    now: Timestamp,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<Membership> {
    let members = control.members();
    connect("membership", readiness, stop, ControlError::is_temporary, || members.join(id.clone(), role, now))
        .await
}

/// Marks the service as not ready, with the reason, while the control store is unreachable. Ends with `stop`.
pub async fn watch_control(control: Control, readiness: Readiness, stop: CancellationToken) {
    let mut latch: Option<Latch> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(PROBE_EVERY) => {}
            () = stop.cancelled() => return,
        }
        match control.health().await {
            Ok(()) => {
                if let Some(held) = latch.take() {
                    held.release();
                }
            }
            Err(error) => {
                let held = latch.get_or_insert_with(|| readiness.latch("control", "it cannot be reached"));
                held.waits_for(&error.to_string());
            }
        }
    }
}

/// An error in the configuration applies to both connections.
fn refused(error: BusError) -> ControlError {
    ControlError::Config(error.to_string())
}
