//! Records that came from an OAI-PMH repository, for a repository that serves them again (ADR 0083).
//!
//! The change log is the order of each list: a record stands at its last change, and the time of that is its datestamp.
//! So a page begins at a number of the log, however far into the list it is, and nothing is kept between two pages. A
//! record that changes meanwhile moves behind all others: it is listed again, and none is skipped.

mod chosen;
mod page;
mod position;
mod record;
mod records;
mod seen_sets;
mod withdrawals;

pub use page::{OaiLimits, OaiPage};
pub use record::OaiRecord;
pub use records::{LATEST_COMMIT, OaiRecords};
pub use seen_sets::SeenSets;
pub use withdrawals::Withdrawals;
