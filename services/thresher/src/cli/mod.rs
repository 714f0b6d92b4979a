//! The command line: one file for each group of commands.

mod backfill;
mod export;
mod harvest;
mod look;
mod problems;
mod publish;
mod run;
mod serve;
mod source;
mod source_move;
mod source_set;
mod spec;
mod store;
mod sync;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use self::backfill::BackfillArgs;
pub(crate) use self::export::{ExportArgs, ExportFormat};
pub(crate) use self::harvest::{CatArgs, ExplainArgs, LsArgs, ReportArgs, RestoreArgs};
pub(crate) use self::look::{DiscoverArgs, InspectArgs, PlanArgs};
pub(crate) use self::problems::{IgnoreArgs, KindArgs, ProblemsArgs, RetryArgs, SelectArgs};
pub(crate) use self::publish::PublishArgs;
pub(crate) use self::run::{RunCommand, RunTargetArgs, WhichArgs};
pub(crate) use self::serve::{DemoArgs, ServeArgs, ServiceArg};
pub(crate) use self::source::{ApplyArgs, ListArgs, SourceAddArgs, SourceCommand};
pub(crate) use self::source_move::SourceMoveArgs;
pub(crate) use self::source_set::{
    DescriptionArgs, PublicationArgs, SourceSetArgs, SourceTargetArgs, UnsetField, WhichSourcesArgs,
};
pub(crate) use self::spec::{FollowArgs, ScopeArgs, SpecArgs};
pub(crate) use self::store::{GcArgs, ScrubArgs};
pub(crate) use self::sync::{AuditArgs, SyncArgs, ViewArg};

/// Sync ResourceSync Sources into a directory or a bucket, verify every byte, and keep the copy in sync.
#[derive(Debug, Parser)]
#[command(name = "thresher", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more: -v for progress, -vv for details.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

/// The definition of the command line. Its help tells the default of an option in the words of the other texts.
pub(crate) fn command() -> clap::Command {
    fn with_defaults(command: clap::Command) -> clap::Command {
        command.mut_args(with_default).mut_subcommands(with_defaults)
    }
    with_defaults(Cli::command())
}

/// Adds `Default: X` to the help of an option, in place of clap's own `[default: X]`.
fn with_default(arg: Arg) -> Arg {
    let values = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = values.collect::<Vec<_>>().join(", ");
    if default.is_empty() || arg.is_hide_default_value_set() {
        return arg;
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = format!("{}. Default: {default}", help.trim_end_matches('.'));
    arg.help(help).hide_default_value(true)
}

impl Cli {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// What is wrong with it; also where it asks for help or for the version.
    pub(crate) fn read<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, clap::Error> {
        let mut command = command();
        let mut given = command.try_get_matches_from_mut(words)?;
        source_move::check(&mut command, &given)?;
        Self::from_arg_matches_mut(&mut given).map_err(|error| error.format(&mut command))
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sync a Source into a directory or bucket.
    Sync(SyncArgs),
    /// Compare the copy with the Source's lists. With --repair, fetch what differs.
    Audit(AuditArgs),
    /// Show what a Source offers.
    Discover(DiscoverArgs),
    /// Estimate the requests, bytes and time of a sync.
    Plan(PlanArgs),
    /// Print a document or package as JSON lines: the document, its entries, a summary.
    Inspect(InspectArgs),
    /// List resources and their state.
    Ls(LsArgs),
    /// Print the verified bytes of a resource.
    Cat(CatArgs),
    /// Show the history of a resource, or of a dead letter.
    Explain(ExplainArgs),
    /// List open problems.
    Problems(ProblemsArgs),
    /// Retry problems in the next run.
    Retry(RetryArgs),
    /// Ignore problems until the Source changes what they are about. They stay visible.
    Ignore(IgnoreArgs),
    /// Write a report for the Source's operator. Needs no network.
    Report(ReportArgs),
    /// Fetch earlier versions of stored resources, from where the Source links to them.
    Backfill(BackfillArgs),
    /// Export files, a tar, JSON lines, Parquet or a Resource Dump. Needs no network.
    Export(ExportArgs),
    /// Publish what is stored as a ResourceSync Source: as files, or by a server.
    Publish(PublishArgs),
    /// Undo deletions whose bytes are still stored.
    Restore(RestoreArgs),
    /// Delete unreferenced data after its retention. Safe during syncs, and safe to interrupt.
    Gc(GcArgs),
    /// Find damaged or missing bytes in the store.
    Scrub(ScrubArgs),
    /// Run all services, or some of them, in this process.
    Serve(ServeArgs),
    /// Add, list, show, change, pause or remove the Sources of a fleet.
    #[command(subcommand)]
    Source(SourceCommand),
    /// Create or update Sources from a file. Deletes none.
    Apply(ApplyArgs),
    /// Start, watch, pause, resume, cancel or approve runs of a fleet.
    #[command(subcommand)]
    Run(RunCommand),
    /// Harvest a simulated Source on this machine. Needs no network.
    Demo(DemoArgs),
    /// Print the completions of a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command into a directory.
    Man {
        /// The directory for thresher.1, thresher-sync.1 and the others, such as /usr/local/share/man/man1
        directory: Option<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn each_default_is_told_once_and_in_the_same_words() {
        let mut commands = vec![command()];
        while let Some(mut command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let told = help.matches("Default").count();
                let has_default = !arg.get_default_values().is_empty();
                assert!(told <= 1 && (told == 1 || !has_default), "{}: {help}", arg.get_id());
                assert!(!help.contains("[default"), "{}: {help}", arg.get_id());
            }
            let help = command.render_long_help().to_string();
            assert!(!help.contains("[default"), "{help}");
        }
        let publish = command();
        let publish = publish.find_subcommand("publish").unwrap();
        let pause = publish.get_arguments().find(|arg| arg.get_id() == "list_pause").unwrap();
        assert!(pause.get_help().unwrap().to_string().ends_with(". Default: 10min"), "{pause:?}");
    }

    #[test]
    fn a_text_that_is_no_url_is_wrong_usage() {
        let error = Cli::read(["thresher", "sync", "not a url"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
