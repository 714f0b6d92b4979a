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
    /// Read all that is held. This is the default.
    #[arg(long, conflicts_with_all = ["share_a_day", "sample"])]
    pub(crate) all: bool,
    /// Read the share of today: with 5% everything has its turn once in 20 days, if this is run on each of them.
    #[arg(long, value_name = "N%", value_parser = percent, conflicts_with = "sample")]
    pub(crate) share_a_day: Option<u8>,
    /// Read so many resources, drawn at random, and say what that proves of all.
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<NonZeroUsize>,
    /// Draw what was drawn before, by the number that was printed.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Bytes read from the store in a second at most: 50MB, 20MiB. Default: as many as it gives.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) rate: Option<NonZeroU64>,
    /// Ask the Source for so many resources, drawn at random, and compare what it gives now.
    #[arg(long, value_name = "N")]
    pub(crate) live: Option<NonZeroUsize>,
    /// Fetch and judge anew what is damaged or missing. Without it, the next `sync` does.
    #[arg(long)]
    pub(crate) repair: bool,
    /// In s3://: also note what is damaged in the catalog, and set it aside, as is done in a directory. Only while no fleet and nobody else
    /// harvests into it: a harvest that begins meanwhile is shut out, or shuts this out.
    #[arg(long)]
    pub(crate) as_owner: bool,
    /// Print one JSON object with the result as the last line on standard output.
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
