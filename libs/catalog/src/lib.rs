#![doc = include_str!("../README.md")]

mod batch;
mod change_page;
mod changes;
mod clock;
mod compact_as_merged;
mod config;
mod discovery;
mod discovery_report;
mod documents;
mod error;
mod held_digests;
mod in_flight_batches;
mod keyspace;
mod known_object;
mod lazy_resource;
mod log_end;
mod lookups;
mod merge_schedule;
mod meta;
mod owner_store;
mod package_names;
mod packages;
mod pages;
mod pending;
mod problems;
mod reader;
mod resource_summary;
mod resources;
mod runs;
mod scan;
mod sets;
mod small_tables;
mod stored;
mod tally;
mod upkeep;
mod versions;
mod walk;
mod writer;

pub use batch::Batch;
pub use config::{CacheBudget, CatalogConfig};
pub use error::CatalogError;
pub use in_flight_batches::InFlightBatches;
pub use lazy_resource::{LazyResource, UnreadScan};
pub use log_end::LogEnd;
pub use lookups::Lookups;
pub use meta::SCHEMA;
pub use package_names::PackageNamesScan;
pub use reader::CatalogReader;
pub use resource_summary::{ResourceSummary, ResourceSummaryScan};
pub use scan::{
    ChangeScan, DocumentScan, PackageScan, PageScan, PendingScan, ProblemScan, ResourceScan, Scan,
};
pub use tally::LookupCounts;
pub use versions::VersionScan;
pub use walk::ResourceWalk;
pub use writer::Catalog;
