//! `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use url::Url;

use super::harvest::HarvestArgs;
use crate::values::moment;

/// `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The target: a new or empty directory; for tar and jsonl a new file, or - for standard output. The same command
    /// resumes an interrupted export.
    pub(crate) to: PathBuf,
    /// The format.
    #[arg(long = "as", value_enum)]
    pub(crate) format: ExportFormat,
    /// The URL that a Resource Dump will be served at. Its documents name the packages by it.
    #[arg(long, value_name = "URL", required_if_eq("format", "resourcedump"))]
    pub(crate) base: Option<Url>,
    /// The Source: its URL or its ID. Optional if the harvest has one Source.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only URIs that begin with this.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// Only what was stored (in tables: or deleted) at this time or later: 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,
    /// Only what was stored (in tables: or deleted) before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<Timestamp>,
    /// Only this media type: application/pdf, or text/*. Repeatable.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A Resource Dump: ZIP packages with manifests, and the documents that list them.
    Resourcedump,
    /// Plain files, as in a view.
    Tree,
    /// The same files as a tar.
    Tar,
    /// One JSON line per resource, deleted ones included.
    Jsonl,
    /// The same records as Apache Parquet tables.
    Parquet,
}
