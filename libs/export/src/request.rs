//! The request of an export, and its totals.

use std::ops::ControlFlow;
use std::path::PathBuf;

use model::{ResourceUri, SourceId};
use serde::{Deserialize, Serialize};
use store::StoreError;
use url::Url;

use crate::Selection;

/// The format of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "format")]
pub enum Format {
    /// A Resource Dump that any Destination can harvest (RS-33).
    ResourceDump {
        /// The URL at which its directory will be served, with a slash at its end.
        base: Url,
    },
    /// Files under readable names, as in a view.
    Tree,
    /// A tar of these files.
    Tar,
    /// The records of each resource, tombstones included: one line of JSON each.
    JsonLines,
    /// The same as tables of Apache Parquet.
    Parquet,
}

/// The target of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, or a directory for a format of several files.
    Path(PathBuf),
    /// Standard output: for a tar, or lines. It cannot be resumed.
    Stdout,
}

/// What an export holds. Only an equal request resumes an interrupted one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportRequest {
    pub(crate) format: Format,
    pub(crate) source: SourceId,
    #[serde(flatten)]
    pub(crate) selection: Selection,
}

/// The sizes of an export's pieces: a resumed export repeats less than one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Entries of one package (at most 50,000 in a list, as in a Sitemap).
    pub package_entries: u64,
    /// A package is closed once it has this many bytes.
    pub package_bytes: u64,
    /// Rows of one table.
    pub table_rows: u64,
    /// Files of a tree, members of a tar, or lines between two checkpoints.
    pub kept_every: u64,
    /// Bytes of a tar between two checkpoints.
    pub kept_bytes: u64,
}

/// The totals of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Resources.
    pub resources: u64,
    /// Their bytes; none if only their records are exported.
    pub bytes: u64,
    /// Resources that were left out, since their stored bytes are damaged.
    pub damaged: u64,
}

/// An event that the observer of an export receives.
#[derive(Debug)]
pub enum Seen<'a> {
    /// An earlier export is resumed; it contains this much.
    Resumed(Summary),
    /// A resource was exported.
    Taken(&'a ResourceUri),
    /// A resource was left out, and why.
    Damaged(&'a ResourceUri, &'a StoreError),
}

/// The observer of an export. It may stop the export.
pub type Observer<'a> = &'a mut dyn FnMut(Seen<'_>) -> ControlFlow<()>;

impl Default for Sizes {
    fn default() -> Self {
        Self {
            package_entries: 50_000,
            package_bytes: 1 << 30,
            table_rows: 1_000_000,
            kept_every: 10_000,
            kept_bytes: 256 << 20,
        }
    }
}
