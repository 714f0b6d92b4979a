//! `source move`.

use clap::Args;
use url::Url;

use super::spec::{ConcurrencyArgs, LimitArgs, SpecArgs};
use super::sync::ViewArg;
use crate::client::GatewayArgs;
use crate::http::HttpArgs;

/// `source move`.
#[derive(Debug, Args)]
pub(crate) struct SourceMoveArgs {
    /// The Source: its URL or its ID; in a fleet also its name.
    pub(crate) source: String,

    /// The new entry URL, as for `thresher sync`.
    #[arg(long, value_name = "URL", required_unless_present = "back", conflicts_with = "back")]
    pub(crate) to: Option<Url>,

    /// Take the move back: the Source is harvested from its former URL again, as if it had not moved.
    #[arg(long)]
    pub(crate) back: bool,

    /// The harvest: a directory, or s3://bucket/prefix. No fleet may harvest into it. Default: the Source is one of a
    /// fleet, whose scheduler moves it with its settings; then only --to, --back and --json count.
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,

    #[command(flatten)]
    pub(crate) spec: SpecArgs,

    /// Whether to write resources as plain files too. Default: as in the last sync
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
