//! `run`.

use clap::{Args, Subcommand};
use control::Selector;
use model::RunMode;
use regex::Regex;

use super::source::ListArgs;
use crate::client::GatewayArgs;
use crate::values::glob;

/// Commands for runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Start runs of one Source or several, and print their IDs.
    Submit {
        #[command(flatten)]
        which: WhichArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The mode of the run.
        #[arg(long, value_enum, default_value_t = RunMode::Auto)]
        mode: RunMode,
        /// Approve more deletions of absent resources than the deletion guard allows.
        #[arg(long, conflicts_with_all = ["all", "matching", "like"])]
        allow_deletes: bool,
        /// With --mode audit: repair the differences.
        #[arg(long)]
        repair: bool,
        /// Watch the run; exit with the status that `sync` would have.
        #[arg(long, conflicts_with_all = ["all", "matching", "like"])]
        watch: bool,
    },
    /// List the current or last run of each Source.
    Ls(ListArgs),
    /// Watch a run; exit with the status that `sync` would have.
    Watch(RunTargetArgs),
    /// Pause a run. Its progress is kept.
    Pause(RunTargetArgs),
    /// Resume a paused run.
    Resume(RunTargetArgs),
    /// Approve the deletions that stopped a run: start it again, without the deletion guard.
    Approve {
        #[command(flatten)]
        target: RunTargetArgs,
        /// Watch the run; exit with the status that `sync` would have.
        #[arg(long)]
        watch: bool,
    },
    /// Cancel a run. Its progress is kept; the next run plans the rest again.
    Cancel(RunTargetArgs),
}

/// The Sources to run.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichArgs {
    /// The Source: its name, its URL or its ID.
    pub(crate) source: Option<String>,
    /// All enabled Sources. A Source with an unfinished run is skipped, with a message.
    #[arg(long)]
    pub(crate) all: bool,
    /// All enabled Sources whose labels match: country=jp, country!=jp, country, !country; commas join them.
    #[arg(long = "match", value_name = "SELECTOR")]
    pub(crate) matching: Option<Selector>,
    /// All enabled Sources whose name, ID or URL is like this: `*` is any text, `?` any one character.
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    pub(crate) like: Option<Regex>,
}

/// The Source of a run.
#[derive(Debug, Args)]
pub(crate) struct RunTargetArgs {
    /// The Source: its name, its URL or its ID.
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
