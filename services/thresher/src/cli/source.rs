//! `source` and `apply`.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use control::{CredentialName, Selector};
use model::{Network, Push, Robots};
use url::Url;

use super::source_move::SourceMoveArgs;
use super::source_set::{DescriptionArgs, PublicationArgs, SourceSetArgs, SourceTargetArgs};
use super::spec::SpecArgs;
use crate::client::GatewayArgs;
use crate::values::interval;

/// Commands for the Sources of a fleet.
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Add a Source, or replace its spec. A Source without a schedule runs once.
    Add(Box<SourceAddArgs>),
    /// List the Sources.
    Ls(ListArgs),
    /// Show the spec of a Source, as `thresher apply` reads it, and its subscriptions.
    Show {
        /// The Source: its name, its URL or its ID.
        source: String,
        #[command(flatten)]
        gateway: GatewayArgs,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Change what describes a Source: its name, title, labels, notes and contact; which links are followed; in which
    /// encoding its records are read; and whether it is published.
    Set(Box<SourceSetArgs>),
    /// Disable Sources: they have no scheduled runs until they are resumed. A current run goes on.
    Pause(SourceTargetArgs),
    /// Enable Sources again.
    Resume(SourceTargetArgs),
    /// Harvest a Source from another URL from now on, such as by ResourceSync instead of OAI-PMH. What is stored and is
    /// the same there is kept without a request. A Source of a fleet, or of a harvest with --into.
    Move(Box<SourceMoveArgs>),
    /// Remove a Source from the fleet. Its stored data stays.
    Rm {
        /// The Source: its name, its URL or its ID.
        source: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `source ls` and `run ls`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Only Sources whose labels match: country=jp, country!=jp, country, !country; commas join them.
    #[arg(long = "match", value_name = "SELECTOR")]
    pub(crate) matching: Option<Selector>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `source add`.
#[derive(Debug, Args)]
pub(crate) struct SourceAddArgs {
    /// Any URL of the Source: its site, a Source Description, a Capability List, a list or a dump.
    pub(crate) url: Url,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Replace the spec if a Source of this URL exists, its name and labels included.
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) description: DescriptionArgs,
    /// Run at this interval, such as 30min, 6h or 1day.
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with = "cron")]
    pub(crate) every: Option<Duration>,
    /// Run at the times of a five-field cron expression, in UTC.
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
    /// Follow the Source: poll its changes, more often when there are more.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Add it disabled: no scheduled runs.
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Do not start the first run of a Source without a schedule.
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
    /// Maximum open requests per origin, for the whole fleet.
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) concurrency: NonZeroU16,
    /// Maximum requests per second and origin, for the whole fleet. If Sources share an origin, the lowest limit counts.
    #[arg(long, value_name = "N")]
    pub(crate) max_rate: Option<NonZeroU32>,
    /// How robots.txt is applied.
    #[arg(long, value_enum, default_value_t = Robots::LinksOnly)]
    pub(crate) robots: Robots,
    /// Your contact for the Source's operator, sent in the User-Agent instead of the fleet's contact.
    #[arg(long, value_name = "MAIL|URL")]
    pub(crate) contact: Option<String>,
    /// The name of a credential in the services' configuration. Never the credential itself.
    #[arg(long, value_name = "NAME")]
    pub(crate) credential: Option<CredentialName>,
    /// Allow requests to this network or address: 10.1.0.0/16. Repeatable. By default, only public addresses and the
    /// services' `http.allow_networks` are allowed.
    #[arg(long, value_name = "CIDR")]
    pub(crate) allow_network: Vec<Network>,
    /// Whether to subscribe to the Source's Change Notifications (WebSub). unsigned also accepts a hub over plain HTTP,
    /// which gets no secret; an unsigned delivery only starts a run.
    #[arg(long, value_enum, default_value_t = Push::Auto)]
    pub(crate) push: Push,
    /// Notify this page's inbox (Linked Data Notifications) after each run with changes. Repeatable.
    #[arg(long, value_name = "URL")]
    pub(crate) notify: Vec<Url>,
    /// Poll this inbox (Linked Data Notifications) for news about the Source. A page that names its inbox works too.
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<Url>,
    #[command(flatten)]
    pub(crate) publication: PublicationArgs,
}

/// `apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// A YAML file of Sources, or - for standard input. Repeatable. It has one Source, a list, or several documents, with
    /// the fields that `thresher source show` prints.
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Print what would change; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}
