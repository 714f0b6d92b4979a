//! The next tasks of a package, and their jobs.

use std::collections::HashSet;
use std::sync::Arc;

use bus::Queue;
use catalog::Batch;
use jiff::Timestamp;
use model::{
    JobId, Origin, PackageJob, PackageRecord, PackageState, ResourceUri, SetId, StoredBitstream, UnpackJob,
    UnpackTask,
};

use super::{Job, PackageWork, SLICES_OUT};
use crate::error::HarvestError;
use crate::run::RunContext;
use crate::settler::failures::earliest;

/// Task for a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Receive it.
    Fetch,
    /// Read it.
    Unpack(UnpackTask),
}

impl Task {
    pub(crate) fn open() -> Self {
        Self::Unpack(UnpackTask::default())
    }

    pub(crate) fn is_slice(&self) -> bool {
        matches!(self, Self::Unpack(UnpackTask::Slice { .. }))
    }

    fn is_open(&self) -> bool {
        matches!(self, Self::Unpack(UnpackTask::Open { .. }))
    }

    /// Whether both are the same kind of task: a package is opened once, wherever its slices begin.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self == other || (self.is_open() && other.is_open())
    }
}

/// The tasks that are possible for a package now, all at once.
pub(crate) fn tasks(record: &PackageRecord) -> impl Iterator<Item = Task> + '_ {
    let (one, slices) = match &record.state {
        PackageState::Wanted => (Some(Task::Fetch), None),
        PackageState::Stored { .. } => (Some(Task::open()), None),
        PackageState::Opened { contents, done, .. } => match contents.index {
            Some(index) => {
                let slice = move |number| Task::Unpack(UnpackTask::Slice { index, number });
                (None, Some(done.missing(contents.slices).map(slice)))
            }
            // One job processes all of its slices.
            None => {
                // The slices are those of the job that opened it.
                let keep_earlier = contents.keeps_earlier;
                (Some(Task::Unpack(UnpackTask::Open { settled: settled(record), keep_earlier })), None)
            }
        },
        PackageState::Done | PackageState::Failed => (None, None),
    };
    one.into_iter().chain(slices.into_iter().flatten())
}

/// Number of consecutive settled slices at the beginning of a package.
pub(crate) fn settled(record: &PackageRecord) -> u32 {
    match &record.state {
        PackageState::Opened { contents, done, .. } => {
            done.missing(contents.slices).next().unwrap_or(contents.slices)
        }
        _ => 0,
    }
}

/// Location of a received package.
fn stored(record: &PackageRecord) -> Option<&StoredBitstream> {
    match &record.state {
        PackageState::Stored { stored } | PackageState::Opened { stored, .. } => Some(stored),
        PackageState::Wanted | PackageState::Done | PackageState::Failed => None,
    }
}

impl PackageWork {
    /// Sends all jobs that may go out. Returns when the next waiting package is due.
    pub(crate) async fn send_packages(
        &mut self,
        ctx: &mut RunContext,
    ) -> Result<Option<Timestamp>, HarvestError> {
        let now = ctx.clock.now();
        let mut due = None;
        let mut jobs = Vec::new();
        let mut room = SLICES_OUT.saturating_sub(self.slices_out());
        // In a Change Dump, a later package waits until the earlier ones are settled.
        let mut busy: HashSet<SetId> = HashSet::new();
        for ((order, uri), record) in &self.packages {
            let is_first = !record.capability.tells_changes() || busy.insert(record.set.clone());
            if let Some(next) = record.next_attempt_at.filter(|next| *next > now) {
                due = earliest(due, Some(next));
                continue;
            }
            for task in tasks(record).filter(|task| is_first || *task == Task::Fetch) {
                if task.is_slice() && room == 0 {
                    break;
                }
                if !self.is_out(uri, &task) {
                    room -= usize::from(task.is_slice());
                    jobs.push(((*order, uri.clone()), JobId::fresh(), task));
                }
            }
        }
        // Recorded before they are sent: a later owner must not open a package a second time.
        let mut batch = Batch::new();
        for (key, id, task) in &jobs {
            if task.is_open()
                && let Some(record) = self.packages.get_mut(key)
            {
                record.job = Some(*id);
                batch.put_package(&key.1, record);
            }
        }
        if !batch.is_empty() {
            ctx.commit(batch).await?;
        }
        for (key, id, task) in jobs {
            if let Some(record) = self.packages.get(&key)
                && let Some(origin) = send_package(ctx, &key.1, record, id, &task, self.keeps_earlier).await?
            {
                self.origins.insert(origin);
                self.jobs.insert(id, Job { package: key.1, task });
            }
        }
        Ok(due)
    }
}

/// Sends one job. Returns the origin of the package. With `keep_earlier`, a package of changes is opened with all
/// versions of its resources.
pub(crate) async fn send_package(
    ctx: &mut RunContext,
    uri: &str,
    record: &PackageRecord,
    id: JobId,
    task: &Task,
    keep_earlier: bool,
) -> Result<Option<Origin>, HarvestError> {
    // Both were checked when the package was planned.
    let Ok(uri) = ResourceUri::try_from(uri.to_owned()) else { return Ok(None) };
    let Ok(origin) = uri.origin() else { return Ok(None) };
    let source = ctx.source.clone();
    let run = ctx.run.id;
    let seq = record.seq;
    let declaration = record.declaration.clone();
    let job_origin = origin.clone();
    match task {
        Task::Fetch => {
            let held = record.settled.as_ref().map(|settled| settled.validators.clone());
            let held = held.unwrap_or_default();
            let terms = ctx.options.terms.clone();
            let job = PackageJob { id, source, run, origin: job_origin, uri, seq, declaration, held, terms };
            ctx.queue_fetch(&origin, id, job).await?;
        }
        Task::Unpack(task) => {
            let Some(stored) = stored(record).cloned() else { return Ok(None) };
            let task = match (task, &record.state) {
                (UnpackTask::Open { settled, .. }, PackageState::Stored { .. }) => {
                    let keep_earlier = keep_earlier && record.capability.tells_changes();
                    UnpackTask::Open { settled: *settled, keep_earlier }
                }
                (task, _) => task.clone(),
            };
            let source_of_queue = source.clone();
            let queue = match task {
                UnpackTask::Open { .. } => Queue::Open { source: source_of_queue },
                UnpackTask::Slice { .. } => Queue::Unpack { source: source_of_queue },
            };
            let job = UnpackJob { id, source, run, origin: job_origin, uri, seq, declaration, stored, task };
            bus::send(&*ctx.bus, queue, id, Arc::new(job)).await?;
        }
    }
    Ok(Some(origin))
}
