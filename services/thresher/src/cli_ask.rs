//! The part of the command line that says who is asked: a gateway, a fleet itself, or a store.

use std::path::PathBuf;

use clap::Args;
use url::Url;

/// Which gateway is asked.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerArgs {
    /// Ask the gateway at this URL; also as THRESHER_SERVER. Its token stands in THRESHER_TOKEN, in --token-file, or in a profile, never on
    /// the command line.
    #[arg(long, value_name = "URL", conflicts_with = "profile")]
    pub(crate) server: Option<Url>,
    /// Ask the gateway of this profile; also as THRESHER_PROFILE. Profiles stand in ~/.config/thresher/profiles.yaml (see the README).
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// The file with the gateway's token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Where a fleet is: the gateway before it, or its NATS servers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// A NATS server of the fleet, which is asked directly; may be given again for others of its cluster. Also as THRESHER_NATS. Default, where
    /// no gateway is named: nats://127.0.0.1:4222
    #[arg(long, value_name = "URL", value_delimiter = ',', conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) nats: Vec<String>,
    /// The name under which the fleet shares the server.
    #[arg(long, env = "THRESHER_NAMESPACE", default_value = "thresher")]
    pub(crate) namespace: String,
    /// The user at NATS, where it asks for one. The password stands in THRESHER_NATS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "THRESHER_NATS_USER", conflicts_with = "nats_credentials")]
    pub(crate) nats_user: Option<String>,
    /// The credentials file (.creds) of a user at NATS, instead.
    #[arg(long, value_name = "FILE", env = "THRESHER_NATS_CREDENTIALS")]
    pub(crate) nats_credentials: Option<PathBuf>,
}

/// Where what is held is read: in a store, or by the gateway of the fleet that holds it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HeldArgs {
    /// The harvest: a directory, or s3://bucket/prefix. Default, where no gateway is named: the directory you are in
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
