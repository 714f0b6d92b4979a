//! The part of the command line that runs a fleet or speaks to one.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use control::CredentialName;
use jiff::SignedDuration;
use model::Network;
use url::Url;

use crate::cli_ask::FleetArgs;
use crate::cli_wanted::{ModeArg, WantedArgs};
use crate::http::RobotsArg;

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The YAML file with the configuration; deploy/config/serve.yaml is an example. Single fields can be set by the
    /// environment, such as THRESHER_SERVE__STORE__URL.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Only this service; may be given again for others. Default: all, the gateway only where it is configured.
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub(crate) only: Vec<ServiceArg>,
}

/// A service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceArg {
    /// Owns Sources: discovers, plans, dispatches, settles.
    Scheduler,
    /// Turns URLs into stored bitstreams.
    Fetcher,
    /// Turns packages into stored bitstreams.
    Unpacker,
    /// Judges stored bitstreams.
    Verifier,
    /// Serves the operator's HTTP API.
    Gateway,
}

/// What to do with the fleet's Sources.
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Add a Source, or change one. A Source without a schedule is harvested once.
    Add(Box<SourceAddArgs>),
    /// List the Sources.
    Ls {
        #[command(flatten)]
        fleet: FleetArgs,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Show what is wanted of a Source, as `thresher apply` reads it, and how its notifications stand, if it has any.
    Show {
        /// Its name, or the URL it was added with.
        source: String,
        #[command(flatten)]
        fleet: FleetArgs,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Do not harvest a Source any more. What is held of it stays.
    Rm {
        /// Its name, or the URL it was added with.
        source: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

/// `source add`.
#[derive(Debug, Args)]
pub(crate) struct SourceAddArgs {
    /// Any way in: a site, a Source Description, a Capability List, or a list itself.
    pub(crate) url: Url,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Change the Source if there is one of this URL already.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Harvest it again and again after this time, such as 6h or 30m.
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with = "cron")]
    pub(crate) every: Option<SignedDuration>,
    /// Harvest it at the times of a cron expression of five fields, in UTC.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
    /// Follow it: look at its changes again and again, the sooner the more there are.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Do not harvest it by itself for now.
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Only add it: ask for no first run where it has no schedule.
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    /// Requests open at one of its origins at the same time, of the whole fleet.
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) concurrency: NonZeroU16,
    /// Requests in a second to one of its origins, of the whole fleet. Of Sources entered at one origin, the strictest counts.
    #[arg(long, value_name = "N")]
    pub(crate) max_rate: Option<NonZeroU32>,
    /// What is made of robots.txt. What the Source's publication names at its own site is an invitation, other links are not.
    #[arg(long, value_enum, default_value_t = RobotsArg::Invited)]
    pub(crate) robots: RobotsArg,
    /// Where you can be reached, should the Source's operator wonder: sent instead of the fleet's own contact.
    #[arg(long, value_name = "MAIL|URL")]
    pub(crate) contact: Option<String>,
    /// What it is sent to be let in: the name of a credential in the services' configuration, never the credential itself.
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<CredentialName>,
    /// Let it lead to this network of yours, or this address, too: 10.1.0.0/16. May be given several times. Without it only
    /// public addresses are reached, and what `http.allow_networks` of the services names.
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_network: Vec<Network>,
    /// Whether its notifications are subscribed to. auto: where it offers them, and the fleet can be reached by hubs. unsigned: also by a hub
    /// over plain HTTP, which is sent no secret; what comes without a signature has the Source looked at, and nothing more.
    #[arg(long, value_enum, default_value_t = PushArg::Auto)]
    pub(crate) push: PushArg,
    /// Whom to tell when a run has changed what is held of it: a page that has an inbox for Linked Data Notifications. May be given several times.
    #[arg(long, value_name = "URL")]
    pub(crate) notify: Vec<Url>,
    /// Where notifications about it are read: an inbox of others (Linked Data Notifications), or a page that tells of one.
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<Url>,
}

/// Whether notifications are subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PushArg {
    /// Where they are offered.
    Auto,
    /// Also without signatures.
    Unsigned,
    /// Never.
    Off,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Ask for a run of a Source, and print its name; or of several Sources, and print the names of each Source and its run.
    Submit {
        #[command(flatten)]
        which: WhichArgs,
        #[command(flatten)]
        fleet: FleetArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The way to go.
        #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
        mode: ModeArg,
        /// Your word that this run may delete more resources for their absence than the Source's guard allows.
        #[arg(long, conflicts_with_all = ["all", "matching"])]
        allow_deletes: bool,
        /// With --mode audit: put right what differs.
        #[arg(long)]
        repair: bool,
        /// Watch it to its end; the exit status is that of `sync`.
        #[arg(long, conflicts_with_all = ["all", "matching"])]
        watch: bool,
    },
    /// List the present or last run of each Source.
    Ls {
        #[command(flatten)]
        fleet: FleetArgs,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Watch a run to its end; the exit status is that of `sync`.
    Watch {
        #[command(flatten)]
        target: RunTargetArgs,
    },
    /// Let a run wait. What it has done stays done.
    Pause {
        #[command(flatten)]
        target: RunTargetArgs,
    },
    /// Let a run go on.
    Resume {
        #[command(flatten)]
        target: RunTargetArgs,
    },
    /// Give your word after the guard has stopped a run: ask for the same run again, which may delete more than the guard allows.
    Approve {
        #[command(flatten)]
        target: RunTargetArgs,
        /// Watch it to its end; the exit status is that of `sync`.
        #[arg(long)]
        watch: bool,
    },
    /// End a run. What it has done stays done; what it had still to do is found out again by the next one.
    Cancel {
        #[command(flatten)]
        target: RunTargetArgs,
    },
}

/// `apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// A YAML file with Sources, or - for standard input; may be given again. It holds one Source, a list of them, or several documents, each
    /// with the fields that `thresher source show` prints.
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Say what would be done, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of which Sources a run is asked for.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichArgs {
    /// The Source's name, or the URL it was added with.
    pub(crate) source: Option<String>,
    /// All Sources that are not disabled. One whose last run is not over is told of, and left alone.
    #[arg(long)]
    pub(crate) all: bool,
    /// All Sources that are not disabled and whose name or URL is like this: `*` is any text, `?` any one character.
    #[arg(long = "match", value_name = "GLOB")]
    pub(crate) matching: Option<String>,
}

/// Whose run.
#[derive(Debug, Args)]
pub(crate) struct RunTargetArgs {
    /// The Source's name, or the URL it was added with.
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn interval(text: &str) -> Result<SignedDuration, String> {
    let read: SignedDuration = text.parse().map_err(|error| format!("{error}; write 6h, 30m or 90s"))?;
    if read.is_positive() { Ok(read) } else { Err("give a time that is longer than nothing".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_with_their_unit_and_nothing_else() {
        assert_eq!(interval("6h").unwrap(), SignedDuration::from_hours(6));
        assert_eq!(interval("1h 30m").unwrap(), SignedDuration::from_mins(90));
        for bad in ["", "6", "-1h", "soon", "0s"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
