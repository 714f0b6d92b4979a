//! The state of a resource, by its records.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{PendingRecord, ProblemRecord, ResourceRecord};

/// The state of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceState {
    /// Stored, and as far as is known the current version.
    Present,
    /// The Source deleted it.
    Deleted,
    /// To be fetched; a stored version, if any, is an earlier one.
    Pending,
    /// Could not be brought in sync; its history has the reason.
    Problem,
}

impl ResourceState {
    /// The state by its records. Pending wins over problem, and both over a stored version, which is an
    /// earlier one.
    pub fn of(
        record: Option<&ResourceRecord>,
        pending: Option<&PendingRecord>,
        problem: Option<&ProblemRecord>,
    ) -> Self {
        match record {
            _ if pending.is_some() => Self::Pending,
            _ if problem.is_some() => Self::Problem,
            Some(record) if record.is_present() => Self::Present,
            _ => Self::Deleted,
        }
    }

    /// Its name in texts and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Deleted => "deleted",
            Self::Pending => "pending",
            Self::Problem => "problem",
        }
    }
}

impl fmt::Display for ResourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
