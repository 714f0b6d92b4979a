//! Packages: those that dumps list are received, opened and settled before the run goes on to single resources.
//!
//! A package's record in the catalog holds its progress, so a crash costs only the jobs in progress. Packages of a
//! Change Dump are settled one by one in the order of their intervals, while the next ones are already received.
//! Those of a Resource Dump are settled in any order.

mod choose;
mod contents;
mod dead_letters;
mod done;
mod edition;
mod indexes;
mod members;
mod outcome;
mod plan;
mod queue;
mod send;
mod uploads;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bus::Filter;
use model::{JobId, Lane, PackageRecord};
use tokio::time::Instant;

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::store_health;
use queue::Order;
use send::Task;

/// Packages processed at a time. Of further ones, only the names are in memory.
const IN_HAND: usize = 8;
/// Outstanding slices, over all packages.
const SLICES_OUT: usize = 64;
/// Messages taken at a time. Each has the outcome of a whole slice.
const OUTCOMES: usize = 8;
/// Records per batch.
const BATCH: usize = 500;
/// How long to wait for outcomes before other checks.
const OUTCOME_WAIT: Duration = Duration::from_millis(500);

/// The packages in progress.
#[derive(Debug, Default)]
pub(crate) struct InHand {
    packages: BTreeMap<(Order, String), PackageRecord>,
    jobs: HashMap<JobId, Job>,
    lanes: HashSet<Lane>,
}

/// A job on a package.
#[derive(Debug, Clone)]
struct Job {
    package: String,
    task: Task,
}

impl Harvest {
    /// Processes the packages of this run. Ends when no package can make further progress.
    pub(crate) async fn work_packages(&mut self) -> Result<(), HarvestError> {
        let mut waiting = queue::Waiting::of(&self.catalog, self.run.id).await?;
        if waiting.is_empty() {
            return self.finish_dumps().await;
        }
        self.open_queues().await?;
        let mut hand = InHand::default();
        // Jobs of an earlier owner may still be running.
        let are_others_out = self.bus.under_way(&self.source).await? > 0;
        let mut heard_at = Instant::now();
        loop {
            self.check_stop()?;
            while hand.packages.len() < IN_HAND {
                let Some((order, uri)) = waiting.next(&self.catalog, self.run.id).await? else { break };
                // A copy of each manifest may have been requested since the last check.
                self.check_stop()?;
                let found = self.catalog.package(&uri).await?;
                let Some(mut record) = found.filter(queue::is_open) else { continue };
                Box::pin(self.spare(&uri, &mut record)).await?;
                if queue::is_open(&record) {
                    hand.take(order, uri, record, are_others_out);
                } else {
                    self.settle_spared(&uri, record).await?;
                }
            }
            self.close_lanes_of_packages(&mut hand).await;
            let due = self.send_packages(&mut hand).await?;
            if hand.packages.is_empty() {
                break;
            }
            if hand.jobs.is_empty() {
                // No job is out, so a package waits for its time.
                self.wait_until(due.unwrap_or_else(|| self.clock.now())).await?;
                continue;
            }
            let filter = Filter::Outcomes(self.source.clone());
            let bus = Arc::clone(&self.bus);
            let deliveries = tokio::select! {
                deliveries = bus.pull(&filter, OUTCOMES, OUTCOME_WAIT) => deliveries?,
                trouble = store_health::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
                () = self.stop.cancelled() => return Err(HarvestError::Stopped),
            };
            if deliveries.is_empty() {
                self.look_for_lost_packages(&mut hand, &mut heard_at).await?;
            } else {
                (heard_at, self.vanished) = (Instant::now(), 0);
                self.settle_packages(deliveries, &mut hand).await?;
            }
        }
        let lanes = std::mem::take(&mut hand.lanes);
        self.close_queues(lanes).await;
        self.finish_dumps().await
    }

    /// Closes idle origin queues when the run has as many open as it may. Queues with jobs stay open.
    async fn close_lanes_of_packages(&self, hand: &mut InHand) {
        if hand.lanes.len() >= self.options.window.origins.get() {
            let lanes = std::mem::take(&mut hand.lanes);
            hand.lanes = self.close_lanes(lanes).await.into_iter().collect();
        }
    }

    /// Resends jobs that vanished from the bus: the packages' records have the remaining work.
    async fn look_for_lost_packages(
        &mut self,
        hand: &mut InHand,
        heard_at: &mut Instant,
    ) -> Result<(), HarvestError> {
        self.take_package_letters(hand).await?;
        if !hand.jobs.is_empty() && self.is_nothing_under_way(&hand.lanes, heard_at).await? {
            self.note_vanished(hand.jobs.len())?;
            hand.jobs.clear();
        }
        Ok(())
    }
}

impl InHand {
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
