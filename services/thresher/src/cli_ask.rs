//! Options that select a gateway, a fleet or a store.

use std::path::PathBuf;

use clap::Args;
use url::Url;

/// The gateway to ask.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerArgs {
    /// URL of the gateway (or THRESHER_SERVER). Its token comes from THRESHER_TOKEN, --token-file or a profile, never from
    /// the command line.
    #[arg(long, value_name = "URL", conflicts_with = "profile")]
    pub(crate) server: Option<Url>,
    /// Use the gateway of this profile (or THRESHER_PROFILE) in ~/.config/thresher/profiles.yaml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// File with the gateway's token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// The fleet to ask: its gateway, or its NATS servers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// A NATS server of the fleet, for direct access (or THRESHER_NATS). Repeatable. Default, unless a gateway is named:
    /// nats://127.0.0.1:4222
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) nats: Vec<String>,
    /// The fleet's namespace on the NATS server.
    #[arg(long, env = "THRESHER_NAMESPACE", default_value = "thresher")]
    pub(crate) namespace: String,
    /// NATS user name, if the server requires one. The password comes from THRESHER_NATS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "THRESHER_NATS_USER", conflicts_with = "nats_credentials")]
    pub(crate) nats_user: Option<String>,
    /// NATS credentials file (.creds), instead of a user name.
    #[arg(long, value_name = "FILE", env = "THRESHER_NATS_CREDENTIALS")]
    pub(crate) nats_credentials: Option<PathBuf>,
}

/// Where to read a harvest: from a store, or through a gateway.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LocationArgs {
    /// The harvest: a directory, or s3://bucket/prefix. Default, unless a gateway is named: the current directory
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
