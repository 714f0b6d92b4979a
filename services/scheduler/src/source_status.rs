//! Status of each Source as a bounded number of metric series (docs/adr/0033): one each for those that are late the
//! most, one for all others together.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control::{Run, RunState, SourceSpec, WaitReason, WatchCache};
use jiff::{SignedDuration, Timestamp};
use model::{Clock, SourceId};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::due;
use crate::source_groups::{GroupedSource, OTHER, SourceGroups};

/// Status of the Sources that this scheduler owns. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceStatuses(Arc<Mutex<HashMap<SourceId, SourceStatus>>>);

/// Status of one Source, beside what is in the control store.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceStatus {
    /// Since when this scheduler owns it.
    pub(crate) since: Option<Timestamp>,
    /// Start of the last run that finished.
    pub(crate) last_success: Option<Timestamp>,
    /// Pending records of the active run.
    pub(crate) pending: u64,
    /// How far the synchronized time is behind the changes in the Source's documents, at their last request.
    pub(crate) behind: Option<SignedDuration>,
    /// Problems that the last run left open.
    pub(crate) problems: Option<u64>,
    /// Resources in outstanding jobs.
    pub(crate) in_flight: usize,
    /// Outstanding jobs, and their maximum.
    pub(crate) window: (usize, usize),
}

impl SourceStatuses {
    /// Updates the status of an owned Source.
    pub(crate) fn note(&self, source: &SourceId, change: impl FnOnce(&mut SourceStatus)) {
        change(self.all().entry(source.clone()).or_default());
    }

    /// Removes a Source: another scheduler owns it.
    pub(crate) fn forget(&self, source: &SourceId) {
        self.all().remove(source);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SourceId, SourceStatus>> {
        // A half-written status is incomplete, but not wrong.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collector that shows the status of Sources on a scrape.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) statuses: SourceStatuses,
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) runs: WatchCache<Run>,
    pub(crate) clock: Arc<dyn Clock>,
    /// How many Sources have series of their own.
    pub(crate) most: usize,
    /// Grace period after a Source's scheduled time.
    pub(crate) grace: Duration,
    /// By which label Sources are counted in groups.
    pub(crate) groups: SourceGroups,
}

/// A Source, or all Sources without a row of their own.
#[derive(Debug, Clone, Default, PartialEq)]
struct Row {
    source: String,
    /// The value of the label by which Sources are grouped.
    group: Option<String>,
    pending: f64,
    work_age: f64,
    success_age: Option<f64>,
    overdue: Option<f64>,
    lag: Option<f64>,
    problems: Option<f64>,
    failing: f64,
}

impl Row {
    fn of(
        source: &SourceId,
        status: &SourceStatus,
        spec: Option<&SourceSpec>,
        run: Option<&Run>,
        now: Timestamp,
    ) -> Self {
        let age = |then: Timestamp| now.duration_since(then).as_secs_f64().max(0.0);
        let waiting = run.filter(|run| run.wants_work()).map(|run| run.spec.asked_at);
        // For a Source that was never in sync, the time counts from the request for it, as far as this process knows.
        let fresh = status.last_success.or(match (waiting, status.since) {
            (Some(asked), Some(since)) => Some(asked.min(since)),
            (asked, since) => asked.or(since),
        });
        let until = spec.zip(fresh).and_then(|(spec, fresh)| due::fresh_until(spec, fresh));
        Self {
            source: source.as_str().to_owned(),
            group: None,
            pending: status.pending as f64,
            work_age: waiting.map_or(0.0, age),
            success_age: status.last_success.map(age),
            overdue: until.map(age),
            lag: status.behind.map(|behind| behind.as_secs_f64()),
            problems: status.problems.map(|problems| problems as f64),
            failing: f64::from(run.is_some_and(|run| matches!(run.state, RunState::Failed { .. }))),
        }
    }

    /// Sums amounts; takes the maximum of times.
    fn join(self, other: &Self) -> Self {
        let longest = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        Self {
            source: OTHER.to_owned(),
            group: None,
            pending: self.pending + other.pending,
            work_age: self.work_age.max(other.work_age),
            success_age: longest(self.success_age, other.success_age),
            overdue: longest(self.overdue, other.overdue),
            lag: longest(self.lag, other.lag),
            problems: self.problems.into_iter().chain(other.problems).reduce(|a, b| a + b),
            failing: self.failing + other.failing,
        }
    }

