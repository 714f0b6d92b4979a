//! The options of `oai-loss`.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;

use super::Options;

/// Records of the repository.
const RECORDS: u64 = 200_000;

/// How to look for lost records.
#[derive(Debug, Args)]
// A round takes minutes.
#[command(mut_arg("rounds", |rounds| rounds.default_value("1")))]
pub(crate) struct OaiLossOptions {
    /// As of the other cases; `--resources` are records, and `--source` means nothing.
    #[command(flatten)]
    pub(crate) common: Options,

    /// How many records the repository has at first. Default: 200,000.
    #[arg(long, value_name = "N", conflicts_with = "resources")]
    pub(crate) records: Option<u64>,

    /// Kill the harvester so often (`kill -9`).
    #[arg(long, value_name = "MILLISECONDS", default_value = "2000")]
    pub(crate) kill_every: NonZeroU64,

    /// How many milliseconds each answer takes.
    #[arg(long, value_name = "MILLISECONDS", default_value = "20")]
    pub(crate) latency: u64,

    /// Of 1,000 pages, how many fail: with 500, with 422, cut, or as a page of HTML.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) failing_per_mille: u32,
}

impl OaiLossOptions {
    /// The records at first.
    pub(crate) fn count(&self) -> u64 {
        self.records.or(self.common.resources).unwrap_or(RECORDS)
    }

    /// The time between two kills.
    pub(crate) fn kill_every(&self) -> Duration {
        Duration::from_millis(self.kill_every.get())
    }
}
