//! What became of the runs of many Sources: when they began and ended, and the condition of each kind of Source.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::{Condition, RunSeen};
use crate::sources_server::Kind;
use crate::stats::{Spread, percentile};

/// The runs of all Sources at a moment.
#[derive(Debug)]
pub(super) struct Settled {
    /// When the first of them was requested, or just before.
    pub(super) since: Timestamp,
    /// The kind of each Source, and its run; none if it has none yet.
    pub(super) sources: Vec<(Kind, Option<RunSeen>)>,
}

impl Settled {
    /// How many Sources of a kind are in each condition. A Source without a run is queued.
    pub(super) fn conditions(&self, kind: Kind) -> BTreeMap<Condition, u64> {
        let mut conditions = BTreeMap::new();
        for (_, run) in self.sources.iter().filter(|(of, _)| *of == kind) {
            *conditions.entry(self.condition(run.as_ref())).or_default() += 1;
        }
        conditions
    }

    /// How many Sources of a kind are in sync.
    pub(super) fn in_sync(&self, kind: Kind) -> u64 {
        self.conditions(kind).get(&Condition::InSync).copied().unwrap_or_default()
    }

    /// Whether the runs of all Sources of a kind have ended.
    pub(super) fn is_over(&self, kind: Kind) -> bool {
        self.conditions(kind).keys().all(|condition| condition.is_over())
    }

    /// Resources that the Sources of a kind have stored, by the counters of their runs.
    pub(super) fn resources(&self, kind: Kind) -> u64 {
        self.runs(kind).map(RunSeen::resources).sum()
    }

    /// When the last run of a kind ended, in seconds from the start; none while none has ended.
    pub(super) fn last_finish(&self, kind: Kind) -> Option<f64> {
        self.finishes(kind).into_iter().max_by(f64::total_cmp)
    }

    /// Figures of the healthy Sources' waits for their first request. `first` has its time for each Source, in
    /// milliseconds since 1970.
    pub(super) fn first_requests(&self, first: &[Option<i64>]) -> BTreeMap<String, u64> {
        let healthy = self.sources.iter().zip(first).filter(|((kind, _), _)| *kind == Kind::Ok);
        let waits: Vec<f64> = healthy
            .filter_map(|((_, run), first)| {
                let requested = run.as_ref()?.requested_at.as_millisecond();
                Some((*first)?.saturating_sub(requested).max(0) as f64)
            })
            .collect();
        let of = |percent| percentile(&waits, percent).map(|millis| millis as u64);
        let figures = [("p50", of(50)), ("p99", of(99)), ("greatest", of(100))];
        let told = figures.into_iter().filter_map(|(name, wait)| Some((name, wait?)));
        told.map(|(name, wait)| (format!("due_to_first_request_{name}_ms"), wait)).collect()
    }

    /// Figures of the healthy Sources' times, and of the conditions of all.
    pub(super) fn figures(&self) -> BTreeMap<String, u64> {
        let mut figures = BTreeMap::new();
        let mut note = |name: &str, millis: Option<f64>| {
            // Rounded up to whole milliseconds, so that no figure is better than measured.
            figures.extend(millis.map(|millis| (name.to_owned(), millis.ceil().max(0.0) as u64)));
        };
        let waits = self.waits(Kind::Ok);
        note("due_to_begun_p50_ms", percentile(&waits, 50));
        note("due_to_begun_p99_ms", percentile(&waits, 99));
        note("due_to_begun_greatest_ms", percentile(&waits, 100));
        if let Some(finish) = Spread::of(self.finishes(Kind::Ok)) {
            note("finish_median_ms", Some(finish.median * 1e3));
            note("finish_greatest_ms", Some(finish.max * 1e3));
            note("finish_greatest_percent_of_median", Some(100.0 * finish.max / finish.median));
            let in_sync = self.in_sync(Kind::Ok) as f64;
            figures.insert("sources_in_100_seconds".to_owned(), (100.0 * in_sync / finish.max) as u64);
        }
        for kind in Kind::ALL {
            for (condition, count) in self.conditions(kind) {
                figures.insert(format!("{}_{}", kind.name(), condition.name()), count);
            }
        }
        figures
    }

    /// One line for the terminal.
    pub(super) fn line(&self) -> String {
        let of_kind = |kind: Kind| {
            let conditions: Vec<String> = self
                .conditions(kind)
                .into_iter()
                .map(|(condition, count)| format!("{count} {}", condition.name().replace('_', " ")))
                .collect();
            (!conditions.is_empty()).then(|| format!("{}: {}", kind.name(), conditions.join(", ")))
        };
        Kind::ALL.into_iter().filter_map(of_kind).collect::<Vec<_>>().join("; ")
    }

