//! The command line.

use std::num::NonZeroUsize;

use clap::{Args, Parser, Subcommand, ValueEnum};
use regex::Regex;
use url::Url;

/// Keeps a verified copy of what ResourceSync Sources offer.
#[derive(Debug, Parser)]
#[command(name = "thresher", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more: -v what is done, -vv how.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring a copy of a Source in step: the first time all of it, later what has changed.
    Sync(SyncArgs),
    /// Show what a Source offers, without harvesting it.
    Discover(DiscoverArgs),
    /// Print a ResourceSync document as JSON lines: first the document, then one line an entry, last the summary.
    Inspect(InspectArgs),
    /// List what a harvest holds.
    Ls(LsArgs),
    /// Write the verified bytes of one resource to standard output.
    Cat(ResourceArgs),
    /// Tell the story of one resource.
    Explain(ExplainArgs),
    /// Harvest a small simulated Source on this machine, and say what happens. Needs no network.
    Demo(DemoArgs),
}

/// `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Any way in: a site, a Source Description, a Capability List, or a list itself.
    pub(crate) url: Url,

    /// A directory, or s3://bucket/prefix (with the usual AWS_* environment). Default: ./<host>
    #[arg(long)]
    pub(crate) into: Option<String>,

    /// The way to go. auto: a baseline the first time, then what has changed.
    #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
    pub(crate) mode: ModeArg,

    /// Refuse documents that break the specification instead of tolerating and counting it.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Take only resources whose URI matches this regular expression.
    #[arg(long, value_name = "RE")]
    pub(crate) include: Option<Regex>,

    /// Leave out resources whose URI matches this regular expression.
    #[arg(long, value_name = "RE")]
    pub(crate) exclude: Option<Regex>,

    /// Lay resources out as files under readable names. Default: files in a directory, none in s3://
    #[arg(long, value_enum)]
    pub(crate) view: Option<ViewArg>,

    /// Requests open at one origin at the same time.
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) concurrency: NonZeroUsize,

    /// Print one JSON object with the result as the last line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The way to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// What is known decides.
    Auto,
    /// The whole Resource List.
    Baseline,
    /// The Change Lists.
    Incremental,
}

/// Whether resources are laid out as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// As files under readable names.
    Files,
    /// Only in the store.
    None,
}

/// `discover`.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Any way in.
    pub(crate) url: Url,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A file, a URL, or - for standard input.
    pub(crate) document: String,
    /// Refuse what breaks the specification, with line and column.
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Where a harvest lies.
#[derive(Debug, Args)]
pub(crate) struct HarvestArgs {
    /// The harvest: a directory, or s3://bucket/prefix.
    #[arg(long, default_value = ".")]
    pub(crate) into: String,
}

/// `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// Only URIs that begin with this.
    pub(crate) prefix: Option<String>,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `cat`.
#[derive(Debug, Args)]
pub(crate) struct ResourceArgs {
    /// The resource's URI, as the Source writes it.
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) resource: ResourceArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where to put the harvest. Default: a new directory under the system's temporary directory.
    #[arg(long)]
    pub(crate) into: Option<String>,
    /// How many resources the simulated Source has.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) resources: u64,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_text_that_is_no_url_is_wrong_usage() {
        let error = Cli::try_parse_from(["thresher", "sync", "not a url"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
