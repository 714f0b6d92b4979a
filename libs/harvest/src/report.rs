//! The result of a run.

use std::collections::{BTreeMap, HashMap};

use model::{CapabilityLink, PollBasis, ProblemReason, ProblemRecord, RunRecord, SetId, Subject};
use planning::{GuardReport, ManyAbsent};

use crate::audit::Audit;

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The run.
    pub run: RunRecord,
    /// Whether it resumed an interrupted run.
    pub resumed: bool,
    /// Result of the audit, if it is one.
    pub audit: Option<Audit>,
    /// Open problems of this run and earlier ones, without those that the operator ignores.
    pub open_problems: u64,
    /// Open problems by reason.
    pub problems_by_reason: BTreeMap<ProblemReason, u64>,
    /// Problems that the operator ignores.
    pub ignored_problems: u64,
    /// Report of the deletion guard, if it prevented deletions.
    pub guard: Option<GuardReport>,
    /// Lists that omit many stored resources. All of these are kept for now.
    pub many_absent: Vec<ManyAbsent>,
    /// The first few open problems.
    pub first_problems: Vec<(Subject, ProblemRecord)>,
    /// The channels that its sets offer, as far as known (CN-1).
    pub channels: Vec<(SetId, CapabilityLink)>,
    /// The title that the last discovery proposes for the Source.
    pub title: Option<String>,
    /// The Source Description that an OAI-PMH repository's site offers too, as the last discovery found.
    pub resourcesync: Option<String>,
    /// Number of missed changes of each set.
    pub missed: HashMap<SetId, u64>,
    /// What a poll may compare in place of the next run; none if an unchanged Source needs a run all the same.
    pub poll: Option<PollBasis>,
}

impl Report {
    /// Whether the Source is in sync, except for ignored problems. After an audit: all repairable differences were
    /// repaired, and no others are left.
    pub fn in_sync(&self) -> bool {
        match &self.run.counters.audit {
            Some(found) => {
                found.is_complete() && found.differences() == found.queued && self.run.counters.failed == 0
            }
            None => self.open_problems == 0,
        }
    }
}
