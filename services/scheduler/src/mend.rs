//! Mending: what is held of some resources is not to be relied on, so it is fetched and judged like anything else, and what comes
//! takes its place even if it is the same bytes.

use catalog::{Batch, Catalog};
use futures::{Stream, TryStreamExt};
use model::{
    Account, Action, Clock, Counters, Mode, PendingRecord, Phase, ProblemRecord, ResourceRecord, ResourceUri,
    RunId, RunRecord, Why,
};

use crate::error::HarvestError;
use crate::harvest::{Harvest, Parts, Report};
use crate::settle::subject;

/// Resources that are queued in one batch.
const BATCH: usize = 500;

/// What was queued to be mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mends {
    /// Resources that the next harvest fetches, judges and takes.
    pub queued: u64,
    /// Resources that cannot be mended: nothing is held of them (a tombstone's bytes are nobody's to give any more), or their URI is
    /// none that can be asked for.
    pub passed_over: u64,
}

/// Queues held resources, so that the next harvest of the Source replaces what is held of them, even by the same bytes. What was declared of each,
/// and the document that lists it, are those of its record; where a newer entry has ended as a problem, those of the problem, since
/// that is the version which the Source has.
///
/// They belong to the run that was interrupted, if there is one, else to a run of their own ([`Mode::Mend`]). Nothing is written where
/// nothing is queued. After a crash it may be repeated: what is queued already stays queued once. A resource that was replaced is noted as
/// [`Healed`](model::ChangeEvent::Healed) in the change log, and its problem is gone; one that could not be is a problem, keeps what is
/// held, and is tried again by the next run, in the same way.
///
/// # Errors
/// When the catalog fails, or `uris` does.
pub async fn queue_mends(
    catalog: &Catalog,
    clock: &dyn Clock,
    uris: impl Stream<Item = Result<ResourceUri, HarvestError>>,
) -> Result<Mends, HarvestError> {
    let last = catalog.last_run().await?;
    let mut queue = MendQueue {
        catalog,
        seq: catalog.last_seq().await?,
        run: last.filter(|run| run.phase != Phase::Finished),
        clock,
        mends: Mends::default(),
    };
    let uris = uris.try_chunks(BATCH);
    let mut uris = std::pin::pin!(uris);
    while let Some(chunk) = uris.try_next().await.map_err(|error| error.1)? {
        queue.add(&chunk).await?;
    }
    Ok(queue.mends)
}

/// What is being queued.
struct MendQueue<'a> {
    catalog: &'a Catalog,
    clock: &'a dyn Clock,
    seq: model::Seq,
    run: Option<RunRecord>,
    mends: Mends,
}

impl MendQueue<'_> {
    async fn add(&mut self, uris: &[ResourceUri]) -> Result<(), HarvestError> {
        let records = self.catalog.resources_many(uris).await?;
        let pending = self.catalog.pending_many(uris).await?;
        let subjects: Vec<_> = uris.iter().map(subject).collect();
        let problems = self.catalog.problems_many(&subjects).await?;
        let mut batch = Batch::new();
        let mut fresh = 0;
        for (((uri, record), pending), problem) in uris.iter().zip(records).zip(pending).zip(problems) {
            let plan = match (pending, record) {
                // It goes, or is queued to be mended.
                (Some(pending), _) if pending.action == Action::Delete || pending.mend => continue,
                // An outcome of the plan so far, which may say "not modified", does not settle this one.
                (Some(pending), _) => Some(PendingRecord { mend: true, ..pending }),
                (None, Some(record)) if record.is_present() => {
                    let plan = plan(uri, record, problem);
                    fresh += u64::from(plan.is_some());
                    plan
                }
                (None, _) => None,
            };
            let Some(plan) = plan else {
                self.mends.passed_over += 1;
                continue;
            };
            self.seq = self.seq.next();
            self.mends.queued += 1;
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

    /// A run that has nothing to read. Documents were read as they were by the run before, and the view is as it left it.
    async fn begin(&self) -> Result<RunRecord, HarvestError> {
        let last = self.catalog.last_run().await?;
        Ok(RunRecord {
            id: RunId::fresh(),
            mode: Mode::Mend,
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

/// The plan that mends a resource.
fn plan(uri: &ResourceUri, record: ResourceRecord, problem: Option<ProblemRecord>) -> Option<PendingRecord> {
    let lane = uri.lane().ok()?;
    let (declaration, listing, candidate) = match problem {
        Some(ProblemRecord { declaration: Some(declaration), listing: Some(listing), evidence, .. }) => {
            (declaration, listing, evidence.candidate)
        }
        _ => (record.declaration, record.listing, None),
    };
    Some(PendingRecord {
        seq: model::Seq::default(),
        action: Action::Fetch { lane },
        declaration,
        listing,
        attempts: 0,
        next_attempt_at: None,
        candidate,
        mend: true,
        account: Account::of(Why::Mend),
    })
}

impl Harvest {
    /// Queues held resources ([`queue_mends`]) and harvests until each of them is mended or a problem. None where there was nothing to
    /// queue: then nobody was asked for anything.
    ///
    /// An interrupted run is brought to its end on the way.
    ///
    /// # Errors
    /// As [`Harvest::run`]; what is queued stays so, and the next harvest of the Source goes on with it.
    pub async fn mend(
        parts: Parts,
        uris: impl Stream<Item = Result<ResourceUri, HarvestError>>,
    ) -> Result<(Mends, Option<Report>), HarvestError> {
        let mends = queue_mends(&parts.catalog, &*parts.clock, uris).await?;
        if mends.queued == 0 {
            parts.catalog.close().await?;
            return Ok((mends, None));
        }
        Ok((mends, Some(Self::open(parts).await?.run().await?)))
    }
}
