//! Options that select a gateway or a store.

use std::path::PathBuf;

use clap::Args;
use url::Url;

/// The gateway to ask.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GatewayArgs {
    /// URL of the gateway (or THRESHER_SERVER). Its token comes from THRESHER_TOKEN, --token-file or a profile, never from
    /// the command line. Default for commands that need a gateway: that of `thresher serve` on this machine
    #[arg(long, value_name = "URL", conflicts_with = "profile")]
    pub(crate) server: Option<Url>,
    /// Use the gateway of this profile (or THRESHER_PROFILE) in ~/.config/thresher/profiles.yaml.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// File with the gateway's token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Where to read a harvest: from a store, or through a gateway.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LocationArgs {
    /// The harvest: a directory, or s3://bucket/prefix. Default, unless a gateway is named: the current directory
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}
