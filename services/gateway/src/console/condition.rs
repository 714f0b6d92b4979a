//! How a Source stands, from what the fleet shares alone: no catalog is opened for it.

use control::{Before, Run, SourceSpec, Standing};
use jiff::{SignedDuration, Timestamp};

/// How a Source stands: the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Condition {
    /// Its last run could not go on.
    Failed,
    /// Its run does not go on at the moment.
    Waiting,
    /// What is held is older than its schedule allows.
    Behind,
    /// Some of its resources or documents are problems.
    Problems,
    /// Its run waits for somebody to resume it.
    Paused,
    /// It was never in step so far.
    New,
    /// Somebody works on it, and all was well before.
    Running,
    /// It is in step.
    InStep,
    /// It is not harvested.
    Off,
}

impl Condition {
    /// All of them, the worst first.
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

    /// How the Source with this last run stands.
    pub(super) fn of(
        spec: &SourceSpec,
        run: Option<&Run>,
        standing: Option<&Standing<'_>>,
        now: Timestamp,
    ) -> Self {
        let before = run.map(Run::leaves).unwrap_or_default();
        if !spec.enabled {
            return Self::Off;
        }
        match (standing, run) {
            (Some(Standing::Failed { .. }), _) => return Self::Failed,
            (Some(Standing::Interrupted { .. }), _) => return Self::Waiting,
            (Some(Standing::Running { .. }), Some(run)) if run.progress.waits_for.is_some() => {
                return Self::Waiting;
            }
            (Some(Standing::Paused), _) => return Self::Paused,
            _ => {}
        }
        if is_behind(spec, &before, now) {
            return Self::Behind;
        }
        if before.problems.is_some_and(|problems| problems.open > 0) {
            return Self::Problems;
        }
        match standing {
            Some(Standing::Running { .. } | Standing::Queued) => Self::Running,
            _ if before.in_sync_as_of.is_none() => Self::New,
            _ => Self::InStep,
        }
    }

    /// Its name, in the address of a page.
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

    /// The same in words.
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

    /// How grave it is: the name of its looks.
    pub(super) fn gravity(self) -> &'static str {
        match self {
            Self::Failed | Self::Waiting | Self::Behind => "bad",
            Self::Problems | Self::Paused => "doubtful",
            Self::New | Self::Running | Self::Off => "open",
            Self::InStep => "good",
        }
    }
}

/// Whether the Source was due, and then due again, since it was in step: one turn may be under way, two are one too many.
fn is_behind(spec: &SourceSpec, before: &Before, now: Timestamp) -> bool {
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
mod tests {
    use control::{AskedBy, MemberId, PollBounds, Problems, RunMode, RunSpec, RunState, Schedule, Stopped};
    use model::RunId;

    use super::*;

    fn at(second: i64) -> Timestamp {
        // 1,800,000,000 is a full hour.
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn spec() -> SourceSpec {
        SourceSpec {
            schedule: Some(Schedule::every(3_600).jitter(0)),
            ..SourceSpec::new("http://h/".parse().unwrap())
        }
    }

    /// A run that began in second 0.
    fn run(state: RunState, open: u64) -> Run {
        let spec = RunSpec {
            id: RunId::fresh(),
            source: spec().id,
            mode: RunMode::Auto,
            asked_by: AskedBy::Schedule,
            asked_at: at(0),
            allow_deletes: false,
            repair: false,
        };
        let mut run = Run { state, started_at: Some(at(0)), ..Run::submitted(spec) };
        run.progress.problems = Some(Problems { open, ignored: 0 });
        run
    }

    fn condition(spec: &SourceSpec, run: &Run, now: i64) -> Condition {
        Condition::of(spec, Some(run), Some(&run.standing(None)), at(now))
    }

    #[test]
    fn one_turn_may_be_missed_and_two_are_too_many() {
        let done = run(RunState::Finished { in_sync: true }, 0);
        assert_eq!(condition(&spec(), &done, 7_100), Condition::InStep);
        assert_eq!(condition(&spec(), &done, 7_300), Condition::Behind);
        let unscheduled = SourceSpec { schedule: None, ..spec() };
        assert_eq!(condition(&unscheduled, &done, 1_000_000), Condition::InStep);
        let followed = SourceSpec {
            continuous: Some(PollBounds { least_seconds: 10, most_seconds: 100 }),
            ..unscheduled
        };
        assert_eq!(condition(&followed, &done, 150), Condition::InStep);
        assert_eq!(condition(&followed, &done, 250), Condition::Behind);
    }

    #[test]
    fn what_is_broken_comes_before_what_is_only_late_or_has_problems() {
        let failed = run(RunState::Failed(Stopped::because("gone")), 3);
        assert_eq!(condition(&spec(), &failed, 1), Condition::Failed);
        let finished = run(RunState::Finished { in_sync: false }, 3);
        assert_eq!(condition(&spec(), &finished, 1), Condition::Problems);
        let mut again = run(RunState::Queued, 0);
        again.progress.problems = None;
        again.before = finished.leaves();
        assert_eq!(condition(&spec(), &again, 1), Condition::Problems, "as long as nobody knows better");
        again.before = Before { in_sync_as_of: Some(at(0)), problems: None };
        assert_eq!(condition(&spec(), &again, 1), Condition::Running);
        assert_eq!(condition(&spec(), &run(RunState::Paused, 0), 1), Condition::Paused);
        let off = SourceSpec { enabled: false, ..spec() };
        assert_eq!(condition(&off, &failed, 1), Condition::Off);
        assert_eq!(Condition::of(&spec(), None, None, at(0)), Condition::New);
        assert!(Condition::ALL.is_sorted());
    }

    #[test]
    fn a_run_that_does_not_go_on_is_told_from_one_that_does() {
        let owner: MemberId = "pod-1".parse().unwrap();
        let mut running = run(RunState::Queued, 0);
        let of = |running: &Run| {
            let standing = Standing::Running { owner: &owner, stopping: false };
            Condition::of(&spec(), Some(running), Some(&standing), at(0))
        };
        assert_eq!(of(&running), Condition::Running);
        running.progress.waits_for = Some("the Source does not answer".to_owned());
        assert_eq!(of(&running), Condition::Waiting);
        let interrupted = Standing::Interrupted { owner: &owner };
        assert_eq!(Condition::of(&spec(), Some(&running), Some(&interrupted), at(0)), Condition::Waiting);
    }
}
