#![doc = include_str!("../README.md")]

mod absence;
mod by_uri;
pub mod continuity;
mod cost;
mod decide;
mod document;
mod entry;
mod filter;
mod fixity_check;
#[cfg(test)]
mod fixtures;
pub mod follow;
mod horizon;
mod limits;
mod links;
pub mod mementos;
pub mod mirrors;
pub mod oai;
mod options;
mod package;
pub mod pages;
pub mod patches;
mod poll;
mod rescan;
mod retry;
mod selection;
pub mod strategy;
pub mod unreported;

pub use absence::{
    AbsenceCount, DeletionGuard, GuardReport, Lists, ManyAbsent, is_listed_by_others, is_newer, is_stored_in,
};
pub use by_uri::ByUri;
pub use cost::{Cost, FEW_RESOURCES, Latencies, Pace, is_dump_cheaper};
pub use decide::{CurrentState, Decision, agree, decide, why};
pub use document::{is_settled_part, queued_document};
pub use entry::{EntryContext, ListedEntry};
pub use filter::Filter;
pub use fixity_check::{contradiction, is_stored_as_declared};
pub use horizon::{Horizon, Moment};
pub use limits::{LimitReached, ReadBudget, RunLimits};
pub use links::relinked;
pub use options::{HarvestOptions, READ_AHEAD, WindowLimits};
pub use package::{
    is_same_version, is_settled_version, listings_before, package_declaration, package_interval, renewed,
};
pub use poll::{NextRun, NoPoll, POLL_DOCUMENTS, RunEnd};
pub use rescan::{is_due, is_listed_elsewhere, is_retried};
pub use retry::{RetryDecision, RetryPolicy};
pub use selection::Selection;
pub use unreported::Channels;
