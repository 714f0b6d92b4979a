//! `source` and `apply`.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use control::{CredentialName, LabelKey, LabelValue, Selector, SourceName};
use jiff::SignedDuration;
use model::{Network, Push, Robots};
use url::Url;

use super::spec::SpecArgs;
use crate::client::GatewayArgs;
use crate::values::{interval, label};

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
    /// Change what describes a Source: its name, title, labels, notes and contact.
    Set(Box<SourceSetArgs>),
    /// Disable Sources: they have no scheduled runs until they are resumed. A current run goes on.
    Pause(SourceTargetArgs),
    /// Enable Sources again.
    Resume(SourceTargetArgs),
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

/// What describes a Source to people.
#[derive(Debug, Clone, Args)]
pub(crate) struct DescriptionArgs {
    /// A name for the Source, which commands accept in place of its URL: 1 to 64 of a-z, 0-9, -, _ and . No two Sources
    /// have the same.
    #[arg(long)]
    pub(crate) name: Option<SourceName>,
    /// A title that pages show.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// A label to select Sources by, such as country=jp. Repeatable.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(LabelKey, LabelValue)>,
    /// Notes for other operators.
    #[arg(long, value_name = "TEXT")]
    pub(crate) notes: Option<String>,
    /// Whom to ask at the Source. No request contains it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) source_contact: Option<String>,
}

/// `source set`.
#[derive(Debug, Args)]
pub(crate) struct SourceSetArgs {
    /// The Source: its name, its URL or its ID.
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) description: DescriptionArgs,
    /// Remove the label with this key. Repeatable.
    #[arg(long, value_name = "KEY")]
    pub(crate) unlabel: Vec<LabelKey>,
    /// Remove what this option has set. Repeatable.
    #[arg(long, value_enum, value_name = "OPTION")]
    pub(crate) unset: Vec<DescriptionField>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

/// A field that `source set --unset` removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DescriptionField {
    /// The name.
    Name,
    /// The title.
    Title,
    /// All labels.
    Labels,
    /// The notes.
    Notes,
    /// The contact at the Source.
    SourceContact,
}

/// `source pause` and `source resume`.
#[derive(Debug, Args)]
pub(crate) struct SourceTargetArgs {
    #[command(flatten)]
    pub(crate) which: WhichSourcesArgs,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The Sources to pause or resume.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichSourcesArgs {
    /// Sources: their names, URLs or IDs.
    pub(crate) sources: Vec<String>,
    /// All Sources whose labels match: country=jp, country!=jp, country, !country; commas join them.
    #[arg(long = "match", value_name = "SELECTOR")]
    pub(crate) matching: Option<Selector>,
    /// All Sources.
    #[arg(long)]
    pub(crate) all: bool,
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
    /// Run at this interval, such as 6h or 30m.
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with = "cron")]
    pub(crate) every: Option<SignedDuration>,
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
