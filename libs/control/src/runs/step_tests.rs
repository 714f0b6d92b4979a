//! Every step from every state, in one table; and invariants of all runs, for any order of steps.

use model::{PollBasis, RunMode};
use proptest::prelude::*;

use super::*;
use crate::runs::{AskedBy, PollState, RunSpec, RunStatus};
use crate::sources::Spec;
use crate::versioned::Revision;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn run() -> Run {
    Run::submitted(RunSpec {
        id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        source: "example".parse().unwrap(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Operator,
        asked_at: now(),
        allow_deletes: false,
        repair: false,
        task: None,
    })
}

fn term(owner: &str, epoch: u64) -> LeaseTerm {
    LeaseTerm { owner: owner.parse().unwrap(), epoch: Revision::new(epoch) }
}

/// The second of three tenures; the first and the third are those of other owners.
fn mine() -> LeaseTerm {
    term("me", 20)
}

fn wait() -> RunWait {
    RunWait::unreachable(None, "no answer".to_owned(), now())
}

fn states() -> Vec<(&'static str, Run)> {
    let running =
        |wanted| Run { wanted, started_at: Some(now()), state: RunState::Running { owner: mine() }, ..run() };
    let over = |state| Run { finished_at: Some(now()), state, ..run() };
    vec![
        ("queued", run()),
        ("running", running(DesiredState::Run)),
        ("running, pause wanted", running(DesiredState::Pause)),
        ("running, cancel wanted", running(DesiredState::Cancel)),
        ("paused", Run { wanted: DesiredState::Pause, state: RunState::Paused, ..run() }),
        ("finished", over(RunState::Finished { in_sync: true })),
        ("failed", over(RunState::Failed(RunFailure::because("no way in")))),
        ("cancelled", Run { wanted: DesiredState::Cancel, ..over(RunState::Cancelled) }),
    ]
}

fn steps() -> Vec<(&'static str, RunTransition)> {
    let before = term("before", 10);
    vec![
        ("pause", RunTransition::Pause),
        ("resume", RunTransition::Resume),
        ("cancel", RunTransition::Cancel),
        ("start", RunTransition::Start(mine())),
        ("start, later term", RunTransition::Start(term("after", 30))),
        ("start, earlier term", RunTransition::Start(before.clone())),
        (
            "progress",
            RunTransition::Progress(mine(), Progress { pending: Some(7), ..Progress::default() }.into()),
        ),
        ("progress, earlier term", RunTransition::Progress(before.clone(), Progress::default().into())),
        ("release", RunTransition::Release(mine())),
        ("release, earlier term", RunTransition::Release(before.clone())),
        ("wait", RunTransition::Wait(mine(), wait())),
        ("wait, earlier term", RunTransition::Wait(before.clone(), wait())),
        ("postpone", RunTransition::Postpone(wait())),
        ("polled", RunTransition::Polled),
        ("finish", RunTransition::Finish(mine(), InSync(false))),
        ("finish, earlier term", RunTransition::Finish(before.clone(), InSync(true))),
        ("fail", RunTransition::Fail(mine(), RunFailure::because("no disk"))),
        ("fail again", RunTransition::Fail(mine(), RunFailure::because("no way in"))),
        ("fail, earlier term", RunTransition::Fail(before, RunFailure::because("no disk"))),
        ("fail, later term", RunTransition::Fail(term("after", 30), RunFailure::because("no disk"))),
    ]
}

fn describe(before: &Run, after: Result<Run, InvalidTransition>) -> String {
    match after {
        Err(refused) => match refused.why {
            Why::State(_) => "refused".to_owned(),
            Why::Cancelling => "refused: cancelling".to_owned(),
            Why::NotYours(_) => "refused: not yours".to_owned(),
        },
        Ok(after) if after == *before => "same".to_owned(),
        Ok(after) => match &after.state {
            RunState::Running { owner } => {
                let wanted = format!("{:?}", after.wanted).to_lowercase();
                format!("running by {}, {wanted} wanted", owner.owner)
            }
            RunState::Finished { in_sync } => format!("finished, in sync {in_sync}"),
            RunState::Queued if after.waiting.is_some() => "waiting".to_owned(),
            other => other.name().to_owned(),
        },
    }
}

#[test]
fn every_step_from_every_state() {
    const R: &str = "refused";
    const N: &str = "refused: not yours";
    // In the order of `states()`: queued; running with going on, pause, cancel wanted; paused; finished, failed,
    // cancelled.
    let table: [(&str, [&str; 8]); 20] = [
        ("pause", ["paused", "running by me, pause wanted", "same", "refused: cancelling", "same", R, R, R]),
        ("resume", ["same", "same", "running by me, run wanted", "refused: cancelling", "queued", R, R, R]),
        (
            "cancel",
            [
                "cancelled",
                "running by me, cancel wanted",
                "running by me, cancel wanted",
                "same",
                "cancelled",
                R,
                R,
                "same",
            ],
        ),
        ("start", ["running by me, run wanted", "same", "same", "same", R, R, R, R]),
        (
            "start, later term",
            [
                "running by after, run wanted",
                "running by after, run wanted",
                "paused",
                "cancelled",
                R,
                R,
                R,
                R,
            ],
        ),
        ("start, earlier term", ["running by before, run wanted", N, N, N, R, R, R, R]),
        (
            "progress",
            [
                R,
                "running by me, run wanted",
                "running by me, pause wanted",
                "running by me, cancel wanted",
                R,
                R,
                R,
                R,
            ],
        ),
        ("progress, earlier term", [R, N, N, N, R, R, R, R]),
        ("release", [R, "queued", "paused", "cancelled", R, R, R, R]),
        ("release, earlier term", [R, N, N, N, R, R, R, R]),
        ("wait", [R, "waiting", "paused", "cancelled", R, R, R, R]),
        ("wait, earlier term", [R, N, N, N, R, R, R, R]),
        ("postpone", ["waiting", R, R, R, R, R, R, R]),
        ("polled", [R; 8]),
        (
            "finish",
            [R, "finished, in sync false", "finished, in sync false", "finished, in sync false", R, R, R, R],
        ),
        // The response to the first of two equal reports may have been lost.
        ("finish, earlier term", [R, N, N, N, R, "same", R, R]),
        ("fail", [R, "failed", "failed", "failed", R, R, R, R]),
        ("fail again", [R, "failed", "failed", "failed", R, R, "same", R]),
        ("fail, earlier term", [R, N, N, N, R, R, R, R]),
        ("fail, later term", [R, "failed", "failed", "failed", R, R, R, R]),
    ];
    let states = states();
    let steps = steps();
    assert_eq!(steps.len(), table.len());
    for ((name, step), (row, expected)) in steps.into_iter().zip(table) {
        assert_eq!(name, row);
        for ((state, run), expected) in states.iter().zip(expected) {
            assert_eq!(describe(run, run.step(step.clone(), now())), expected, "{name} when {state}");
        }
    }
}

#[test]
fn a_run_whose_owner_does_not_hold_the_lease_is_interrupted_to_every_reader() {
    let running = run().step(RunTransition::Start(mine()), now()).unwrap();
    let me = &mine().owner;
    assert_eq!(running.status(Some(&mine())), RunStatus::Running { owner: me, stopping: false });
    for present in [None, Some(term("after", 30)), Some(term("me", 30))] {
        assert_eq!(running.status(present.as_ref()), RunStatus::Interrupted { owner: me });
    }
    assert!(running.wants_work());
    let stopping = running.step(RunTransition::Cancel, now()).unwrap();
    assert_eq!(stopping.status(Some(&mine())), RunStatus::Running { owner: me, stopping: true });
    assert_eq!(run().status(Some(&mine())), RunStatus::Queued);
}

#[test]
fn a_run_that_waits_says_why_until_it_is_started_or_resumed() {
    let running = run().step(RunTransition::Start(mine()), now()).unwrap();
    let waiting = running.step(RunTransition::Wait(mine(), wait()), now()).unwrap();
    assert_eq!(waiting.status(None), RunStatus::Waiting(&wait()));
    assert!(waiting.wants_work());
    let later = term("after", 30);
    for step in
        [RunTransition::Start(later), RunTransition::Resume, RunTransition::Pause, RunTransition::Cancel]
    {
        let after = waiting.step(step, now()).unwrap();
        assert_eq!(after.waiting, None, "{after:?}");
    }
}

#[test]
fn a_poll_brings_a_run_in_sync_forward_while_it_proves_anything() {
    let spec: Spec = serde_json::from_value(serde_json::json!({"entry": "https://example.org/"})).unwrap();
    let changed = Spec { strict: true, ..spec.clone() };
    let later = "2026-03-01T13:00:00Z".parse().unwrap();
    let basis = PollBasis { documents: Vec::new(), valid_until: later };
    let mut run = run().step(RunTransition::Start(mine()), now()).unwrap();
    run.progress.poll = Some(PollState { basis: basis.clone(), spec: spec.run_digest(), polled_at: None });
    assert_eq!(run.poll_basis(&spec, now()), None, "it is not over");
    let finished = run.step(RunTransition::Finish(mine(), InSync(true)), now()).unwrap();
    assert_eq!(finished.poll_basis(&spec, now()), Some(&basis));
    assert_eq!([finished.poll_basis(&changed, now()), finished.poll_basis(&spec, later)], [None; 2]);
    let between = "2026-03-01T12:30:00Z".parse().unwrap();
    let polled = finished.step(RunTransition::Polled, between).unwrap();
    assert_eq!((polled.polled_at(), polled.leaves().in_sync_as_of), (Some(between), Some(between)));
    let failed = run.step(RunTransition::Finish(mine(), InSync(false)), now()).unwrap();
    assert_eq!(failed.poll_basis(&spec, now()), None);
    assert!(failed.step(RunTransition::Polled, between).is_err());
}

#[test]
fn a_run_taken_over_keeps_its_beginning_and_its_progress() {
    let later: Timestamp = "2026-03-01T13:00:00Z".parse().unwrap();
    let progress = Progress { pending: Some(7), ..Progress::default() };
    let first = run().step(RunTransition::Start(mine()), now()).unwrap();
    let told = first.step(RunTransition::Progress(mine(), progress.clone().into()), now()).unwrap();
    let taken = told.step(RunTransition::Start(term("after", 30)), later).unwrap();
    assert_eq!((taken.started_at, &taken.progress), (Some(now()), &progress));
    let queued = taken.step(RunTransition::Release(term("after", 30)), later).unwrap();
    assert_eq!((queued.started_at, &queued.progress), (Some(now()), &progress));
}

#[test]
fn a_refusal_says_which_run_what_and_why() {
    let over = run().step(RunTransition::Cancel, now()).unwrap();
    let message = over.step(RunTransition::Pause, now()).unwrap_err().to_string();
    assert_eq!(message, "the run 01ARZ3NDEKTSV4RRFFQ69G5FAV of example cannot be paused: it is cancelled");
    let running = run().step(RunTransition::Start(mine()), now()).unwrap();
    let message = running.step(RunTransition::Release(term("before", 10)), now()).unwrap_err().to_string();
    assert!(message.ends_with("me has a newer lease; this process must stop"), "{message}");
}

proptest! {
    #[test]
    fn whatever_happens_what_is_over_stays_and_a_cancelling_is_not_forgotten(
        taken in prop::collection::vec(prop::sample::select(steps()), 0..40)
    ) {
        let mut run = run();
        let mut cancelled = false;
        for (name, step) in taken {
            let before = run.clone();
            let cancels = step == RunTransition::Cancel;
            match run.step(step, now()) {
                Ok(next) => run = next,
                Err(_) => continue,
            }
            prop_assert!(!before.state.is_over() || run == before, "{} changed what was over", name);
            cancelled |= cancels;
            prop_assert_eq!(run.state.is_over(), run.finished_at.is_some());
            prop_assert!(run.state != RunState::Paused || run.wanted == DesiredState::Pause);
            if cancelled {
                prop_assert_eq!(run.wanted, DesiredState::Cancel);
            }
            if let (RunState::Running { owner: a }, RunState::Running { owner: b }) = (&before.state, &run.state) {
                prop_assert!(a.epoch <= b.epoch, "an earlier term took over");
            }
        }
    }
}
