#![doc = include_str!("../README.md")]
// All output goes through `terminal`, which cleans it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod client;
mod client_error;
mod commands;
mod crawl_delays;
mod credentials;
mod exit;
mod http;
mod oai_header;
mod show;
mod target;
mod terminal;
mod values;

use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};
use crate::exit::{CommandResult, Exit};
use crate::terminal::note;

/// Options that have another name now, with that name.
const RENAMED: [(&str, &str); 6] = [
    ("--history", "--keep-versions"),
    ("--as-owner", "--exclusive"),
    ("--about", "--kind"),
    ("--live", "--compare-live"),
    ("--share-a-day", "--daily-share"),
    ("--keep-for", "--retention"),
];

fn main() -> ExitCode {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            note!("thresher: cannot start the async runtime: {error}");
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(execute(cli));
    // The background tasks that are left have no result that is waited for.
    runtime.shutdown_background();
    exit
}

/// Prints help, the version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let renamed =
        RENAMED.iter().find(|(old, _)| error.kind() == ErrorKind::UnknownArgument && unknown == *old);
    if let Some((old, new)) = renamed {
        note!("thresher: {old} is named {new} now");
        return Exit::Usage.into();
    }
    // Nothing is left to do if the terminal is gone.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

async fn execute(cli: Cli) -> ExitCode {
    if let Command::Serve(args) = cli.command {
        // It has a log of its own.
        return commands::serve::run(args).await;
    }
    init_log(cli.verbose);
    match run(cli.command).await {
        Ok(exit) => exit.into(),
        Err(failed) if terminal::is_closed(&failed.error) => terminal::closed(),
        Err(failed) => {
            note!("thresher: {}", one_line(&failed.error.to_string()));
            failed.exit.into()
        }
    }
}

async fn run(command: Command) -> CommandResult {
    match command {
        Command::Sync(args) => commands::sync::run(args).await,
        Command::Audit(args) => commands::audit::run(args).await,
        Command::Discover(args) => commands::discover::run(args).await,
        Command::Plan(args) => commands::plan::run(args).await,
        Command::Inspect(args) => commands::inspect::run(args).await,
        Command::Ls(args) => commands::ls::run(args).await,
        Command::Cat(args) => commands::cat::run(args).await,
        Command::Explain(args) => commands::explain::run(args).await,
        Command::Problems(args) => commands::problems::run(args).await,
        Command::Retry(args) => commands::retry::run(args).await,
        Command::Ignore(args) => commands::ignore::run(args).await,
        Command::Report(args) => commands::report::run(args).await,
        Command::Backfill(args) => Box::pin(commands::backfill::run(args)).await,
        Command::Export(args) => commands::export::run(args).await,
        Command::Publish(args) => commands::publish::run(args).await,
        Command::Restore(args) => commands::restore::run(args).await,
        Command::Gc(args) => commands::gc::run(args).await,
        Command::Scrub(args) => Box::pin(commands::scrub::run(args)).await,
        Command::Source(command) => commands::source::run(command).await,
        Command::Apply(args) => commands::apply::run(args).await,
        Command::Run(command) => commands::run::run(command).await,
        Command::Serve(_) => unreachable!("it was run by its caller"),
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Completions { shell } => commands::manual::completions(shell),
        Command::Man { directory } => commands::manual::man(directory.as_deref()),
    }
}

/// Server texts inside an error may have line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Logs go to standard error; `RUST_LOG` overrides `-v`.
fn init_log(verbose: u8) {
    let level = match verbose {
        // The caller gets the catalog database's failures as errors. Its background tasks would log
        // complaints after the last message, when the process ends.
        0 => "error,slatedb=off",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).init();
}
