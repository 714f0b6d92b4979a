//! Progress of a run while it works.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use model::{Counters, DocumentRecord, Phase, RunRecord, SetId, SetRecord};
use tokio::sync::watch;

/// Snapshot of a run's progress, for display.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Current phase; none before the Source has answered.
    pub phase: Option<Phase>,
    /// The document being read.
    pub document: Option<String>,
    /// The run's counters.
    pub counters: Counters,
    /// Counters when this process resumed the run; none if it began it.
    pub taken_up: Option<Counters>,
    /// Pending records left.
    pub pending: u64,
    /// How far the synchronized time is behind the changes in the documents read so far; none before a set is known.
    pub behind: Option<SignedDuration>,
    /// Document requests by result, in this process.
    pub documents: DocumentCounts,
    /// Resources in outstanding jobs.
    pub in_flight: usize,
    /// Outstanding jobs, and the maximum at the origins that have work.
    pub window: (usize, usize),
    /// Whether it resumes an interrupted run.
    pub resumed: bool,
}

/// Number of document requests, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentCounts {
    /// Read to the end.
    pub read: u64,
    /// Unchanged since the last reading.
    pub unmodified: u64,
    /// Not read to the end.
    pub failed: u64,
    /// Pages of a repository's lists that were read to the end.
    pub pages_read: u64,
    /// Pages of a repository's lists that were not.
    pub pages_failed: u64,
}

/// Reports the progress of a run.
pub(crate) struct ProgressReporter {
    sender: watch::Sender<Progress>,
    /// Whether it resumes an interrupted run.
    is_resumed: bool,
    /// The latest change in the documents of each set, as far as this process requested them.
    latest_changes: HashMap<SetId, Timestamp>,
}

impl ProgressReporter {
    /// A reporter for a run; `resumed` are the counters of an interrupted run.
    pub(crate) fn new(sender: watch::Sender<Progress>, resumed: Option<Counters>) -> Self {
        let is_resumed = resumed.is_some();
        sender.send_modify(|progress| progress.taken_up = progress.taken_up.take().or(resumed));
        Self { sender, is_resumed, latest_changes: HashMap::new() }
    }

    /// Whether the run resumes an interrupted one.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    pub(crate) fn show(&self, run: &RunRecord, sets: &HashMap<SetId, SetRecord>, pending: u64) {
        self.sender.send_modify(|progress| {
            progress.phase = Some(run.phase);
            progress.counters.clone_from(&run.counters);
            progress.resumed = self.is_resumed;
            progress.pending = pending;
            progress.behind = self.behind(sets);
        });
    }

    /// How far the set that lags most is behind the changes in its documents.
    fn behind(&self, sets: &HashMap<SetId, SetRecord>) -> Option<SignedDuration> {
        let sets = sets.iter().filter_map(|(id, set)| {
            let synchronized_to = set.synchronized_to?;
            let latest = self.latest_changes.get(id).copied().unwrap_or(synchronized_to);
            Some(latest.max(synchronized_to).duration_since(synchronized_to))
        });
        sets.max()
    }

    /// Counts the result of a document request, and records up to when the document covers changes.
    pub(crate) fn count_document(
        &mut self,
        record: &DocumentRecord,
        count: impl FnOnce(&mut DocumentCounts),
    ) {
        if let Some(latest) = record.latest_change {
            let known = self.latest_changes.entry(record.set.clone()).or_insert(latest);
            *known = latest.max(*known);
        }
        self.sender.send_modify(|progress| count(&mut progress.documents));
    }

    /// Counts a page of a repository's list.
    pub(crate) fn count_page(&self, is_read: bool) {
        self.sender.send_modify(|Progress { documents, .. }| {
            let pages = if is_read { &mut documents.pages_read } else { &mut documents.pages_failed };
            *pages += 1;
        });
    }

    pub(crate) fn show_document(&self, uri: &str) {
        self.sender.send_modify(|progress| progress.document = Some(uri.to_owned()));
    }

    /// Shows the resources in outstanding jobs, and these jobs with their maximum.
    pub(crate) fn show_jobs(&self, resources: usize, jobs: (usize, usize)) {
        self.sender.send_modify(|progress| (progress.in_flight, progress.window) = (resources, jobs));
    }
}
