//! Places of runs, shared by the supervisor, which gives them, and the runs, which have them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catalog::CatalogConfig;
use control::{AskedBy, LabelKey, Run, SourceSpec, WaitReason};
use model::SourceId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::admission::{Admission, Candidate, Priority};

const MIB: usize = 1024 * 1024;
/// Entries up to which a run is small.
const SMALL_ENTRIES: u64 = 5_000;
/// Memory of a small run: its records in memory, its documents and its jobs.
const SMALL_BYTES: usize = 8 * MIB;
/// Memory of a large run beside its catalog: the document that is being read, the window, the batches.
const LARGE_EXTRA: usize = 32 * MIB;

/// Memory of a task beside its catalog: what TimeMaps and Archives name, two bodies, a pack.
const TASK_EXTRA: usize = 64 * MIB;

/// The places of one scheduler. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    shared: Arc<Shared>,
    turns: Turns,
    /// The label whose values have shares.
    share_label: Option<LabelKey>,
}

#[derive(Debug)]
struct Shared {
    admission: Mutex<Admission>,
    freed: Notify,
}

/// How long a run keeps its place while others wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turns {
    /// The first time: a small Source needs no more.
    pub(crate) first: Duration,
    /// Later times. Doubled each time, so that a document that takes longer to read comes to its end.
    pub(crate) later: Duration,
}

/// How much a run reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunSize {
    /// At most [`SMALL_ENTRIES`], as far as known.
    Small,
    /// More.
    Large,
}

/// A place of a run, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    candidate: Candidate,
    size: RunSize,
    ends: Instant,
}

impl Places {
    /// Places within this much memory, in bytes, for this many runs at a time. The values of `share_label` have shares.
    pub(crate) fn new(bytes: u64, most_runs: usize, turns: Turns, share_label: Option<LabelKey>) -> Self {
        let shared = Shared { admission: Mutex::new(Admission::new(bytes, most_runs)), freed: Notify::new() };
        Self { shared: Arc::new(shared), turns, share_label }
    }

    /// Lets a run wait for a place.
    pub(crate) fn wait(&self, spec: &SourceSpec, run: &Run) {
        let size = RunSize::of(run);
        let is_long = run.waiting.as_ref().is_some_and(|wait| wait.reason == WaitReason::Turn);
        let candidate = Candidate {
            source: spec.id.clone(),
            priority: match run.spec.asked_by {
                _ if run.is_task() => Priority::Task,
                _ if is_long || size == RunSize::Large => Priority::Long,
                AskedBy::Operator => Priority::Urgent,
                AskedBy::Schedule | AskedBy::Notification | AskedBy::Hint => Priority::Scheduled,
            },
            host: spec.entry.host_str().unwrap_or_default().to_owned(),
            owner: self.share_label.as_ref().and_then(|key| Some(spec.labels.get(key)?.as_str().into())),
            bytes: if run.is_task() { task_bytes() } else { size.bytes() },
        };
        self.shared.lock().wait(candidate);
    }

    /// A run waits no more.
    pub(crate) fn withdraw(&self, source: &SourceId) {
        self.shared.lock().withdraw(source);
    }

    /// Gives the next run its place, if there is one. `turns_before`: the turns that the sync of a Source has had, or its
    /// task.
    pub(crate) fn grant(&self, turns_before: impl FnOnce(&SourceId, bool) -> u32) -> Option<Place> {
        let candidate = self.shared.lock().grant()?;
        let size = if candidate.bytes > SMALL_BYTES as u64 { RunSize::Large } else { RunSize::Small };
        let turn = match turns_before(&candidate.source, candidate.priority == Priority::Task) {
            0 => self.turns.first,
            before => self.turns.later.saturating_mul(1 << (before - 1).min(16)),
        };
        Some(Place { shared: Arc::clone(&self.shared), candidate, size, ends: Instant::now() + turn })
    }

    /// Waits until a place is given back.
    pub(crate) async fn freed(&self) {
        self.shared.freed.notified().await;
    }

    /// Runs that wait for a place, and bytes in use.
    pub(crate) fn usage(&self) -> (usize, u64) {
        let admission = self.shared.lock();
        (admission.waiting(), admission.used())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Admission> {
        // Sums and queues change together in calls that do not panic.
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The Source whose run has the place.
    pub(crate) fn source(&self) -> &SourceId {
        &self.candidate.source
    }

    /// Whether it is the place of a task.
    pub(crate) fn is_of_task(&self) -> bool {
        self.candidate.priority == Priority::Task
    }

    /// Whether the run should leave its place now: its turn is over and others wait, or it has more `entries` than a
    /// small run, and there is no memory for a large one.
    pub(crate) fn should_yield(&mut self, entries: u64) -> bool {
        let is_over = Instant::now() >= self.ends;
        let is_outgrown = self.size == RunSize::Small && entries > SMALL_ENTRIES;
        let mut admission = self.shared.lock();
        if is_outgrown {
            let more = RunSize::Large.bytes() - RunSize::Small.bytes();
            if !admission.grow(&mut self.candidate, more) {
                return true;
            }
            self.size = RunSize::Large;
        }
        is_over && admission.should_yield(&self.candidate)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.lock().release(&self.candidate);
        self.shared.freed.notify_one();
    }
}

/// Upper bound of the memory of a task, in bytes.
fn task_bytes() -> u64 {
    (CatalogConfig::default().unflushed_bytes + TASK_EXTRA) as u64
}

impl RunSize {
    /// The size of a run, by what it has read so far. A first run begins as a small one.
    fn of(run: &Run) -> Self {
        if run.progress.counters.listed > SMALL_ENTRIES { Self::Large } else { Self::Small }
    }

    /// Upper bound of the memory of such a run, in bytes.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Small => SMALL_BYTES as u64,
            Self::Large => (CatalogConfig::default().unflushed_bytes + LARGE_EXTRA) as u64,
        }
    }
}
