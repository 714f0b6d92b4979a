#![doc = include_str!("../README.md")]

mod absences;
mod absent_spool;
mod entry_sorter;
mod error;
mod merge_join;
mod runs;
mod spooled_entry;

pub use absences::{AbsenceSearch, Absences, AbsentResources};
pub use absent_spool::AbsentSpool;
pub use entry_sorter::{Counting, EntrySorter, SortedEntries};
pub use error::{ReconcileError, SpoolError};
pub use merge_join::{CatalogRow, Joined, MergeJoin, Records, ResourceEntries};
pub use spooled_entry::SpooledEntry;
