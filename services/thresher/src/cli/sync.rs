//! `sync` and `audit`.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};
use control::{LabelKey, LabelValue};
use url::Url;

use super::spec::{ConcurrencyArgs, LimitArgs, ScopeArgs, SpecArgs};
use crate::http::HttpArgs;
use crate::values::{duration, label};

/// `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Any URL of the Source: its site, a Source Description, a Capability List, a list or a dump; or the base URL of
    /// an OAI-PMH repository.
    pub(crate) url: Url,

    /// The destination: a directory, or s3://bucket/prefix with the usual AWS_* variables. Default: ./HOST
    #[arg(long)]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) spec: SpecArgs,

    /// A label of the Source, such as country=jp: `publish --label` selects by it. Repeatable. Default: those of the last
    /// run
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(LabelKey, LabelValue)>,

    /// Discover the Source again, even if the cached result is still valid.
    #[arg(long)]
    pub(crate) rediscover: bool,

    /// How long to reuse the result of discovery: 90s, 5min, 1h 30min. A document that has moved triggers discovery
    /// earlier.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub(crate) rediscover_after: Duration,

    /// Whether to write resources as plain files too. Default: files in a directory, none in s3://
    #[arg(long, value_enum)]
    pub(crate) view: Option<ViewArg>,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print the result as one JSON object, last on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Whether resources are written as plain files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// Plain files under readable names.
    Files,
    /// No plain files; the store only.
    None,
}

/// `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The URL that was synced. Optional if --into holds one Source.
    pub(crate) url: Option<Url>,

    /// The harvest: a directory, or s3://bucket/prefix. Default: ./HOST; without a URL, the current directory
    #[arg(long)]
    pub(crate) into: Option<String>,

    /// Fetch what is missing, outdated or mismatched, and delete what the Source deleted.
    #[arg(long)]
    pub(crate) repair: bool,

    /// Print every difference instead of the first ones of each kind.
    #[arg(long)]
    pub(crate) list: bool,

    /// Ask an OAI-PMH repository also for N records at random, and compare their metadata: a record may change without
    /// a new datestamp.
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print the result as one JSON object, last on standard output. With --list, one line per difference comes first.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}
