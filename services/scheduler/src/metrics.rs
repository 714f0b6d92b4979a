//! Metrics of a scheduler.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use control::OutboxState;
use harvest::PushLag;
use model::{ProblemReason, SourceId};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use service::{Active, Labelled, Metrics, ServiceInfo};

use crate::source_status::SourceStatuses;

/// Metrics of a scheduler. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SchedulerMetrics {
    sources: Gauge,
    runs_active: Gauge,
    runs_queued: Gauge,
    polls: Labelled<Counter>,
    places_used: Gauge,
    runs: Labelled<Counter>,
    problems: Labelled<Gauge>,
    leases: Labelled<Counter>,
    guard_trips: Counter,
    shortfall: Counter,
    entries: Counter,
    gaps: Counter,
    resources: Labelled<Counter>,
    documents: Labelled<Counter>,
    pages: Labelled<Counter>,
    quirks: Labelled<Counter>,
    subscriptions: Labelled<Gauge>,
    hub_requests: Family<HubLabel, Counter>,
    missed_changes: Counter,
    resubscriptions: Counter,
    /// Push lag.
    pub(crate) lag: PushLag,
    outbox: Labelled<Gauge>,
    told: Labelled<Counter>,
    looks: Labelled<Counter>,
    noticed: Labelled<Counter>,
    /// Status of each Source.
    pub(crate) statuses: SourceStatuses,
    /// Contribution of each Source to the problem totals.
    counted: Arc<Mutex<HashMap<SourceId, Problems>>>,
}

/// Problems by reason; ignored ones have a label of their own.
type Problems = BTreeMap<&'static str, i64>;

/// Label of ignored problems.
const IGNORED: &str = "ignored";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HubLabel {
    mode: &'static str,
    result: &'static str,
}

/// States of subscriptions.
const SUBSCRIPTION_STATES: [&str; 6] =
    ["requested", "pending", "active", "expired", "denied", "unsubscribing"];

impl Default for SchedulerMetrics {
    /// Not exported.
    fn default() -> Self {
        Self::register(&Metrics::new(ServiceInfo { name: "scheduler", version: "" }))
    }
}

