//! The fleet that the operator's commands speak to.

use control::{Config as ControlConfig, Control};

use crate::cli::FleetArgs;
use crate::exit::Failed;

/// Connects to what the fleet shares.
pub(super) async fn connect(args: &FleetArgs) -> Result<Control, Failed> {
    let config = ControlConfig {
        servers: args.nats.clone(),
        namespace: args.namespace.clone(),
        ..ControlConfig::default()
    };
    Ok(Control::connect(&config).await?)
}
