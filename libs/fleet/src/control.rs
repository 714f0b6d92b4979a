//! What is wanted and what is so, shared by all schedulers and the operator.

use bus::BusError;
use control::{Config as ControlConfig, Control, ControlError, MemberId, Membership, Role};
use jiff::Timestamp;
use service::{Readiness, Vars};
use tokio_util::sync::CancellationToken;

use crate::{NatsConfig, connect};

/// Connects to what the fleet shares, as soon as it answers. It lies on the servers of the message bus, and is reached by a
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
    // In a box: what it takes to connect is too much for the stack of a debug build, in the midst of all else that a start awaits.
    connect("control", readiness, stop, ControlError::is_temporary, || {
        Box::pin(async {
            let options = config.connect_options(vars).await.map_err(refused)?;
            Control::connect_with(&shared, options).await
        })
    })
    .await
}

/// Says that a process is there, as soon as the control store takes it, and for as long as the result lives.
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

/// What is wrong with the configuration is wrong for both connections.
fn refused(error: BusError) -> ControlError {
    ControlError::Config(error.to_string())
}
