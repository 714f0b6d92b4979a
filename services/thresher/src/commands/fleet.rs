//! The fleet that the operator's commands speak to.

use bus::jetstream::Credentials;
use control::{Config as ControlConfig, Control};
use fleet::NatsConfig;
use service::{SecretRef, Vars};

use crate::cli::FleetArgs;
use crate::exit::{Failed, usage};

/// Where the password of `--nats-user` stands: never on the command line, where others see it.
const PASSWORD: &str = "THRESHER_NATS_PASSWORD";

/// Connects to what the fleet shares, and leaves it as the fleet keeps it.
pub(super) async fn connect(args: &FleetArgs) -> Result<Control, Failed> {
    let config = ControlConfig {
        servers: args.nats.clone(),
        namespace: args.namespace.clone(),
        ..ControlConfig::default()
    };
    let password = args.nats_user.as_ref().map(|_| SecretRef::Env(PASSWORD.to_owned()));
    let credentials = Credentials {
        user: args.nats_user.clone(),
        password,
        file: args.nats_credentials.clone(),
        ..Credentials::default()
    };
    let login = NatsConfig { servers: args.nats.clone(), credentials, ..NatsConfig::default() };
    let options = login.connect_options(&Vars::of_process()).await;
    Ok(Control::visit(&config, options.map_err(|error| usage(error.to_string()))?).await?)
}
