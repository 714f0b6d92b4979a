//! What a run does that is no sync: a task of its own on a Source.

use std::num::NonZeroU32;

use jiff::Timestamp;
use model::{BackfillCounts, ResourceUri};
use serde::{Deserialize, Serialize};

use crate::sources::SourceSpec;

/// What a task does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Task {
    /// It fetches earlier versions into the history.
    Backfill(Backfill),
    /// It moves the Source to another entry URL: the catalog is copied, and this spec replaces that of the Source.
    Move {
        /// The Source that is harvested from then on.
        to: Box<SourceSpec>,
    },
    /// It takes the move to this Source back.
    MoveBack {
        /// The former Source, which is harvested again.
        to: Box<SourceSpec>,
    },
}

/// Which earlier versions a backfill fetches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Backfill {
    /// The newest N versions of each resource, stored ones included; if not given, as many as the syncs keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<NonZeroU32>,
    /// Only versions that the Source had at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Whether ResourceSync Archives are read, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archives: bool,
    /// Whether versions without a declared digest may come from other hosts than the resource's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_host: bool,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum TaskProgress {
    /// A backfill.
    Backfill {
        /// The last resource whose versions are all committed. The next owner of the Source goes on after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<ResourceUri>,
        /// What was done until then.
        #[serde(default)]
        counts: BackfillCounts,
    },
}
