//! Commands that read a harvest: `ls`, `cat`, `explain`, `report`; and `restore`.

use clap::Args;
use jiff::Timestamp;
use model::WantedLink;

use crate::client::LocationArgs;
use crate::values::{collection, moment};

/// Where a harvest is stored.
#[derive(Debug, Args)]
pub(crate) struct HarvestArgs {
    /// The harvest: a directory, or s3://bucket/prefix. Default: the current directory
    #[arg(long, default_value = ".", hide_default_value = true)]
    pub(crate) into: String,
}

/// `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Only this Source: its URL or its ID; at a gateway also its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only URIs that begin with this.
    pub(crate) prefix: Option<String>,
    /// The state at this time, if versions of that time are kept (sync --keep-versions): 2026-01-31,
    /// 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<Timestamp>,
    /// What the Source had at this time, as far as its documents say, and versions are kept (sync --keep-versions,
    /// backfill).
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "at")]
    pub(crate) source_at: Option<Timestamp>,
    /// Only resources that have a link of this relation, perhaps to this target: describedby, or
    /// collection=URI.
    #[arg(long, value_name = "REL[=HREF]")]
    pub(crate) link: Option<WantedLink>,
    /// Only resources of this collection: those with the link collection=URI. A collection may be a set of an OAI-PMH
    /// repository.
    #[arg(long, value_name = "URI", value_parser = collection, conflicts_with = "link")]
    pub(crate) collection: Option<WantedLink>,
    /// Works in place of resources: what links say belongs together, such as a landing page with its metadata and
    /// files.
    #[arg(long, conflicts_with_all = ["at", "source_at", "link", "collection"])]
    pub(crate) group: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

impl LsArgs {
    /// The link that resources must have.
    pub(crate) fn wanted(&self) -> Option<&WantedLink> {
        self.link.as_ref().or(self.collection.as_ref())
    }
}

/// `cat`.
#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The resource's URI, as the Source writes it.
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// The copy of this Source: its URL or its ID. Required if several Sources store the resource.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Decode the Content-Encoding (gzip or deflate). Without it, the bytes come as stored.
    #[arg(long)]
    pub(crate) decode: bool,
    /// The version of this time, if it is kept (sync --keep-versions): 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<Timestamp>,
    /// The version that the Source had at this time, as far as its documents say, if it is kept.
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "at")]
    pub(crate) source_at: Option<Timestamp>,
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The resource's URI, as the Source writes it.
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Only this Source: its URL or its ID; at a gateway also its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The Source: its URL or its ID; at a gateway also its name. Optional if the harvest has one Source.
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The resources' URIs, as the Source writes them.
    #[arg(required = true)]
    pub(crate) uris: Vec<String>,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// Only this Source: its URL or its ID. Default: all Sources
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// In s3://: required. Stop the fleet and all other syncs into this store first.
    #[arg(long)]
    pub(crate) exclusive: bool,
}
