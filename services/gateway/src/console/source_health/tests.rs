use control::{AskedBy, MemberId, PollInterval, Problems, RunFailure, RunSpec, RunState, Schedule, Spec};
use model::{RunId, RunMode};

use super::*;

fn at(second: i64) -> Timestamp {
    // 1,800,000,000 is a full hour.
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn spec() -> SourceSpec {
    let schedule = Some(Schedule::every(3_600).jitter(0));
    Spec { schedule, ..Spec::new("http://h/".parse().unwrap()) }.into()
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
        task: None,
    };
    let mut run = Run { state, started_at: Some(at(0)), ..Run::submitted(spec) };
    run.progress.problems = Some(Problems { open, ignored: 0 });
    run
}

fn condition(spec: &SourceSpec, run: &Run, now: i64) -> SourceHealth {
    SourceHealth::of(spec, Some(run), Some(&run.status(None)), at(now))
}

#[test]
fn a_source_is_stale_after_two_missed_runs() {
    let done = run(RunState::Finished { in_sync: true }, 0);
    assert_eq!(condition(&spec(), &done, 7_100), SourceHealth::InSync);
    assert_eq!(condition(&spec(), &done, 7_300), SourceHealth::Stale);
    let unscheduled = SourceSpec::from(Spec { schedule: None, ..spec().spec });
    assert_eq!(condition(&unscheduled, &done, 1_000_000), SourceHealth::InSync);
    let follow = Some(PollInterval { min_seconds: 10, max_seconds: 100 });
    let followed = SourceSpec::from(Spec { follow, ..unscheduled.spec });
    assert_eq!(condition(&followed, &done, 150), SourceHealth::InSync);
    assert_eq!(condition(&followed, &done, 250), SourceHealth::Stale);
}

#[test]
fn failures_come_before_staleness_and_problems() {
    let failed = run(RunState::Failed(RunFailure::because("gone")), 3);
    assert_eq!(condition(&spec(), &failed, 1), SourceHealth::Failed);
    let finished = run(RunState::Finished { in_sync: false }, 3);
    assert_eq!(condition(&spec(), &finished, 1), SourceHealth::Problems);
    let mut again = run(RunState::Queued, 0);
    again.progress.problems = None;
    again.before = finished.leaves();
    assert_eq!(condition(&spec(), &again, 1), SourceHealth::Problems, "until a newer count is known");
    again.before = SyncSummary { in_sync_as_of: Some(at(0)), ..SyncSummary::default() };
    assert_eq!(condition(&spec(), &again, 1), SourceHealth::Running);
    assert_eq!(condition(&spec(), &run(RunState::Paused, 0), 1), SourceHealth::Paused);
    let off = SourceSpec::from(Spec { enabled: false, ..spec().spec });
    assert_eq!(condition(&off, &failed, 1), SourceHealth::Disabled);
    assert_eq!(SourceHealth::of(&spec(), None, None, at(0)), SourceHealth::NeverSynced);
    assert!(SourceHealth::all().iter().enumerate().all(|(place, health)| *health as usize == place));
}

#[test]
fn an_interrupted_or_waiting_run_is_blocked() {
    let owner: MemberId = "pod-1".parse().unwrap();
    let mut running = run(RunState::Queued, 0);
    let of = |running: &Run| {
        let status = RunStatus::Running { owner: &owner, stopping: false };
        SourceHealth::of(&spec(), Some(running), Some(&status), at(0))
    };
    assert_eq!(of(&running), SourceHealth::Running);
    running.progress.waits_for = Some("the Source does not answer".to_owned());
    assert_eq!(of(&running), SourceHealth::Blocked);
    let interrupted = RunStatus::Interrupted { owner: &owner };
    assert_eq!(SourceHealth::of(&spec(), Some(&running), Some(&interrupted), at(0)), SourceHealth::Blocked);
}
