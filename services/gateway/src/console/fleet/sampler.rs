//! Records the state of the fleet once a minute, for the charts of the first page.

use std::collections::HashMap;
use std::time::Duration;

use control::{Run, Sample, SampledRuns, SampledSources};
use jiff::{SignedDuration, Timestamp};
use model::{RunId, SourceId};
use tokio_util::sync::CancellationToken;

use super::overview::Overview;
use super::waits::WaitsFor;
use crate::console::source_health::SourceHealth;
use crate::state::Gateway;

/// Records a sample at each full minute, unless another gateway was first. Ends with `stop`.
pub(crate) async fn sample(gateway: Gateway, stop: CancellationToken) {
    let mut counted = None;
    let mut minute = next_minute(gateway.now());
    loop {
        let pause = Duration::try_from(minute.duration_since(gateway.now())).unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        let views = &gateway.views;
        if views.sources.is_live() && views.runs.is_live() && views.leases.is_live() {
            let sample = take(&gateway, minute, &mut counted);
            // All gateways see the same state, so any of them may be the first.
            if views.samples.get(&minute).is_none()
                && let Err(error) = gateway.control.samples().record(&sample).await
            {
                tracing::debug!(%error, "a sample of the fleet is left out");
            }
        } else {
            counted = None;
        }
        minute = next_minute(gateway.now().max(minute));
    }
}

fn take(gateway: &Gateway, at: Timestamp, counted: &mut Option<Counted>) -> Sample {
    let overview = Overview::of(gateway, None, gateway.now());
    let mut present = Counted::default();
    gateway.views.runs.for_each(|run| present.note(run));
    let delta = counted.as_ref().map(|before| present.since(before));
    *counted = Some(present);
    Sample {
        at,
        runs: runs(&overview),
        sources: sources(&overview),
        pending: overview.pending,
        stored: delta.map(|delta| delta.stored),
        bytes: delta.map(|delta| delta.bytes),
    }
}

/// The first full minute after a time.
fn next_minute(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(60)).unwrap_or(now) + SignedDuration::from_secs(60)
}

fn runs(overview: &Overview) -> SampledRuns {
    let waits = |waits_for| small(overview.waits(waits_for).count);
    SampledRuns {
        active: small(overview.active.count()),
        queued: waits(WaitsFor::Place),
        unreachable: waits(WaitsFor::Answer),
        retry_after: waits(WaitsFor::RetryAfter),
        turn: waits(WaitsFor::Turn),
    }
}

fn sources(overview: &Overview) -> SampledSources {
    let with = |health| small(overview.with(health));
    SampledSources {
        failed: with(SourceHealth::Failed),
        blocked: with(SourceHealth::Blocked),
        stale: with(SourceHealth::Stale),
        problems: with(SourceHealth::Problems),
        paused: with(SourceHealth::Paused),
        never_synced: with(SourceHealth::NeverSynced),
        running: with(SourceHealth::Running),
        in_sync: with(SourceHealth::InSync),
        disabled: with(SourceHealth::Disabled),
    }
}

fn small(count: u64) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// What the current or last run of each Source has stored and received so far.
#[derive(Debug, Default)]
struct Counted(HashMap<SourceId, (RunId, Amount)>);

/// Resources stored and bytes received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Amount {
    stored: u64,
    bytes: u64,
}

impl Counted {
    fn note(&mut self, run: &Run) {
        let counters = &run.progress.counters;
        let amount = Amount { stored: counters.stored, bytes: counters.bytes };
        self.0.insert(run.spec.source.clone(), (run.spec.id, amount));
    }

    /// What was added since `before`. Of a Source with several runs since then, only the last one counts.
    fn since(&self, before: &Self) -> Amount {
        let mut sum = Amount::default();
        for (source, (run, amount)) in &self.0 {
            let before = before.0.get(source).filter(|(before, _)| before == run);
            let before = before.map_or(Amount::default(), |(_, amount)| *amount);
            sum.stored = sum.stored.saturating_add(amount.stored.saturating_sub(before.stored));
            sum.bytes = sum.bytes.saturating_add(amount.bytes.saturating_sub(before.bytes));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use control::{AskedBy, RunSpec};
    use model::RunMode;

    use super::*;

    fn run(source: &str, stored: u64) -> Run {
        let spec = RunSpec {
            id: RunId::fresh(),
            source: source.parse().unwrap(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Schedule,
            asked_at: Timestamp::UNIX_EPOCH,
            allow_deletes: false,
            repair: false,
            task: None,
        };
        stored_by(Run::submitted(spec), stored)
    }

    fn stored_by(mut run: Run, stored: u64) -> Run {
        run.progress.counters.stored = stored;
        run.progress.counters.bytes = 10 * stored;
        run
    }

    fn counted(runs: &[&Run]) -> Counted {
        let mut counted = Counted::default();
        runs.iter().for_each(|run| counted.note(run));
        counted
    }

    #[test]
    fn a_minute_counts_what_runs_added_and_all_of_a_new_run() {
        let (idle, working, last) = (run("a", 5), run("b", 100), run("c", 50));
        let before = counted(&[&idle, &working, &last]);
        let (went_on, next, first) = (stored_by(working, 130), run("c", 8), run("d", 1));
        let now = counted(&[&idle, &went_on, &next, &first]);
        assert_eq!(now.since(&before), Amount { stored: 39, bytes: 390 });
        assert_eq!(now.since(&now), Amount::default());
        let counted_anew = counted(&[&stored_by(idle, 2)]);
        assert_eq!(counted_anew.since(&before), Amount::default(), "a counter that begins anew");
    }

    #[test]
    fn samples_are_of_full_minutes_one_after_the_other() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        assert_eq!(next_minute(at(0)), at(60));
        assert_eq!(next_minute(at(59)), at(60));
        assert_eq!(next_minute(at(60)), at(120));
    }
}
