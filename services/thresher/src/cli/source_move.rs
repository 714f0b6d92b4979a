//! `source move`.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args};
use url::Url;

use super::spec::{ConcurrencyArgs, LimitArgs, SpecArgs};
use super::sync::ViewArg;
use crate::client::GatewayArgs;
use crate::http::HttpArgs;

/// What may be given for a Source of a fleet.
const OF_A_FLEET: [&str; 8] = ["source", "to", "back", "server", "profile", "token_file", "json", "verbose"];

/// `source move`.
#[derive(Debug, Args)]
pub(crate) struct SourceMoveArgs {
    /// The Source: its URL or its ID; in a fleet also its name.
    pub(crate) source: String,

    /// The new entry URL, as for `thresher sync`.
    #[arg(long, value_name = "URL", required_unless_present = "back", conflicts_with = "back")]
    pub(crate) to: Option<Url>,

    /// Take the move back: the Source is harvested from its former URL again, as if it had not moved.
    #[arg(long)]
    pub(crate) back: bool,

    /// The harvest: a directory, or s3://bucket/prefix. No fleet may harvest into it. Default: the Source is one of a
    /// fleet, whose scheduler moves it with its settings; options that set these need --into
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,

    #[command(flatten)]
    pub(crate) spec: SpecArgs,

    /// Whether to write resources as plain files too. Default: as in the last sync
    #[arg(long, value_enum)]
    pub(crate) view: Option<ViewArg>,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print the result as one JSON object, last on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Refuses options that a fleet would not heed. Only the parser knows which of them are given: the others have their
/// defaults.
pub(super) fn check(command: &mut clap::Command, given: &ArgMatches) -> Result<(), clap::Error> {
    let Some(("source", of_source)) = given.subcommand() else { return Ok(()) };
    let Some(("move", of_move)) = of_source.subcommand() else { return Ok(()) };
    if of_move.contains_id("into") {
        return Ok(());
    }
    let command = command.find_subcommand_mut("source").and_then(|source| source.find_subcommand_mut("move"));
    let Some(command) = command else { return Ok(()) };
    let is_unheeded = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        !OF_A_FLEET.contains(&id) && of_move.value_source(id) == Some(ValueSource::CommandLine)
    };
    let unheeded = command.get_arguments().find(is_unheeded).and_then(Arg::get_long).map(str::to_owned);
    let Some(long) = unheeded else { return Ok(()) };
    let said = format!("--{long} needs --into; a fleet keeps the Source's settings");
    Err(command.error(ErrorKind::MissingRequiredArgument, said))
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;

    fn read(options: &str) -> Result<Cli, String> {
        let line = format!("thresher source move one {options}");
        Cli::read(line.split_whitespace()).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_that_a_fleet_keeps_are_refused_without_a_harvest() {
        for option in [
            "--view files",
            "--mode baseline",
            "--include a",
            "--strict",
            "--max-size 1MB",
            "--metadata-prefix mets",
            "--follow-links item",
            // Its default, given all the same.
            "--concurrency 4",
            "--max-entries 5",
            "--timeout 5s",
            "--contact a@e.org",
        ] {
            let said = read(&format!("--to http://e.org/ {option}")).unwrap_err();
            let name = option.split(' ').next().unwrap();
            assert!(said.contains(&format!("{name} needs --into; a fleet keeps")), "{option}: {said}");
            assert!(read(&format!("--to http://e.org/ --into d {option}")).is_ok(), "{option}");
        }
        for right in ["--to http://e.org/ --json -v", "--back --server http://g/ --token-file t"] {
            assert!(read(right).is_ok(), "{right}");
        }
    }
}
