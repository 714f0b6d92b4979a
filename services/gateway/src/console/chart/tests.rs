use control::{AskedBy, Run as FleetRun, RunSpec, RunState};
use model::{RunId, RunMode};

use super::*;

/// Runs that began every 100 seconds and took 10, oldest first. Each has a number of stored resources, and whether the
/// Source was in sync then.
fn runs(of: &[(u64, bool)]) -> Vec<Run> {
    let mut runs: Vec<Run> = (0..)
        .zip(of)
        .map(|(number, (stored, in_sync))| {
            let began = Timestamp::from_second(1_800_000_000 + number * 100).unwrap();
            let in_sync = *in_sync;
            let spec = RunSpec {
                id: RunId::fresh(),
                source: "example".parse().unwrap(),
                mode: RunMode::Auto,
                asked_by: AskedBy::Schedule,
                asked_at: began,
                allow_deletes: false,
                repair: false,
                task: None,
            };
            let mut run = FleetRun {
                state: RunState::Finished { in_sync },
                started_at: Some(began),
                finished_at: Some(began + jiff::SignedDuration::from_secs(10)),
                ..FleetRun::submitted(spec)
            };
            run.progress.counters.stored = *stored;
            run.progress.counters.planned = 9;
            run.progress.counters.failed = u64::from(!in_sync);
            Run::new(&run, &run.status(None))
        })
        .collect();
    runs.reverse();
    runs
}

#[test]
fn runs_are_told_oldest_first_by_their_rate_and_what_they_left() {
    let runs = runs(&[(20, true), (5, false)]);
    let told = |bars: Vec<Bar>| bars.into_iter().map(|bar| bar.label).collect::<Vec<_>>();
    assert!(told(throughput(&runs))[0].starts_with("2.0/s: 20 resources"));
    assert!(told(throughput(&runs))[1].starts_with("0.5/s"));
    assert_eq!(told(backlog(&runs)), ["0 of 9 planned", "1 of 9 planned"]);
}

#[test]
fn the_lag_counts_from_the_run_before_that_was_in_sync() {
    let runs = runs(&[(1, true), (1, false), (1, true), (1, true)]);
    let heights: Vec<f64> = lag(&runs).into_iter().map(|bar| bar.height).collect();
    assert_eq!(heights, [210.0, 110.0]);
}

#[test]
fn a_chart_says_in_words_what_it_shows() {
    let text = section(&runs(&[(20, true), (5, false)])).into_string();
    assert!(text.contains("2 runs from") && text.contains("the last one: 0.5/s"), "{text}");
    assert!(text.contains("aria-hidden=\"true\"") && text.contains("<caption"), "{text}");
    assert!(section(&[]).into_string().is_empty(), "nothing is shown of nothing");
}
