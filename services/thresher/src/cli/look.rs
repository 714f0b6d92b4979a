//! `plan`, `discover` and `inspect`: they read documents, and fetch no resource.

use clap::Args;
use url::Url;

use super::spec::{ConcurrencyArgs, OaiArgs, SpecArgs};
use crate::client::GatewayArgs;
use crate::http::HttpArgs;
use crate::values::bytes;

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Any URL of the Source: its site, a Source Description, a Capability List, a list or a dump; or the base URL of
    /// an OAI-PMH repository.
    pub(crate) url: Url,

    /// The copy to sync: a directory, or s3://bucket/prefix. What it stores already is not counted. Default, unless a
    /// gateway is named: ./HOST
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,

    #[command(flatten)]
    pub(crate) spec: SpecArgs,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `discover`.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Any URL of the Source.
    pub(crate) url: Url,

    #[command(flatten)]
    pub(crate) oai: OaiArgs,

    /// Take the entries of plain sitemaps for landing pages with typed links (Signposting).
    #[arg(long)]
    pub(crate) landing_pages: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A file, a URL, or - for standard input.
    pub(crate) document: String,
    /// Print the typed links of a landing page or a link set (Signposting): of headers, HTML and link sets.
    #[arg(long, conflicts_with = "strict")]
    pub(crate) links: bool,
    /// Reject deviations from the specification, with line and column.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The largest document or package to receive from a URL: 500MB, 20GiB.
    #[arg(long, value_name = "BYTES", default_value = "16GiB", value_parser = bytes)]
    pub(crate) max_size: std::num::NonZeroU64,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}
