//! What describes a Source, and what of it may be changed; `source set`, `source pause` and `source resume`.

use clap::{Args, ValueEnum};
use control::{LabelKey, LabelValue, Selector, SourceName};
use model::{Archive, Network, Publish, SetRule, TextEncoding};

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

/// Whether the publisher of the fleet publishes what is stored of a Source, and who may read it.
#[derive(Debug, Clone, Args)]
pub(crate) struct PublicationArgs {
    /// Let the fleet's publisher publish what is stored of the Source. --publish=tokens: for readers with a token of the
    /// publisher's file only.
    #[arg(
        long,
        value_enum,
        value_name = "READERS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "public"
    )]
    pub(crate) publish: Option<Publish>,
    /// Publish it for readers in this network only: 10.2.0.0/16. Repeatable.
    #[arg(long = "publish-network", value_name = "CIDR")]
    pub(crate) publish_networks: Vec<Network>,
    /// Keep Resource Lists and Change Lists of the past, listed in ResourceSync Archives: for this time, such as 1y or
    /// 90days, or `all`, or `off`. Default: as the publisher is configured
    #[arg(long, value_name = "TIME|all|off")]
    pub(crate) publish_archive: Option<Archive>,
    /// Also publish the resources whose URIs match a regular expression, as a set with lists of its own:
    /// theses=/theses/. Repeatable; together they replace those of before.
    #[arg(long = "publish-set", value_name = "NAME=REGEX")]
    pub(crate) publish_sets: Vec<SetRule>,
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
    #[command(flatten)]
    pub(crate) publication: PublicationArgs,
    /// The encoding of records of an OAI-PMH repository that say UTF-8 and are not: windows-1252, iso-8859-2, gbk.
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<TextEncoding>,
    /// Publish it no longer: its documents answer 404. What the fleet stores of it stays.
    #[arg(long, conflicts_with_all = ["publish", "publish_networks"])]
    pub(crate) no_publish: bool,
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
    /// The encoding of records that are not UTF-8.
    Encoding,
    /// How long lists of the past stay: the publisher's configuration applies again.
    PublishArchive,
    /// The sets by rule of its publication.
    PublishSets,
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