    /// What its group counts of it. `grace`: seconds after its scheduled time.
    fn grouped(&self, grace: f64) -> GroupedSource {
        GroupedSource {
            value: self.group.clone(),
            is_stale: self.overdue.is_some_and(|overdue| overdue > grace),
            is_failing: self.failing > 0.0,
            pending: self.pending,
            problems: self.problems.unwrap_or_default(),
        }
    }

    /// Sort key of the rows.
    fn lateness(&self) -> [u64; 5] {
        let whole = |seconds: Option<f64>| seconds.unwrap_or_default() as u64;
        [self.failing as u64, whole(self.overdue), whole(self.lag), self.work_age as u64, self.pending as u64]
    }
}

/// The rows of those that are late the most, by name, and one of all others.
fn shown(mut rows: Vec<Row>, most: usize) -> Vec<Row> {
    rows.sort_by(|a, b| {
        Reverse(a.lateness()).cmp(&Reverse(b.lateness())).then_with(|| a.source.cmp(&b.source))
    });
    let rest = rows.split_off(most.min(rows.len()));
    rows.sort_by(|a, b| a.source.cmp(&b.source));
    rows.extend(
        rest.iter()
            .cloned()
            .reduce(|all, one| all.join(&one))
            .map(|all| Row { source: OTHER.to_owned(), ..all }),
    );
    rows
}

impl Shown {
    fn rows(&self) -> Vec<Row> {
        let now = self.clock.now();
        let statuses = self.statuses.all();
        let row = |(source, status)| {
            let spec = self.sources.get(source);
            let run = self.runs.get(source);
            let spec = spec.as_ref().map(|spec| &*spec.value);
            let row = Row::of(source, status, spec, run.as_ref().map(|run| &*run.value), now);
            Row { group: spec.and_then(|spec| self.groups.of(spec)), ..row }
        };
        statuses.iter().map(row).collect()
    }
}

impl Shown {
    /// The runs that wait, by reason.
    fn encode_waits(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut counts = WaitReason::ALL.map(|reason| (reason, 0_u32));
        for source in self.statuses.all().keys() {
            let reason = self.runs.get(source).and_then(|run| Some(run.waiting.as_ref()?.reason));
            counts.iter_mut().filter(|(name, _)| Some(*name) == reason).for_each(|(_, count)| *count += 1);
        }
        let help = "Runs that take no place because they wait for their Source or their turn, by reason";
        let mut family =
            encoder.encode_descriptor("scheduler_runs_waiting", help, None, MetricType::Gauge)?;
        for (reason, count) in counts {
            let labels = [("reason", reason.as_str())];
            ConstGauge::new(f64::from(count)).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.rows();
        let grace = self.grace.as_secs_f64();
        let stale = rows.iter().filter(|row| row.overdue.is_some_and(|overdue| overdue > grace)).count();
        let mut in_flight = 0;
        let mut out = 0;
        let mut limit = 0;
        for status in self.statuses.all().values() {
            in_flight += status.in_flight;
            out += status.window.0;
            limit += status.window.1;
        }
        self.encode_waits(&mut encoder)?;
        let grouped = rows.iter().map(|row| row.grouped(grace));
        SourceGroups::encode(&mut encoder, self.groups.shown(&self.sources), grouped)?;
        let pending: f64 = rows.iter().map(|row| row.pending).sum();
        let oldest = rows.iter().map(|row| row.work_age).fold(0.0, f64::max);
        let of_all = [
            ("scheduler_sources_stale", "Sources that were not in step again in time", stale as f64),
            ("scheduler_pending_resources", "Resources that are pending in runs in hand", pending),
            ("scheduler_run_age_seconds", "How long the oldest run waits that is not over", oldest),
            ("scheduler_window_resources", "Resources in jobs that are out", in_flight as f64),
            ("scheduler_window_jobs", "Jobs that are out", out as f64),
            (
                "scheduler_window_jobs_limit",
                "The most jobs that may be out, at the origins that have work",
                limit as f64,
            ),
        ];
        for (name, help, value) in of_all {
            ConstGauge::new(value).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)?;
        }
        type Of = fn(&Row) -> Option<f64>;
        let of_each: [(&str, &str, Of); 7] = [
            ("source_pending_resources", "Resources of a Source that are pending in its run", |row| {
                Some(row.pending)
            }),
            ("source_run_age_seconds", "How long a Source's run waits to be over", |row| Some(row.work_age)),
            ("source_success_age_seconds", "Time since the last run began that went to its end", |row| {
                row.success_age
            }),
            (
                "source_overdue_seconds",
                "How long ago a Source should have been brought in step again",
                |row| row.overdue,
            ),
            (
                "source_lag_seconds",
                "How far what is synchronized lies behind what the documents tell",
                |row| row.lag,
            ),
            ("source_failing", "Whether the last run of a Source could not go on", |row| Some(row.failing)),
            ("source_problems", "Problems that the last run of a Source left open", |row| row.problems),
        ];
        let shown = shown(rows, self.most);
        for (name, help, of) in of_each {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for row in &shown {
                if let Some(value) = of(row) {
                    let labels = [("source", row.source.as_str())];
                    ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use control::{AskedBy, PollInterval, RunSpec, Spec};
    use model::{RunId, RunMode};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn row(n: u32) -> Row {
        let n = f64::from(n);
        Row { source: format!("s{n}"), pending: n, overdue: Some(n), problems: Some(1.0), ..Row::default() }
    }

    #[test]
    fn there_are_never_more_rows_than_allowed_and_one_and_nothing_is_left_out() {
        for (count, most) in [(0, 3), (2, 3), (3, 3), (4, 3), (1_000, 3), (5, 0)] {
            let rows = shown((0..count).map(row).collect(), most);
            assert!(rows.len() <= most + 1, "{count} {most}");
            let pending: f64 = rows.iter().map(|row| row.pending).sum();
            assert_eq!(pending, (0..count).map(f64::from).sum::<f64>(), "{count} {most}");
            assert_eq!(rows.iter().any(|row| row.source == OTHER), count as usize > most);
        }
        let rows = shown((0..10).map(row).collect(), 2);
        let names: Vec<&str> = rows.iter().map(|row| row.source.as_str()).collect();
        assert_eq!(names, ["s8", "s9", OTHER], "the latest by themselves");
        assert_eq!(
            (rows[2].overdue, rows[2].problems),
            (Some(7.0), Some(8.0)),
            "times by the longest, amounts together"
        );
    }

    #[test]
    fn a_source_is_overdue_from_when_it_should_have_been_in_step_again() {
        let bounds = PollInterval { min_seconds: 10, max_seconds: 100 };
        let spec = SourceSpec::from(Spec { follow: Some(bounds), ..Spec::new("http://h/".parse().unwrap()) });
        let row = |last_success: Option<i64>, run: Option<&Run>| {
            let since = Some(at(-50));
            let status =
                SourceStatus { since, last_success: last_success.map(at), ..SourceStatus::default() };
            Row::of(&spec.id, &status, Some(&spec), run, at(0))
        };
        assert_eq!((row(Some(-30), None).success_age, row(Some(-30), None).overdue), (Some(30.0), Some(0.0)));
        assert_eq!(row(Some(-130), None).overdue, Some(30.0));
        assert_eq!((row(None, None).success_age, row(None, None).overdue), (None, Some(0.0)));

        let asked = RunSpec {
            id: RunId::fresh(),
            source: spec.id.clone(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Schedule,
            asked_at: at(-400),
            allow_deletes: false,
            repair: false,
            task: None,
        };
        let mut run = Run::submitted(asked);
        assert_eq!(row(None, Some(&run)).work_age, 400.0);
        assert_eq!(row(None, Some(&run)).overdue, Some(300.0), "a first run that does not end is noticed");
        run.state = RunState::Failed(control::RunFailure::because("it does not answer"));
        assert_eq!((row(Some(-400), Some(&run)).failing, row(Some(-400), Some(&run)).work_age), (1.0, 0.0));
        run.state = RunState::Finished { in_sync: true };
        assert_eq!(row(Some(-400), Some(&run)).work_age, 0.0);
        let manual = SourceSpec::from(Spec { follow: None, ..spec.spec.clone() });
        let status = SourceStatus { last_success: Some(at(-9_999)), ..SourceStatus::default() };
        assert_eq!(Row::of(&spec.id, &status, Some(&manual), None, at(0)).overdue, None, "nobody said when");
    }
}
