#![doc = include_str!("../README.md")]

mod batch;
mod change_page;
mod changes;
mod clock;
mod config;
mod discovery;
mod documents;
mod error;
mod handed_over;
mod keyspace;
mod known;
mod look;
mod lookups;
mod meta;
mod packages;
mod pending;
mod problems;
mod reader;
mod resources;
mod runs;
mod scan;
mod sets;
mod tally;
mod unread;
mod versions;
mod walk;
mod writer;

pub use batch::Batch;
pub use config::{CacheBudget, CatalogConfig};
pub use error::CatalogError;
pub use handed_over::InFlightBatches;
pub use known::ResourceSummary;
pub use lookups::Lookups;
pub use meta::SCHEMA;
pub use reader::CatalogReader;
pub use scan::{
    ChangeScan, DocumentScan, KnownScan, PackageScan, PendingScan, ProblemScan, ResourceScan, Scan,
    UnreadScan,
};
pub use tally::Asked;
pub use unread::LazyResource;
pub use versions::VersionScan;
pub use walk::ResourceWalk;
pub use writer::Catalog;
