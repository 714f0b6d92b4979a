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
use prometheus_client::registry::Registry;
use resourcesync::Quirk;
use service::Metrics;

use crate::source_status::SourceStatuses;

/// Metrics of a scheduler. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct SchedulerMetrics {
    sources: Gauge,
    runs_active: Gauge,
    runs: Family<ResultLabel, Counter>,
    problems: Family<ReasonLabel, Gauge>,
    leases: Family<ChangeLabel, Counter>,
    guard_trips: Counter,
    shortfall: Counter,
    entries: Counter,
    gaps: Counter,
    resources: Family<OutcomeLabel, Counter>,
    documents: Family<ResultLabel, Counter>,
    quirks: Family<QuirkLabel, Counter>,
    subscriptions: Family<StateLabel, Gauge>,
    hub_requests: Family<HubLabel, Counter>,
    missed_changes: Counter,
    resubscriptions: Counter,
    /// Push lag.
    pub(crate) lag: PushLag,
    outbox: Family<StateLabel, Gauge>,
    told: Family<ResultLabel, Counter>,
    looks: Family<ResultLabel, Counter>,
    noticed: Family<VerdictLabel, Counter>,
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
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ChangeLabel {
    change: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuirkLabel {
    quirk: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HubLabel {
    mode: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabel {
    verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// States of subscriptions.
const SUBSCRIPTION_STATES: [&str; 6] =
    ["requested", "pending", "active", "expired", "denied", "unsubscribing"];

/// An active run, until it is dropped.
pub(crate) struct InHand(Gauge);

impl SchedulerMetrics {
    /// Registers the metrics with a service.
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        // Initialized to zero: a rate does not see a counter that begins with one.
        for result in ["in-sync", "with-problems", "failed"] {
            drop(counted.runs.get_or_create(&ResultLabel { result }));
        }
        for change in ["acquired", "released", "lost"] {
            drop(counted.leases.get_or_create(&ChangeLabel { change }));
        }
        for outcome in ["stored", "unchanged", "deleted", "failed", "ignored"] {
            drop(counted.resources.get_or_create(&OutcomeLabel { outcome }));
        }
        for result in ["read", "not-modified", "failed"] {
            drop(counted.documents.get_or_create(&ResultLabel { result }));
        }
        for mode in ["subscribe", "unsubscribe"] {
            for result in ["accepted", "refused", "failed"] {
                drop(counted.hub_requests.get_or_create(&HubLabel { mode, result }));
            }
        }
        for result in ["accepted", "refused", "failed", "given-up"] {
            drop(counted.told.get_or_create(&ResultLabel { result }));
        }
        for result in ["read", "not-modified", "failed"] {
            drop(counted.looks.get_or_create(&ResultLabel { result }));
        }
        for verdict in ["hint", "other", "unreadable", "failed"] {
            drop(counted.noticed.get_or_create(&VerdictLabel { verdict }));
        }
        counted.subscriptions(std::iter::empty());
        counted.outbox(std::iter::empty());
        metrics.register(|registry| {
            counted.register_work(registry);
            counted.register_word(registry);
            registry.register(
                "scheduler_subscriptions",
                "Subscriptions that this scheduler keeps, by how they stand",
                counted.subscriptions.clone(),
            );
            registry.register(
                "scheduler_hub_requests",
                "Requests to hubs by what was asked for and what came of it",
                counted.hub_requests.clone(),
            );
            registry.register(
                "scheduler_missed_changes",
                "Changes that lists told of, and hubs had not, though they should have",
                counted.missed_changes.clone(),
            );
            registry.register(
                "scheduler_resubscriptions",
                "Subscriptions of which the hub was asked anew because changes were missed",
                counted.resubscriptions.clone(),
            );
            registry.register(
                "scheduler_push_lag_seconds",
                "From the moment of a change that a hub told of to the moment at which it is held",
                counted.lag.histogram(),
            );
            registry.register(
                "scheduler_sources",
                "Sources this scheduler looks after",
                counted.sources.clone(),
            );
            registry.register(
                "scheduler_runs_active",
                "Runs this scheduler works on",
                counted.runs_active.clone(),
            );
            registry.register(
                "scheduler_runs",
                "Runs this scheduler ended, by result",
                counted.runs.clone(),
            );
            registry.register(
                "scheduler_problems",
                "Problems that are open in the Sources this scheduler looks after, since its last run of each",
                counted.problems.clone(),
            );
        });
        counted
    }

    /// Sets the number of this scheduler's subscriptions, by state.
    pub(crate) fn subscriptions(&self, all: impl Iterator<Item = &'static str>) {
        let mut counts = SUBSCRIPTION_STATES.map(|state| (state, 0));
        for state in all {
            counts.iter_mut().filter(|(name, _)| *name == state).for_each(|(_, count)| *count += 1);
        }
        for (state, count) in counts {
            self.subscriptions.get_or_create(&StateLabel { state }).set(count);
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
            let label = StateLabel { state: state.name() };
            self.outbox.get_or_create(&label).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Counts an attempt to send a notification.
    pub(crate) fn told(&self, result: &'static str) {
        self.told.get_or_create(&ResultLabel { result }).inc();
    }

    /// Counts a poll of an inbox of others.
    pub(crate) fn looked(&self, result: &'static str) {
        self.looks.get_or_create(&ResultLabel { result }).inc();
    }

    /// Counts a notification that was read there.
    pub(crate) fn noticed(&self, verdict: &'static str) {
        self.noticed.get_or_create(&VerdictLabel { verdict }).inc();
    }

    /// Registers the metrics of outbox and inboxes.
    fn register_word(&self, registry: &mut Registry) {
        registry.register(
            "scheduler_outbox_notifications",
            "Notifications of changes that others have not taken, by how they stand",
            self.outbox.clone(),
        );
        registry.register(
            "scheduler_notifications_sent",
            "Tries to tell others of changes, by what came of it",
            self.told.clone(),
        );
        registry.register(
            "scheduler_inbox_polls",
            "Looks at inboxes of others, by what came of it",
            self.looks.clone(),
        );
        registry.register(
            "scheduler_inbox_notifications",
            "Notifications that were read in inboxes of others, by what they are",
            self.noticed.clone(),
        );
    }

    fn register_work(&self, registry: &mut Registry) {
        registry.register(
            "scheduler_lease_changes",
            "Leases of Sources that this scheduler took, gave back and lost",
            self.leases.clone(),
        );
        registry.register(
            "scheduler_deletion_guard_trips",
            "Runs that the guard kept from deleting",
            self.guard_trips.clone(),
        );
        registry.register(
            "scheduler_entries",
            "Entries read from lists, packages included",
            self.entries.clone(),
        );
        registry.register(
            "scheduler_unaccounted_entries",
            "Entries of finished runs that came to no end that is counted",
            self.shortfall.clone(),
        );
        registry.register(
            "scheduler_gaps",
            "Change documents that did not join on to what was synchronized",
            self.gaps.clone(),
        );
        registry.register("scheduler_resources", "Resources settled, by outcome", self.resources.clone());
        registry.register(
            "scheduler_documents",
            "Documents asked for, by what came of it",
            self.documents.clone(),
        );
        registry.register("scheduler_quirks", "Tolerances that reading needed, by name", self.quirks.clone());
    }

    pub(crate) fn lease(&self, change: &'static str) {
        self.leases.get_or_create(&ChangeLabel { change }).inc();
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
        self.resources.get_or_create(&OutcomeLabel { outcome }).inc_by(count);
    }

    pub(crate) fn documents(&self, result: &'static str, count: u64) {
        self.documents.get_or_create(&ResultLabel { result }).inc_by(count);
    }

    /// Counts a quirk under its name, or as `other` if this version does not know it: a later version may have
    /// written the catalog.
    pub(crate) fn quirks(&self, name: &str, count: u64) {
        let quirk = Quirk::named(name).map_or("other", Quirk::as_str);
        self.quirks.get_or_create(&QuirkLabel { quirk }).inc_by(count);
    }

    pub(crate) fn sources(&self, count: usize) {
        self.sources.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the open problems of a Source after a run.
    pub(crate) fn problems(&self, source: &SourceId, open: &BTreeMap<ProblemReason, u64>, ignored: u64) {
        let total: u64 = open.values().sum();
        self.statuses.note(source, |standing| standing.problems = Some(total));
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
            self.problems.get_or_create(&ReasonLabel { reason }).inc_by(count);
        }
        let before =
            if now.is_empty() { counted.remove(source) } else { counted.insert(source.clone(), now) };
        for (reason, count) in before.unwrap_or_default() {
            self.problems.get_or_create(&ReasonLabel { reason }).dec_by(count);
        }
    }

    pub(crate) fn begin(&self) -> InHand {
        self.runs_active.inc();
        InHand(self.runs_active.clone())
    }

    pub(crate) fn ended(&self, result: &'static str) {
        self.runs.get_or_create(&ResultLabel { result }).inc();
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_adds_what_its_last_run_left_open_and_takes_it_with_it() {
        let metrics = SchedulerMetrics::default();
        let shown = |reason| metrics.problems.get_or_create(&ReasonLabel { reason }).get();
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
