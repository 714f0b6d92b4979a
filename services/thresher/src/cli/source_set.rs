//! What describes a Source, and what of it may be changed; `source set`, `source pause` and `source resume`.

use clap::{Args, ValueEnum};
use control::{LabelKey, LabelValue, Selector, SourceName};

use super::spec::FollowArgs;
use crate::client::GatewayArgs;
use crate::values::label;

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
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
    /// Remove the label with this key. Repeatable.
    #[arg(long, value_name = "KEY")]
    pub(crate) unlabel: Vec<LabelKey>,
    /// Remove what this option has set. Repeatable.
    #[arg(long, value_enum, value_name = "OPTION")]
    pub(crate) unset: Vec<UnsetField>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

/// A field that `source set --unset` removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnsetField {
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
    /// The links that are followed, with their types and their limit.
    FollowLinks,
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