impl SchedulerMetrics {
    /// Registers the metrics with a service.
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let counter = |name, help| metrics.add(name, help, Counter::default());
        let gauge = |name, help| metrics.add(name, help, Gauge::default());
        let counters = |name, help, label, values: &[&'static str]| -> Labelled<Counter> {
            metrics.add_labelled(name, help, label, values)
        };
        let gauges = |name, help, label| -> Labelled<Gauge> { metrics.add_labelled(name, help, label, &[]) };
        let lag = PushLag::default();
        metrics.add(
            "scheduler_push_lag_seconds",
            "Time from a change that a hub delivered to its storage",
            lag.histogram(),
        );
        let registered = Self {
            leases: counters(
                "scheduler_lease_changes",
                "Leases of Sources that this scheduler took, gave back and lost",
                "change",
                &["acquired", "released", "lost"],
            ),
            guard_trips: counter("scheduler_deletion_guard_trips", "Runs that the guard kept from deleting"),
            entries: counter("scheduler_entries", "Entries read from lists, packages included"),
            shortfall: counter(
                "scheduler_unaccounted_entries",
                "Entries of finished runs that came to no end that is counted",
            ),
            gaps: counter("scheduler_gaps", "Change documents that did not join on to what was synchronized"),
            resources: counters(
                "scheduler_resources",
                "Resources settled, by outcome",
                "outcome",
                &["stored", "unchanged", "deleted", "failed", "ignored"],
            ),
            documents: counters(
                "scheduler_documents",
                "Documents asked for, by what came of it",
                "result",
                &["read", "not-modified", "failed"],
            ),
            pages: counters(
                "scheduler_list_pages",
                "Pages of OAI-PMH lists asked for, by what came of it",
                "result",
                &["read", "failed"],
            ),
            quirks: counters("scheduler_quirks", "Tolerances that reading needed, by name", "quirk", &[]),
            outbox: gauges(
                "scheduler_outbox_notifications",
                "Notifications of changes that others have not accepted, by state",
                "state",
            ),
            told: counters(
                "scheduler_notifications_sent",
                "Attempts to send notifications of changes, by result",
                "result",
                &["accepted", "refused", "failed", "given-up"],
            ),
            looks: counters(
                "scheduler_inbox_polls",
                "Polls of inboxes of others, by result",
                "result",
                &["read", "not-modified", "failed"],
            ),
            noticed: counters(
                "scheduler_inbox_notifications",
                "Notifications that were read in inboxes of others, by what they are",
                "verdict",
                &["hint", "other", "unreadable", "failed"],
            ),
            subscriptions: gauges(
                "scheduler_subscriptions",
                "Subscriptions that this scheduler keeps, by how they stand",
                "state",
            ),
            hub_requests: metrics.add(
                "scheduler_hub_requests",
                "Requests to hubs by what was asked for and what came of it",
                Family::default(),
            ),
            missed_changes: counter(
                "scheduler_missed_changes",
                "Changes in lists that hubs did not deliver, though they should have",
            ),
            resubscriptions: counter(
                "scheduler_resubscriptions",
                "Subscriptions of which the hub was asked anew because changes were missed",
            ),
            sources: gauge("scheduler_sources", "Sources this scheduler looks after"),
            runs_active: gauge("scheduler_runs_active", "Runs this scheduler works on"),
            runs_queued: gauge("scheduler_runs_queued", "Runs that wait for a place at this scheduler"),
            polls: counters(
                "scheduler_polls",
                "Polls of idle Sources in place of runs, by result",
                "result",
                &["unchanged", "news", "failed"],
            ),
            places_used: gauge("scheduler_places_used_bytes", "Memory that is given to runs"),
            runs: counters(
                "scheduler_runs",
                "Runs this scheduler ended, by result",
                "result",
                &["in-sync", "with-problems", "failed", "task"],
            ),
            problems: gauges(
                "scheduler_problems",
                "Problems that are open in the Sources this scheduler looks after, since its last run of each",
                "reason",
            ),
            lag,
            statuses: SourceStatuses::default(),
            counted: Arc::default(),
        };
        for mode in ["subscribe", "unsubscribe"] {
            for result in ["accepted", "refused", "failed"] {
                drop(registered.hub_requests.get_or_create(&HubLabel { mode, result }));
            }
        }
        registered.subscriptions(std::iter::empty());
        registered.outbox(std::iter::empty());
        registered
    }

    /// Sets the number of this scheduler's subscriptions, by state.
    pub(crate) fn subscriptions(&self, all: impl Iterator<Item = &'static str>) {
        let mut counts = SUBSCRIPTION_STATES.map(|state| (state, 0));
        for state in all {
            counts.iter_mut().filter(|(name, _)| *name == state).for_each(|(_, count)| *count += 1);
        }
        for (state, count) in counts {
            self.subscriptions.of(state).set(count);
        }
    }

    /// Counts a request to a hub.
    pub(crate) fn asked_hub(&self, mode: &'static str, result: &'static str) {
        self.hub_requests.get_or_create(&HubLabel { mode, result }).inc();
    }

    /// Counts changes that hubs should have reported.
    pub(crate) fn missed(&self, changes: u64) {
        self.missed_changes.inc_by(changes);
    }

    /// Counts a subscription that is renewed before its time.
    pub(crate) fn resubscribed(&self) {
        self.resubscriptions.inc();
    }

    /// Sets the number of outbox messages, by state.
    pub(crate) fn outbox(&self, all: impl Iterator<Item = OutboxState>) {
        let all: Vec<_> = all.collect();
        for state in [OutboxState::Waiting, OutboxState::Refused, OutboxState::DeadLetterSummary] {
            let count = all.iter().filter(|one| **one == state).count();
            self.outbox.of(state.name()).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Counts an attempt to send a notification.
    pub(crate) fn told(&self, result: &'static str) {
        self.told.of(result).inc();
    }

    /// Counts a poll of an inbox of others.
    pub(crate) fn looked(&self, result: &'static str) {
        self.looks.of(result).inc();
    }

    /// Counts a notification that was read there.
    pub(crate) fn noticed(&self, verdict: &'static str) {
        self.noticed.of(verdict).inc();
    }

    pub(crate) fn lease(&self, change: &'static str) {
        self.leases.of(change).inc();
    }

    pub(crate) fn guard_tripped(&self) {
        self.guard_trips.inc();
    }

    pub(crate) fn fell_short(&self, entries: u64) {
        self.shortfall.inc_by(entries);
    }

    pub(crate) fn entries(&self, count: u64) {
        self.entries.inc_by(count);
    }

    pub(crate) fn gaps(&self, count: u64) {
        self.gaps.inc_by(count);
    }

    pub(crate) fn resources(&self, outcome: &'static str, count: u64) {
        self.resources.of(outcome).inc_by(count);
    }

    pub(crate) fn documents(&self, result: &'static str, count: u64) {
        self.documents.of(result).inc_by(count);
    }

    pub(crate) fn pages(&self, result: &'static str, count: u64) {
        self.pages.of(result).inc_by(count);
    }

    /// Counts a quirk under its name, or as `other` if this version does not know it: a later version may have
    /// written the catalog.
    pub(crate) fn quirks(&self, name: &str, count: u64) {
        let quirk = quirks::named(name).map_or("other", |quirk| quirk.name);
        self.quirks.of(quirk).inc_by(count);
    }

    pub(crate) fn sources(&self, count: usize) {
        self.sources.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the open problems of a Source after a run.
    pub(crate) fn problems(&self, source: &SourceId, open: &BTreeMap<ProblemReason, u64>, ignored: u64) {
        let total: u64 = open.values().sum();
        self.statuses.note(source, |status| status.problems = Some(total));
        let open = open.iter().map(|(reason, count)| (reason.as_str(), *count)).chain([(IGNORED, ignored)]);
        self.replace(
            source,
            open.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX))).collect(),
        );
    }

    /// Removes a Source: another scheduler owns it.
    pub(crate) fn forget(&self, source: &SourceId) {
        self.statuses.forget(source);
        self.replace(source, Problems::new());
    }

    fn replace(&self, source: &SourceId, now: Problems) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        for (&reason, &count) in &now {
            self.problems.of(reason).inc_by(count);
        }
        let before =
            if now.is_empty() { counted.remove(source) } else { counted.insert(source.clone(), now) };
        for (reason, count) in before.unwrap_or_default() {
            self.problems.of(reason).dec_by(count);
        }
    }

    /// Counts a poll of an idle Source.
    pub(crate) fn polled(&self, result: &'static str) {
        self.polls.of(result).inc();
    }

    /// Sets how many runs wait for a place, and the bytes that are given to runs.
    pub(crate) fn places(&self, queued: usize, used: u64) {
        self.runs_queued.set(i64::try_from(queued).unwrap_or(i64::MAX));
        self.places_used.set(i64::try_from(used).unwrap_or(i64::MAX));
    }

    pub(crate) fn begin(&self) -> Active {
        Active::begin(&self.runs_active)
    }

    pub(crate) fn ended(&self, result: &'static str) {
        self.runs.of(result).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_adds_what_its_last_run_left_open_and_takes_it_with_it() {
        let metrics = SchedulerMetrics::default();
        let shown = |reason| metrics.problems.of(reason).get();
        let [one, two]: [SourceId; 2] = ["one", "two"].map(|name| name.parse().expect("a source id"));
        let open = |count| BTreeMap::from([(ProblemReason::Timeout, count)]);
        metrics.problems(&one, &open(3), 0);
        metrics.problems(&two, &open(4), 2);
        assert_eq!((shown("timeout"), shown(IGNORED)), (7, 2));
        metrics.problems(&one, &open(1), 0);
        metrics.problems(&two, &BTreeMap::new(), 0);
        assert_eq!((shown("timeout"), shown(IGNORED)), (1, 0));
        metrics.forget(&one);
        assert_eq!(shown("timeout"), 0);
    }
}
