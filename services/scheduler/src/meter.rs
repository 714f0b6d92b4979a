//! Metrics of a run as it goes: each thing counts once, whichever scheduler works on the run.

use std::sync::{Mutex, PoisonError};

use harvest::{DocumentCounts, Progress};
use model::{Counters, SourceId};

use crate::metrics::SchedulerMetrics;

/// Turns a run's running totals into metric increments.
#[derive(Debug)]
pub(crate) struct Meter {
    metrics: SchedulerMetrics,
    source: SourceId,
    before: Mutex<Before>,
}

/// What was already counted.
#[derive(Debug, Default)]
struct Before {
    counters: Counters,
    documents: DocumentCounts,
    /// Whether the counters from before this process resumed the run are known.
    is_known: bool,
}

impl Meter {
    /// For a run whose last owner, if any, reported `told`.
    pub(crate) fn new(metrics: SchedulerMetrics, source: SourceId, told: &Counters) -> Self {
        let before =
            Before { counters: told.clone(), is_known: *told != Counters::default(), ..Before::default() };
        Self { metrics, source, before: Mutex::new(before) }
    }

    /// Counts the increase since the last call.
    pub(crate) fn note(&self, now: &Progress) {
        // Each number is replaced by a larger one, so the state is valid even after a panicking thread.
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let before = &mut *before;
        if let (false, Some(taken_up)) = (before.is_known, &now.taken_up) {
            // This run resumes an earlier run, which has counted that.
            before.counters.clone_from(taken_up);
        }
        before.is_known |= now.taken_up.is_some();
        // A second reading is subtracted, and counted again: only the excess over the maximum so far is new.
        let new = |now: u64, before: &mut u64| {
            let new = now.saturating_sub(*before);
            *before = now.max(*before);
            new
        };
        let (counters, counted) = (&now.counters, &mut before.counters);
        self.metrics.entries(new(counters.listed, &mut counted.listed));
        self.metrics.gaps(new(counters.gaps, &mut counted.gaps));
        for (outcome, now, before) in [
            ("stored", counters.stored, &mut counted.stored),
            ("unchanged", counters.unchanged, &mut counted.unchanged),
            ("deleted", counters.deleted, &mut counted.deleted),
            ("failed", counters.failed, &mut counted.failed),
            ("ignored", counters.ignored, &mut counted.ignored),
        ] {
            self.metrics.resources(outcome, new(now, before));
        }
        for (name, &now) in &counters.quirks {
            let before = counted.quirks.entry(name.clone()).or_default();
            self.metrics.quirks(name, new(now, before));
        }
        let documents = &mut before.documents;
        self.metrics.documents("read", new(now.documents.read, &mut documents.read));
        self.metrics.documents("not-modified", new(now.documents.unmodified, &mut documents.unmodified));
        self.metrics.documents("failed", new(now.documents.failed, &mut documents.failed));
        self.metrics.pages("read", new(now.documents.pages_read, &mut documents.pages_read));
        self.metrics.pages("failed", new(now.documents.pages_failed, &mut documents.pages_failed));
        self.metrics.statuses.note(&self.source, |status| {
            status.pending = now.pending;
            status.behind = now.behind.or(status.behind);
            (status.in_flight, status.window) = (now.in_flight, now.window);
        });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // The run is over, or another scheduler's.
        self.metrics.statuses.note(&self.source, |status| {
            (status.pending, status.in_flight, status.window) = (0, 0, (0, 0));
        });
    }
}

#[cfg(test)]
mod tests {
    use service::{Metrics, ServiceInfo};

    use super::*;

    fn progress(stored: u64) -> Progress {
        Progress { counters: Counters { stored, ..Counters::default() }, ..Progress::default() }
    }

    fn stored(metrics: &Metrics) -> String {
        let text = metrics.encode();
        let line = "thresher_scheduler_resources_total{outcome=\"stored\"} ";
        text.lines().find_map(|found| found.strip_prefix(line)).unwrap().to_owned()
    }

    #[test]
    fn each_thing_is_counted_once_by_whoever_works_on_the_run() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let counted = SchedulerMetrics::register(&metrics);
        let meter = |told: u64| {
            Meter::new(
                counted.clone(),
                "s".parse().unwrap(),
                &Counters { stored: told, ..Counters::default() },
            )
        };
        let first = meter(0);
        // A number that was subtracted meanwhile is not counted twice.
        [0, 5, 3, 5, 7].into_iter().for_each(|so_far| first.note(&progress(so_far)));
        assert_eq!(stored(&metrics), "7");
        drop(first);
        // Another owner: the reports of the one before are not counted again.
        meter(7).note(&Progress { taken_up: Some(progress(8).counters), ..progress(10) });
        assert_eq!(stored(&metrics), "10");
        // Another run resumes after one that failed.
        meter(0).note(&Progress { taken_up: Some(progress(10).counters), ..progress(12) });
        assert_eq!(stored(&metrics), "12");
    }

    #[test]
    fn a_quirk_that_this_version_does_not_know_makes_no_series_of_its_own() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let meter =
            Meter::new(SchedulerMetrics::register(&metrics), "s".parse().unwrap(), &Counters::default());
        let mut now = progress(0);
        let counted = [("gzip", 2), ("token-loop", 4), ("of-tomorrow", 3)];
        now.counters.quirks = counted.map(|(name, times)| (name.to_owned(), times)).into();
        meter.note(&now);
        let text = metrics.encode();
        for (name, times) in [("gzip", 2), ("token-loop", 4), ("other", 3)] {
            let line = format!("quirks_total{{quirk=\"{name}\"}} {times}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
