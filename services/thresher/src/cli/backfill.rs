//! `backfill`.

use std::num::{NonZeroU32, NonZeroU64};

use clap::Args;
use jiff::Timestamp;

use super::spec::ConcurrencyArgs;
use crate::client::LocationArgs;
use crate::http::HttpArgs;
use crate::values::{bytes, moment};

/// `backfill`.
#[derive(Debug, Args)]
pub(crate) struct BackfillArgs {
    #[command(flatten)]
    pub(crate) location: LocationArgs,

    /// Only this Source: its URL or its ID; with a gateway also its name. Default: all Sources
    #[arg(long)]
    pub(crate) source: Option<String>,

    /// The newest N earlier versions of each resource, those that are held included. From now on, syncs keep at least
    /// as many. Default: as many as the syncs keep (sync --keep-versions)
    #[arg(long, value_name = "N")]
    pub(crate) versions: Option<NonZeroU32>,

    /// Only versions that the Source had at this time or later: 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,

    /// Also read the Source's Archives: its lists of the past.
    #[arg(long)]
    pub(crate) archives: bool,

    /// Also fetch versions from other hosts than the resource's if no digest is declared. Web archives may rewrite the
    /// pages that they serve.
    #[arg(long)]
    pub(crate) any_host: bool,

    /// The largest version: 500MB, 20GiB. Default: 16GiB. With a gateway, the Source has that setting
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_size: Option<NonZeroU64>,

    /// Required with --into s3://, where it confirms exclusive access: stop the fleet and all other syncs into this store
    /// first. With a gateway, the fleet fetches the versions between its syncs.
    #[arg(long)]
    pub(crate) exclusive: bool,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    /// Print the result as one JSON object, last on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}