    /// From request to start, in milliseconds, of each run that has begun.
    fn waits(&self, kind: Kind) -> Vec<f64> {
        let wait = |run: &RunSeen| Some(run.started_at?.duration_since(run.requested_at).as_secs_f64() * 1e3);
        self.runs(kind).filter_map(wait).collect()
    }

    /// From the start of all to the end of each run, in seconds.
    fn finishes(&self, kind: Kind) -> Vec<f64> {
        let finish = |run: &RunSeen| Some(run.finished_at?.duration_since(self.since).as_secs_f64());
        self.runs(kind).filter_map(finish).collect()
    }

    /// The runs of a kind that were requested since the start. An earlier run says nothing of this time.
    fn runs(&self, kind: Kind) -> impl Iterator<Item = &RunSeen> {
        let of_kind = self.sources.iter().filter(move |(of, _)| *of == kind);
        of_kind.filter_map(|(_, run)| run.as_ref()).filter(move |run| run.requested_at >= self.since)
    }

    /// An earlier run that goes on is still the run of its Source; one that has ended is not.
    fn condition(&self, run: Option<&RunSeen>) -> Condition {
        let run = run.filter(|run| run.requested_at >= self.since || !run.condition().is_over());
        run.map_or(Condition::Queued, RunSeen::condition)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn run(requested: i64, started: i64, finished: Option<i64>) -> Option<RunSeen> {
        let state = if finished.is_some() { "finished" } else { "running" };
        let run = json!({
            "source": "a-1", "state": state, "in_sync": finished.map(|_| true), "requested_at": at(requested),
            "started_at": at(started), "finished_at": finished.map(at), "counters": {"stored": 20},
        });
        Some(serde_json::from_value(run).unwrap())
    }

    #[test]
    fn times_are_those_of_the_healthy_sources() {
        let healthy = [(0, 1, Some(4)), (0, 2, Some(6)), (1, 9, Some(12))].map(|(a, b, c)| run(a, b, c));
        let mut sources: Vec<_> = healthy.into_iter().map(|run| (Kind::Ok, run)).collect();
        sources.push((Kind::Dead, run(0, 50, None)));
        let settled = Settled { since: at(0), sources };
        let figures = settled.figures();
        for (name, expected) in [
            ("due_to_begun_p50_ms", 2_000),
            ("due_to_begun_greatest_ms", 8_000),
            ("finish_median_ms", 6_000),
            ("finish_greatest_ms", 12_000),
            ("finish_greatest_percent_of_median", 200),
            ("sources_in_100_seconds", 25),
            ("ok_in_sync", 3),
            ("dead_running", 1),
        ] {
            assert_eq!(figures.get(name), Some(&expected), "{name}");
        }
        assert!(settled.is_over(Kind::Ok) && !settled.is_over(Kind::Dead) && settled.is_over(Kind::Slow));
        assert_eq!((settled.resources(Kind::Ok), settled.last_finish(Kind::Ok)), (60, Some(12.0)));
        assert_eq!(settled.line(), "ok: 3 in sync; dead: 1 running");
    }

    #[test]
    fn the_wait_for_the_first_request_is_that_of_healthy_sources_that_got_one() {
        let sources =
            vec![(Kind::Dead, run(0, 1, None)), (Kind::Ok, run(0, 1, None)), (Kind::Ok, run(0, 1, None))];
        let settled = Settled { since: at(0), sources };
        let second = |second| Some(at(second).as_millisecond());
        let figures = settled.first_requests(&[second(90), second(3), None]);
        assert_eq!(figures.get("due_to_first_request_greatest_ms"), Some(&3_000));
        assert_eq!(settled.first_requests(&[None; 3]), BTreeMap::new());
    }

    #[test]
    fn an_earlier_run_that_has_ended_and_none_count_as_queued() {
        let sources =
            vec![(Kind::Ok, run(-5, -4, Some(-1))), (Kind::Ok, None), (Kind::Slow, run(-5, -4, None))];
        let settled = Settled { since: at(0), sources };
        assert_eq!(settled.conditions(Kind::Ok), BTreeMap::from([(Condition::Queued, 2)]));
        assert_eq!(settled.conditions(Kind::Slow), BTreeMap::from([(Condition::Running, 1)]));
        assert!(!settled.is_over(Kind::Ok) && settled.last_finish(Kind::Ok).is_none());
    }
}
