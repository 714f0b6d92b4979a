//! The health of a Source, derived from the control store alone. No catalog is opened for it.

use control::{Run, RunStatus, SourceSpec, SyncSummary, WaitReason};
use jiff::{SignedDuration, Timestamp};

/// The health of a Source, by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceHealth {
    /// Its last run failed.
    Failed,
    /// Its run is blocked at the moment.
    Blocked,
    /// The stored copy is older than its schedule allows.
    Stale,
    /// Some of its resources or documents are problems.
    Problems,
    /// Its run is paused until an operator resumes it.
    Paused,
    /// It was never in sync so far.
    NeverSynced,
    /// A scheduler runs it, and its health was good before.
    Running,
    /// It is in sync.
    InSync,
    /// It is disabled.
    Disabled,
}

impl SourceHealth {
    /// All kinds by severity, each with its name in URLs and its CSS class.
    const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::Failed, "failed", "bad"),
        (Self::Blocked, "blocked", "bad"),
        (Self::Stale, "stale", "bad"),
        (Self::Problems, "problems", "doubtful"),
        (Self::Paused, "paused", "doubtful"),
        (Self::NeverSynced, "never-synced", "open"),
        (Self::Running, "running", "open"),
        (Self::InSync, "in-sync", "good"),
        (Self::Disabled, "disabled", "open"),
    ];

    /// All kinds, by severity.
    pub(super) fn all() -> [Self; 9] {
        Self::ALL.map(|(health, ..)| health)
    }

    /// The health of the Source with this last run.
    pub(super) fn of(
        spec: &SourceSpec,
        run: Option<&Run>,
        status: Option<&RunStatus<'_>>,
        now: Timestamp,
    ) -> Self {
        let before = run.map(Run::leaves).unwrap_or_default();
        if !spec.enabled {
            return Self::Disabled;
        }
        match (status, run) {
            (Some(RunStatus::Failed { .. }), _) => return Self::Failed,
            (Some(RunStatus::Interrupted { .. }), _) => return Self::Blocked,
            (Some(RunStatus::Running { .. }), Some(run)) if run.progress.waits_for.is_some() => {
                return Self::Blocked;
            }
            (Some(RunStatus::Waiting(wait)), _) if wait.reason != WaitReason::Turn => return Self::Blocked,
            (Some(RunStatus::Paused), _) => return Self::Paused,
            _ => {}
        }
        if is_stale(spec, &before, now) {
            return Self::Stale;
        }
        if before.problems.is_some_and(|problems| problems.open > 0) {
            return Self::Problems;
        }
        match status {
            Some(RunStatus::Running { .. } | RunStatus::Queued | RunStatus::Waiting(_)) => Self::Running,
            _ if before.in_sync_as_of.is_none() => Self::NeverSynced,
            _ => Self::InSync,
        }
    }

    /// The health with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(health, ..)| *health)
    }

    /// The name in the URL of a page.
    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The label.
    pub(super) fn label(self) -> String {
        self.name().replace('-', " ")
    }

    /// The severity: the name of the CSS class.
    pub(super) fn severity(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}

/// Whether two scheduled times have passed since the Source was in sync. The run of one may be under way; two mean that
/// it is stale.
fn is_stale(spec: &SourceSpec, before: &SyncSummary, now: Timestamp) -> bool {
    let Some(as_of) = before.in_sync_as_of else { return false };
    let scheduled = spec.schedule.as_ref().is_some_and(|schedule| {
        let next = |after| schedule.next_after(&spec.id, after).ok();
        // The second time is after the first, so for most Sources it is not computed.
        next(as_of).filter(|first| *first < now).and_then(next).is_some_and(|second| second < now)
    });
    let followed = spec.follow.is_some_and(|bounds| {
        let most = SignedDuration::from_secs(i64::try_from(bounds.max_seconds).unwrap_or(i64::MAX));
        now.duration_since(as_of) > most.saturating_mul(2)
    });
    scheduled || followed
}

#[cfg(test)]
mod tests;
