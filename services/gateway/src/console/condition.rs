//! The condition of a Source, derived from the control store alone. No catalog is opened for it.

use control::{Run, RunStatus, SourceSpec, SyncSummary};
use jiff::{SignedDuration, Timestamp};

/// The condition of a Source, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    /// Its last run failed.
    Failed,
    /// Its run is blocked at the moment.
    Waiting,
    /// The stored copy is older than its schedule allows.
    Behind,
    /// Some of its resources or documents are problems.
    Problems,
    /// Its run is paused until an operator resumes it.
    Paused,
    /// It was never in sync so far.
    New,
    /// A scheduler runs it, and the condition was good before.
    Running,
    /// It is in sync.
    InStep,
    /// It is disabled.
    Off,
}

impl Condition {
    /// All conditions, the worst first.
    pub(super) const ALL: [Self; 9] = [
        Self::Failed,
        Self::Waiting,
        Self::Behind,
        Self::Problems,
        Self::Paused,
        Self::New,
        Self::Running,
        Self::InStep,
        Self::Off,
    ];

    /// The condition of the Source with this last run.
    pub(super) fn of(
        spec: &SourceSpec,
        run: Option<&Run>,
        standing: Option<&RunStatus<'_>>,
        now: Timestamp,
    ) -> Self {
        let before = run.map(Run::leaves).unwrap_or_default();
        if !spec.enabled {
            return Self::Off;
        }
        match (standing, run) {
            (Some(RunStatus::Failed { .. }), _) => return Self::Failed,
            (Some(RunStatus::Interrupted { .. }), _) => return Self::Waiting,
            (Some(RunStatus::Running { .. }), Some(run)) if run.progress.waits_for.is_some() => {
                return Self::Waiting;
            }
            (Some(RunStatus::Paused), _) => return Self::Paused,
            _ => {}
        }
        if is_behind(spec, &before, now) {
            return Self::Behind;
        }
        if before.problems.is_some_and(|problems| problems.open > 0) {
            return Self::Problems;
        }
        match standing {
            Some(RunStatus::Running { .. } | RunStatus::Queued) => Self::Running,
            _ if before.in_sync_as_of.is_none() => Self::New,
            _ => Self::InStep,
        }
    }

    /// The name of the condition in the URL of a page.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Behind => "behind",
            Self::Problems => "problems",
            Self::Paused => "paused",
            Self::New => "new",
            Self::Running => "running",
            Self::InStep => "in-step",
            Self::Off => "off",
        }
    }

    /// The label of the condition.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Waiting => "waits",
            Self::Behind => "behind",
            Self::Problems => "has problems",
            Self::Paused => "paused",
            Self::New => "not in step yet",
            Self::Running => "being harvested",
            Self::InStep => "in step",
            Self::Off => "switched off",
        }
    }

    /// The severity: the name of the CSS class.
    pub(super) fn gravity(self) -> &'static str {
        match self {
            Self::Failed | Self::Waiting | Self::Behind => "bad",
            Self::Problems | Self::Paused => "doubtful",
            Self::New | Self::Running | Self::Off => "open",
            Self::InStep => "good",
        }
    }
}

/// Whether two scheduled times have passed since the Source was in sync. The run of one may be under way; two mean that
/// it is stale.
fn is_behind(spec: &SourceSpec, before: &SyncSummary, now: Timestamp) -> bool {
    let Some(as_of) = before.in_sync_as_of else { return false };
    let scheduled = spec.schedule.as_ref().is_some_and(|schedule| {
        let next = |after| schedule.next_after(&spec.id, after).ok();
        next(as_of).and_then(next).is_some_and(|second| second < now)
    });
    let followed = spec.continuous.is_some_and(|bounds| {
        let most = SignedDuration::from_secs(i64::try_from(bounds.most_seconds).unwrap_or(i64::MAX));
        now.duration_since(as_of) > most.saturating_mul(2)
    });
    scheduled || followed
}

#[cfg(test)]
mod tests;
