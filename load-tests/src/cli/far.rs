//! Options of the cases whose server is far away.

use std::time::Duration;

use clap::Args;

use super::Options;
use crate::far_proxy::Link;

/// How to measure at a distance.
#[derive(Debug, Args)]
pub(crate) struct FarOptions {
    /// As of the other cases.
    #[command(flatten)]
    pub(crate) common: Options,

    /// Milliseconds there and back; may be given several times. Default: as the case says.
    #[arg(long, value_name = "MS")]
    pub(crate) round_trip_ms: Vec<u64>,

    /// MiB of each resource, for far-large.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) mib_each: u64,

    /// The bandwidth of the link, in Mbit/s, from 50 to 10,000.
    #[arg(long, value_name = "N", default_value = "400", value_parser = clap::value_parser!(u64).range(50..=10_000))]
    pub(crate) mbit: u64,

    /// The largest window of a connection, in KiB: a server or client that allows less per round trip.
    #[arg(long, value_name = "N", default_value = "16384", value_parser = clap::value_parser!(u64).range(16..=1_048_576))]
    pub(crate) window_kib: u64,

    /// Pieces of 16 KiB that arrive a round trip later, in percent, as if they were lost and sent again.
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    pub(crate) stalls: f64,
}

impl FarOptions {
    /// The links, or those of these distances if none is given.
    pub(crate) fn links(&self, usual_ms: &[u64]) -> Vec<Link> {
        let given = if self.round_trip_ms.is_empty() { usual_ms } else { &self.round_trip_ms };
        let link = |ms: &u64| Link {
            round_trip: Duration::from_millis(*ms),
            bytes_per_second: self.mbit * 1_000_000 / 8,
            most_window: self.window_kib << 10,
            stalls: self.stalls / 100.0,
        };
        given.iter().map(link).collect()
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.0..=10.0).contains(&percent) { Ok(percent) } else { Err("it is from 0 to 10".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Case, Cli};

    fn links(arguments: &[&str]) -> Result<Vec<Link>, clap::Error> {
        let command = ["load-tests", "far-large"].iter().chain(arguments);
        match Cli::try_parse_from(command)?.case {
            Case::FarLarge(options) => Ok(options.links(&[20, 240])),
            _ => unreachable!("another case was given"),
        }
    }

    #[test]
    fn the_distances_of_the_case_hold_unless_others_are_given() {
        let usual: Vec<_> = links(&[]).unwrap().iter().map(|link| link.round_trip.as_millis()).collect();
        assert_eq!(usual, [20, 240]);
        let one = links(&["--round-trip-ms", "7", "--mbit", "80", "--stalls", "0.1"]).unwrap();
        let round_trip = Duration::from_millis(7);
        assert_eq!(
            one,
            [Link { round_trip, bytes_per_second: 10_000_000, most_window: 16 << 20, stalls: 0.001 }]
        );
    }

    #[test]
    fn a_bandwidth_or_a_share_out_of_range_is_wrong_usage() {
        for wrong in [["--mbit", "49"], ["--mbit", "10001"], ["--stalls", "11"], ["--stalls", "x"]] {
            assert_eq!(links(&wrong).unwrap_err().exit_code(), 2);
        }
    }
}
