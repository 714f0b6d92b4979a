//! Packages: those that dumps list are received, opened and settled before the run goes on to single resources.
//!
//! A package's record in the catalog holds its progress, so a crash costs only the jobs in progress. Packages of a
//! Change Dump are settled one by one in the order of their intervals, while the next ones are already received.
//! Those of a Resource Dump are settled in any order.

mod choose;
mod contents;
mod dead_letters;
mod done;
mod earlier;
mod edition;
mod indexes;
mod members;
mod names;
mod outcome;
mod plan;
mod queue;
mod send;
mod unlisted;
mod uploads;

use std::collections::{BTreeMap, HashMap, HashSet};

use catalog::Batch;
use model::{JobId, Origin, PackageRecord};

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;
use crate::run::job_events::{Event, JobEvents};
use crate::settler::Settler;

pub(crate) use choose::choose_dumps;
pub(crate) use done::forget_packages;
pub(crate) use members::settle_members;
use queue::Order;
use send::Task;

/// Packages processed at a time. Of further ones, only the names are in memory.
const IN_PROGRESS: usize = 8;
/// Outstanding slices, over all packages.
const SLICES_OUT: usize = 64;
/// Records per batch.
const BATCH: usize = 500;

/// The packages in progress.
pub(crate) struct PackageWork {
    packages: BTreeMap<(Order, String), PackageRecord>,
    /// Outstanding jobs.
    jobs: HashMap<JobId, Job>,
    /// Origins with a queue.
    origins: HashSet<Origin>,
    events: JobEvents,
    /// Whether versions of resources are kept, so that all those of a package of changes are unpacked.
    keeps_earlier: bool,
}

/// A job on a package.
#[derive(Debug, Clone)]
struct Job {
    package: String,
    task: Task,
}

impl PackageWork {
    /// Processes the packages of this run. Ends when no package can make further progress.
    ///
    /// # Errors
    /// When the harvest is stopped, or a service fails.
    pub(crate) async fn run(
        ctx: &mut RunContext,
        planner: &mut Planner,
        settler: &mut Settler,
    ) -> Result<(), HarvestError> {
        let mut waiting = queue::Waiting::of(&*ctx.catalog().await?, ctx.run.id).await?;
        if !waiting.is_empty() {
            ctx.know_publications().await?;
            ctx.open_queues().await?;
            let events = JobEvents::of(ctx);
            let mut work = Self {
                packages: BTreeMap::new(),
                jobs: HashMap::new(),
                origins: HashSet::new(),
                events,
                keeps_earlier: settler.versions_to_keep() > 0,
            };
            work.process(ctx, planner, settler, &mut waiting).await?;
            ctx.close_queues(work.origins).await;
        }
        done::finish_dumps(ctx, planner).await
    }

    async fn process(
        &mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
        settler: &mut Settler,
        waiting: &mut queue::Waiting,
    ) -> Result<(), HarvestError> {
        // Jobs of an earlier owner may still be running.
        let are_others_out = ctx.bus.under_way(&ctx.source).await? > 0;
        loop {
            ctx.check_stop()?;
            self.take_next(ctx, planner, waiting, are_others_out).await?;
            self.close_idle_queues(ctx).await;
            let due = self.send_packages(ctx).await?;
            if self.packages.is_empty() {
                return Ok(());
            }
            if self.jobs.is_empty() {
                // No job is out, so a package waits for its time.
                ctx.wait_until(due.unwrap_or_else(|| ctx.clock.now())).await?;
                continue;
            }
            let event = self.events.next(ctx, 0).await?;
            if event.is_quiet() {
                if self.events.are_lost(ctx, &self.origins, self.jobs.len()).await? {
                    // The packages' records have the remaining work.
                    self.jobs.clear();
                }
                continue;
            }
            self.settle(ctx, planner, settler, event).await?;
        }
    }

    /// Takes packages until enough are in progress. Some need not be received at all.
    async fn take_next(
        &mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
        waiting: &mut queue::Waiting,
        are_others_out: bool,
    ) -> Result<(), HarvestError> {
        while self.packages.len() < IN_PROGRESS {
            let Some((order, uri)) = waiting.next(&*ctx.catalog().await?, ctx.run.id).await? else { break };
            // A copy of each manifest may have been requested since the last check.
            ctx.check_stop()?;
            let found = ctx.catalog().await?.package(&uri).await?;
            let Some(mut record) = found.filter(queue::is_open) else { continue };
            let copy_before = record.manifest_copy.clone();
            Box::pin(contents::spare(ctx, planner, &uri, &mut record)).await?;
            if queue::is_open(&record) {
                if record.manifest_copy != copy_before {
                    // It is compared with the manifest inside, when that was read.
                    let mut batch = Batch::new();
                    batch.put_package(&uri, &record);
                    ctx.commit(batch).await?;
                }
                self.take(order, uri, record, are_others_out);
            } else {
                contents::settle_spared(ctx, &uri, record).await?;
            }
        }
        Ok(())
    }

    /// Settles what came back from the jobs. Outcomes of single resources are of jobs of an earlier process.
    async fn settle(
        &mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
        settler: &mut Settler,
        event: Event,
    ) -> Result<(), HarvestError> {
        if !event.resources.is_empty() {
            Box::pin(settler.settle(ctx, event.resources, |_| None)).await?;
            settler.acknowledge(ctx).await?;
        }
        self.settle_packages(ctx, planner, settler, event.packages).await?;
        self.settle_dead_letters(ctx, event.dead_letters).await
    }

    /// Closes idle origin queues when the run has as many open as it may. Queues with jobs stay open.
    async fn close_idle_queues(&mut self, ctx: &mut RunContext) {
        if self.origins.len() >= ctx.options.window.origins.get() {
            let origins = std::mem::take(&mut self.origins);
            self.origins = ctx.close_origins(origins).await.into_iter().collect();
        }
    }
}

impl PackageWork {
    /// Starts to process a package, and adopts the job that opens it, if that may be out.
    fn take(&mut self, order: Order, uri: String, record: PackageRecord, may_be_out: bool) {
        if let (Some(id), true) = (record.job, may_be_out) {
            self.jobs.insert(id, Job { package: uri.clone(), task: Task::open() });
        }
        self.packages.insert((order, uri), record);
    }

    /// Whether a job with this task on a package is out.
    fn is_out(&self, package: &str, task: &Task) -> bool {
        self.jobs.values().any(|job| job.package == package && job.task.is_like(task))
    }

    fn slices_out(&self) -> usize {
        self.jobs.values().filter(|job| job.task.is_slice()).count()
    }
}
