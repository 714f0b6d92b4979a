//! The options of `oai`.

use clap::Args;

use super::Options;

/// How to measure harvests of OAI-PMH.
#[derive(Debug, Args)]
pub(crate) struct OaiOptions {
    /// As of the other cases; `--resources` are records too, and `--source` means nothing.
    #[command(flatten)]
    pub(crate) common: Options,

    /// How many records the repository has. Default: 1,000,000.
    #[arg(long, value_name = "N", conflicts_with = "resources")]
    pub(crate) records: Option<u64>,

    /// How many records the repository has that programs harvest which write a file for each. Default: 100,000, and
    /// no more than the other one.
    #[arg(long, value_name = "N")]
    pub(crate) records_as_files: Option<u64>,
}

const RECORDS: u64 = 1_000_000;
const AS_FILES: u64 = 100_000;

impl OaiOptions {
    /// The records of the large repository.
    pub(crate) fn many(&self) -> u64 {
        self.records.or(self.common.resources).unwrap_or(RECORDS)
    }

    /// The records of the small repository.
    pub(crate) fn few(&self) -> u64 {
        self.records_as_files.unwrap_or(AS_FILES).min(self.many())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        options: OaiOptions,
    }

    fn sizes(arguments: &[&str]) -> (u64, u64) {
        let options = Cli::parse_from([&["oai"], arguments].concat()).options;
        (options.many(), options.few())
    }

    #[test]
    fn the_small_repository_is_no_larger_than_the_large_one() {
        assert_eq!(sizes(&[]), (1_000_000, 100_000));
        assert_eq!(sizes(&["--records", "5000"]), (5_000, 5_000));
        assert_eq!(sizes(&["--resources", "5000", "--records-as-files", "100"]), (5_000, 100));
    }
}
