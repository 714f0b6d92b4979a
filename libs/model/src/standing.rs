//! How a resource stands, by all that is known of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{PendingRecord, ProblemRecord, ResourceRecord};

/// How a resource stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Held, and as far as is known the current version.
    Present,
    /// The Source deleted it.
    Deleted,
    /// To be fetched; what is held, if anything, is an earlier version.
    Pending,
    /// Could not be brought in step; its story says why.
    Problem,
}

impl Standing {
    /// By what is known of it. Work that is still to be done comes before what hindered it so far, and both before what is held: an earlier version.
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

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Deleted => "deleted",
            Self::Pending => "pending",
            Self::Problem => "problem",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
