//! Repair: stored bytes of some resources are unreliable. They are fetched and verified like any others, and replace
//! the stored bytes even if they are equal.

use catalog::{Batch, Catalog};
use futures::{Stream, TryStreamExt};
use model::{
    Action, Clock, Counters, Mode, PendingRecord, Phase, ProblemRecord, Provenance, ResourceRecord,
    ResourceUri, RunId, RunRecord, Why,
};

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::parts::Parts;
use crate::report::Report;
use crate::run::problems::subject;

/// Resources queued per batch.
const BATCH: usize = 500;

/// Result of queueing repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueuedRepairs {
    /// Resources that the next harvest fetches, verifies and replaces.
    pub queued: u64,
    /// Resources that cannot be repaired: they have no stored bytes (a tombstone's bytes are no longer served), or
    /// their URI cannot be requested.
    pub passed_over: u64,
}

/// Queues stored resources, so that the next harvest of the Source replaces their bytes, even by equal ones. The
/// declaration and the listing document of each come from its record. If a newer entry ended as a problem, they come
/// from the problem, because the Source has that version.
///
/// The repairs belong to the interrupted run, if there is one, otherwise to a run of their own ([`Mode::Repair`]). If
/// no resource is queued, nothing is written. The call may be repeated after a crash: queued resources stay queued
/// once. A replaced resource is recorded as [`Healed`](model::ChangeEvent::Healed) in the change log, and its problem
/// is removed. One that could not be replaced is a problem and keeps its stored bytes. The next run retries it in the
/// same way.
///
/// # Errors
/// When the catalog fails, or `uris` does.
pub async fn queue_repairs(
    catalog: &Catalog,
    clock: &dyn Clock,
    uris: impl Stream<Item = Result<ResourceUri, HarvestError>>,
) -> Result<QueuedRepairs, HarvestError> {
    let last = catalog.last_run().await?;
    let mut queue = RepairQueue {
        catalog,
        seq: catalog.last_seq().await?,
        run: last.filter(|run| run.phase != Phase::Finished),
        clock,
        repairs: QueuedRepairs::default(),
    };
    let uris = uris.try_chunks(BATCH);
    let mut uris = std::pin::pin!(uris);
    while let Some(chunk) = uris.try_next().await.map_err(|error| error.1)? {
        queue.add(&chunk).await?;
    }
    Ok(queue.repairs)
}

/// State of the queueing.
struct RepairQueue<'a> {
    catalog: &'a Catalog,
    clock: &'a dyn Clock,
    seq: model::Seq,
    run: Option<RunRecord>,
    repairs: QueuedRepairs,
}

impl RepairQueue<'_> {
    async fn add(&mut self, uris: &[ResourceUri]) -> Result<(), HarvestError> {
        let records = self.catalog.resources_many(uris).await?;
        let pending = self.catalog.pending_many(uris).await?;
        let subjects: Vec<_> = uris.iter().map(subject).collect();
        let problems = self.catalog.problems_many(&subjects).await?;
        let mut batch = Batch::new();
        let mut fresh = 0;
        for (((uri, record), pending), problem) in uris.iter().zip(records).zip(pending).zip(problems) {
            let plan = match (pending, record) {
                // It is to be deleted, or already queued for repair.
                (Some(pending), _) if pending.action == Action::Delete || pending.repair => continue,
                // An outcome of the old plan, which may be "not modified", does not settle this one.
                (Some(pending), _) => Some(PendingRecord { repair: true, ..pending }),
                (None, Some(record)) if record.is_present() => {
                    let plan = plan(uri, record, problem);
                    fresh += u64::from(plan.is_some());
                    plan
                }
                (None, _) => None,
            };
            let Some(plan) = plan else {
                self.repairs.passed_over += 1;
                continue;
            };
            self.seq = self.seq.next();
            self.repairs.queued += 1;
            batch.put_pending(uri, &PendingRecord { seq: self.seq, ..plan });
        }
        if batch.is_empty() {
            return Ok(());
        }
        let mut run = match self.run.take() {
            Some(run) => run,
            None => self.begin().await?,
        };
        run.counters.planned += fresh;
        batch.put_run(&run);
        batch.put_last_seq(self.seq);
        self.run = Some(run);
        Ok(self.catalog.commit(batch).await?)
    }

    /// A run without documents to read. The run before has read them, and the view is as that run left it.
    async fn begin(&self) -> Result<RunRecord, HarvestError> {
        let last = self.catalog.last_run().await?;
        Ok(RunRecord {
            id: RunId::fresh(),
            mode: Mode::Repair,
            phase: Phase::Dispatching,
            options: last.as_ref().map_or_else(String::new, |run| run.options.clone()),
            view: last.is_some_and(|run| run.view),
            started_at: self.clock.now(),
            finished_at: None,
            cancelled: false,
            counters: Counters::default(),
        })
    }
}

/// The plan that repairs a resource.
fn plan(uri: &ResourceUri, record: ResourceRecord, problem: Option<ProblemRecord>) -> Option<PendingRecord> {
    let origin = uri.origin().ok()?;
    let (declaration, listing, candidate) = match problem {
        Some(ProblemRecord { declaration: Some(declaration), listing: Some(listing), evidence, .. }) => {
            (declaration, listing, evidence.candidate)
        }
        _ => (record.declaration, record.listing, None),
    };
    let action = Action::Fetch { origin };
    Some(PendingRecord {
        candidate,
        repair: true,
        ..PendingRecord::new(model::Seq::default(), action, declaration, listing, Provenance::of(Why::Repair))
    })
}

impl Harvest {
    /// Queues stored resources ([`queue_repairs`]) and harvests until each of them is repaired or a problem. Returns
    /// none if no resource was queued; then no request was made.
    ///
    /// An interrupted run is finished on the way.
    ///
    /// # Errors
    /// As [`Harvest::run`]. Queued repairs stay queued, and the next harvest of the Source does them.
    pub async fn repair(
        parts: Parts,
        uris: impl Stream<Item = Result<ResourceUri, HarvestError>>,
    ) -> Result<(QueuedRepairs, Option<Report>), HarvestError> {
        let queued = queue_repairs(&parts.catalog, &*parts.clock, uris).await?;
        if queued.queued == 0 {
            parts.catalog.close().await?;
            return Ok((queued, None));
        }
        Ok((queued, Some(Self::open(parts).await?.run().await?)))
    }
}
