use control::{AskedBy, PollInterval, Revision, RunFailure, RunSpec, RunState, RunWait, Spec};
use model::{RunId, RunMode};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn spec(name: &str) -> SourceSpec {
    Spec::new(format!("https://{name}.example.org/").parse().unwrap()).into()
}

fn term(owner: &str) -> LeaseTerm {
    LeaseTerm { owner: owner.parse().unwrap(), epoch: Revision::new(1) }
}

fn run(source: &SourceSpec, state: RunState, asked: i64) -> Run {
    let spec = RunSpec {
        id: RunId::fresh(),
        source: source.id.clone(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Schedule,
        asked_at: at(asked),
        allow_deletes: false,
        repair: false,
        task: None,
    };
    Run { state, ..Run::submitted(spec) }
}

/// An overview of these Sources, each with its last run. `pod-1` holds all leases.
fn overview(sources: &[(SourceSpec, Option<Run>)]) -> Overview {
    let mut overview = Overview::default();
    for (spec, run) in sources {
        overview.add(spec, run.as_ref(), Some(&term("pod-1")), at(1_000));
    }
    overview
}

fn running(source: &SourceSpec, began: i64) -> Run {
    let mut run = run(source, RunState::Running { owner: term("pod-1") }, 0);
    run.started_at = Some(at(began));
    run.progress.pending = Some(7);
    run
}

#[test]
fn sources_are_counted_by_health_and_runs_by_scheduler() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(spec);
    let other = Run { state: RunState::Running { owner: term("pod-2") }, ..running(&c, 0) };
    let runs = [Some(running(&a, 20)), Some(running(&b, 10)), Some(other), None];
    let overview = overview(&[a, b.clone(), c.clone(), d].into_iter().zip(runs).collect::<Vec<_>>());
    assert_eq!(overview.sources(), 4);
    assert_eq!(overview.with(SourceHealth::Running), 2);
    assert_eq!(overview.with(SourceHealth::NeverSynced), 1);
    assert_eq!(overview.active.count(), 2);
    let first = overview.active.items().next().unwrap();
    assert_eq!((&first.link.source, first.began), (&b.id, at(10)), "the one that began first");
    assert_eq!(overview.places.values().copied().collect::<Vec<_>>(), [2]);
    let lost = overview.waits(WaitsFor::Owner);
    assert_eq!(lost.count, 1, "its scheduler does not hold the lease");
    assert_eq!(overview.pending, 21);
}

#[test]
fn each_reason_has_its_longest_and_its_next() {
    let silent = |source: &SourceSpec, since, until| {
        let wait = RunWait::unreachable(None, "no answer".to_owned(), at(since));
        Run { waiting: Some(RunWait { until: at(until), ..wait }), ..run(source, RunState::Queued, 0) }
    };
    let [a, b, c, d] = ["a", "b", "c", "d"].map(spec);
    let turn = Run { waiting: Some(RunWait::turn(None, at(5))), ..run(&d, RunState::Queued, 0) };
    let runs = [silent(&a, 50, 2_000), silent(&b, 90, 1_500), run(&c, RunState::Queued, 30), turn];
    let ids = [a.id.clone(), b.id.clone()];
    let overview = overview(&[a, b, c, d].into_iter().zip(runs.map(Some)).collect::<Vec<_>>());
    let waits = overview.waits(WaitsFor::Answer);
    let source =
        |first: &Option<(Timestamp, RunLink)>| first.as_ref().map(|(at, link)| (*at, link.source.clone()));
    assert_eq!(waits.count, 2);
    assert_eq!(source(&waits.longest), Some((at(50), ids[0].clone())));
    assert_eq!(source(&waits.next), Some((at(1_500), ids[1].clone())));
    assert_eq!(source(&overview.waits(WaitsFor::Place).longest).unwrap().0, at(30));
    assert_eq!((overview.waits(WaitsFor::Turn).count, overview.waits(WaitsFor::RetryAfter).count), (1, 0));
    assert!(overview.waits(WaitsFor::Turn).next.is_none(), "it is due as soon as there is a place");
}

#[test]
fn the_newest_failures_are_shown_and_those_of_the_guard_wait_for_approval() {
    let failed: Vec<(SourceSpec, Option<Run>)> = (0..30)
        .map(|n| {
            let source = spec(&format!("source-{n}"));
            let why = RunFailure { why: format!("failure {n}"), by_guard: n == 29 };
            let mut run = run(&source, RunState::Failed(why), 0);
            run.finished_at = Some(at(n));
            (source, Some(run))
        })
        .collect();
    let overview = overview(&failed);
    assert_eq!((overview.failures.count(), overview.failures.items().len()), (30, FAILURES));
    let told: Vec<&str> = overview.failures.items().map(|failure| failure.why.as_str()).collect();
    assert_eq!(told[..2], ["failure 29", "failure 28"]);
    assert_eq!(overview.waits(WaitsFor::Approval).count, 1);
    assert_eq!(overview.with(SourceHealth::Failed), 30);
}

#[test]
fn places_of_lists_and_of_words_agree() {
    assert!(WaitsFor::ALL.iter().enumerate().all(|(place, waits_for)| *waits_for as usize == place));
    let follow = Some(PollInterval { min_seconds: 1, max_seconds: 1 });
    let source = SourceSpec::from(Spec { follow, ..spec("a").spec });
    let mut done = run(&source, RunState::Finished { in_sync: true }, 0);
    done.started_at = Some(at(0));
    assert_eq!(overview(&[(source, Some(done))]).with(SourceHealth::Stale), 1);
}
