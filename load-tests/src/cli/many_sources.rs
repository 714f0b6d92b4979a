//! The options of the case `many-sources`.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;

use super::Options;
use crate::sources_server::{MOST_SOURCES, Population};

/// Resources of each Source.
const RESOURCES: u32 = 20;
/// How long the first harvest may take, at least and in addition for each Source, in milliseconds.
const LIMIT_MS: u64 = 120_000;
const LIMIT_MS_EACH: u64 = 200;

/// How to harvest many Sources.
#[derive(Debug, Args)]
// A round takes minutes.
#[command(mut_arg("rounds", |rounds| rounds.default_value("1")))]
pub(crate) struct ManySourcesOptions {
    /// As of the other cases; `--resources` are those of each Source, 20.
    #[command(flatten)]
    pub(crate) common: Options,

    /// How many Sources there are.
    #[arg(long, value_name = "N", default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SOURCES)))]
    pub(crate) sources: u32,

    /// Of a hundred Sources, how many accept connections and never respond.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) dead_percent: u8,

    /// Of a hundred Sources, how many send one byte a second.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) slow_percent: u8,

    /// Of a hundred Sources, how many respond with 503 and Retry-After.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) unavailable_percent: u8,

    /// Of a hundred Sources, how many fail for 20 seconds from their first connection.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) flapping_percent: u8,

    /// How many schedulers share the Sources.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) schedulers: u8,

    /// Kill a scheduler so often during the first harvest (`kill -9`), each in turn, and start it again.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) kill_scheduler_every: Option<NonZeroU64>,

    /// How long to measure idle polls at each interval; 0 leaves them out.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    pub(crate) idle_seconds: u64,

    /// Leave out the second run, which takes about as long as the first harvest.
    #[arg(long)]
    pub(crate) no_second_run: bool,

    /// How often each Source is polled while idle polls are measured. Repeat it to measure several intervals. Below
    /// 10 seconds the Sources are followed, because no schedule is shorter.
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    pub(crate) look_every: Vec<NonZeroU64>,

    /// How long the first harvest may take. Default: 120 seconds, and a fifth of a second for each Source.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) limit_seconds: Option<NonZeroU64>,
}

impl ManySourcesOptions {
    /// The Sources.
    ///
    /// # Errors
    /// When the kinds are more than a hundred of a hundred.
    pub(crate) fn population(&self) -> anyhow::Result<Population> {
        let population = Population {
            sources: self.sources,
            resources: self.common.resources.map_or(Ok(RESOURCES), u32::try_from)?.max(1),
            dead_percent: self.dead_percent,
            slow_percent: self.slow_percent,
            unavailable_percent: self.unavailable_percent,
            flapping_percent: self.flapping_percent,
        };
        population.check()?;
        Ok(population)
    }

    /// How long a run of all Sources may take.
    pub(crate) fn limit(&self) -> Duration {
        let default = || Duration::from_millis(LIMIT_MS + LIMIT_MS_EACH * u64::from(self.sources));
        self.limit_seconds.map_or_else(default, |seconds| Duration::from_secs(seconds.get()))
    }

    /// The time between two kills of a scheduler.
    pub(crate) fn kill_every(&self) -> Option<Duration> {
        self.kill_scheduler_every.map(|seconds| Duration::from_secs(seconds.get()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Case, Cli};

    fn parsed(arguments: &[&str]) -> ManySourcesOptions {
        let all = ["load-tests", "many-sources"].iter().chain(arguments);
        match Cli::parse_from(all).case {
            Case::ManySources(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_round_and_an_interval_are_the_default_of_this_case() {
        let options = parsed(&[]);
        assert_eq!((options.common.rounds.get(), options.look_every.len()), (1, 1));
        assert_eq!(options.population().unwrap().resources, 20);
        assert_eq!(options.limit(), Duration::from_secs(2_120));
        assert_eq!(parsed(&["--rounds", "3"]).common.rounds.get(), 3);
    }

    #[test]
    fn several_intervals_take_the_place_of_the_default() {
        let options = parsed(&["--look-every", "20", "--look-every", "5", "--limit-seconds", "7"]);
        let seconds: Vec<u64> = options.look_every.iter().map(|seconds| seconds.get()).collect();
        assert_eq!((seconds, options.limit()), (vec![20, 5], Duration::from_secs(7)));
    }

    #[test]
    fn too_many_sources_and_percents_are_refused() {
        assert!(Cli::try_parse_from(["load-tests", "many-sources", "--sources", "60001"]).is_err());
        assert!(parsed(&["--dead-percent", "100"]).population().is_err());
    }
}
