//! The command line of `scrub`.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::Args;

use crate::cli::HarvestArgs;
use crate::cli_wanted::percent;
use crate::http::HttpArgs;

/// `scrub`.
#[derive(Debug, Args)]
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
    #[arg(long, value_name = "NUMBER")]
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

/// A number of bytes, as people write it.
pub(crate) fn bytes(text: &str) -> Result<NonZeroU64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => 0,
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .and_then(NonZeroU64::new)
        .ok_or_else(|| "give a number of bytes, such as 500000, 50MB or 20MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes_are_read_as_people_write_them() {
        for (text, expected) in
            [("500000", 500_000), ("50MB", 50_000_000), ("20MiB", 20 << 20), ("1 kB", 1_000)]
        {
            assert_eq!(bytes(text).map(NonZeroU64::get), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "MB", "50Mb", "-1", "1.5GB", "99999999999GB"] {
            assert!(bytes(wrong).unwrap_err().contains("50MB"), "{wrong}");
        }
    }
}
