//! `serve` and `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The YAML configuration; deploy/config/serve.yaml is an example. Environment variables set single fields, such as
    /// THRESHER_SERVE__STORE__URL.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Run only this service. Repeatable. Default: all
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub(crate) only: Vec<ServiceArg>,
}

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceArg {
    /// Discovers, plans, dispatches and settles.
    Scheduler,
    /// Fetches resources and packages.
    Fetcher,
    /// Unpacks packages.
    Unpacker,
    /// Verifies stored bytes.
    Verifier,
    /// Serves the HTTP API and the console.
    Gateway,
    /// Publishes the Sources whose spec has `publish`. It runs where the configuration has a section `publisher`.
    Publisher,
}

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The destination. Default: a new directory under the system's temporary directory.
    #[arg(long)]
    pub(crate) into: Option<String>,
    /// Number of resources of the simulated Source.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) resources: u64,
}
