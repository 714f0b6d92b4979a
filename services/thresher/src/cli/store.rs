//! Maintenance of a store: `scrub` and `gc`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use clap::{ArgGroup, Args};

use super::harvest::HarvestArgs;
use crate::http::HttpArgs;
use crate::values::{bytes, duration, percent};

/// `scrub`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("drawn").multiple(true).args(["sample", "compare_live"]))]
pub(crate) struct ScrubArgs {
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// Read everything. This is the default.
    #[arg(long, conflicts_with_all = ["daily_share", "sample"])]
    pub(crate) all: bool,
    /// Read today's share. With 5%, daily runs read everything once in 20 days.
    #[arg(long, value_name = "N%", value_parser = percent, conflicts_with = "sample")]
    pub(crate) daily_share: Option<u8>,
    /// Read N random resources, and print what that says about all of them.
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<NonZeroUsize>,
    /// Draw the same sample as an earlier scrub, by the seed that it printed.
    #[arg(long, value_name = "NUMBER", requires = "drawn")]
    pub(crate) seed: Option<u64>,
    /// Maximum bytes per second read from the store: 50MB, 20MiB. Default: no limit
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) rate: Option<NonZeroU64>,
    /// Also fetch N random resources from the Source, and compare them with the copy.
    #[arg(long, value_name = "N")]
    pub(crate) compare_live: Option<NonZeroUsize>,
    /// Fetch what is damaged or missing now. Without it, the next `sync` does.
    #[arg(long)]
    pub(crate) repair: bool,
    /// In s3://: also record damage in the catalog and quarantine it, as in a directory. Requires exclusive access: stop
    /// the fleet and all other syncs into this store first.
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Print the result as one JSON object, last on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `gc`.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// How long unreferenced bytes stay, counted from when they were stored, replaced or deleted.
    #[arg(long, value_name = "TIME", default_value = "7days", value_parser = duration)]
    pub(crate) retention: Duration,
    /// Print what would be removed; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// In s3://: also finish deletions and rewrite sparse packs, as in a directory. Requires exclusive access: stop the
    /// fleet and all other syncs into this store first.
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;

    #[test]
    fn a_seed_needs_something_to_draw() {
        for (options, is_right) in [
            ("--seed 5", false),
            ("--all --seed 5", false),
            ("--daily-share 5% --seed 5", false),
            ("--sample 3 --seed 5", true),
            ("--compare-live 3 --seed 5", true),
            ("--sample 3 --compare-live 3 --seed 5", true),
            ("--sample 3", true),
        ] {
            let line = format!("thresher scrub {options}");
            assert_eq!(Cli::read(line.split_whitespace()).is_ok(), is_right, "{options}");
        }
    }
}
