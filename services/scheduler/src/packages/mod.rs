//! Packages: what dumps name is received, opened and settled before the run goes on to single resources.
//!
//! A package's record in the catalog says how far it has come, so a crash costs what was in somebody's hands and no more. Those
//! of a Change Dump are settled one after the other in the order of their intervals, while the next ones are received already;
//! those of a Resource Dump in any order.

mod choose;
mod contents;
mod done;
mod members;
mod outcome;
mod plan;
mod queue;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bus::Filter;
use catalog::Batch;
use jiff::Timestamp;
use model::{JobId, Lane, PackageJob, PackageRecord, PackageState, SetId, UnpackJob, UnpackTask};
use tokio::time::Instant;

use crate::dispatch::earliest;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::trouble;
pub(crate) use choose::FEW;
pub(crate) use plan::is_settled;
use queue::Order;

/// Packages that are in hand at a time, beside those of which only the name is known.
const IN_HAND: usize = 8;
/// Slices that are out at a time, over all packages.
const SLICES_OUT: usize = 64;
/// Messages taken at a time. One tells of a whole slice.
const OUTCOMES: usize = 8;
/// Records that travel in one batch.
const BATCH: usize = 500;
/// How long to wait for outcomes before looking round again.
const OUTCOME_WAIT: Duration = Duration::from_millis(500);

/// The packages in hand.
#[derive(Debug, Default)]
pub(crate) struct InHand {
    packages: BTreeMap<(Order, String), PackageRecord>,
    jobs: HashMap<JobId, Job>,
    lanes: HashSet<Lane>,
}

/// A job about a package.
#[derive(Debug, Clone)]
struct Job {
    package: String,
    task: Task,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Fetch,
    Open,
    Slice(u32),
}

impl Harvest {
    /// Works off the packages of this run. Ends when none is left that could be brought further.
    pub(crate) async fn work_packages(&mut self) -> Result<(), HarvestError> {
        let mut waiting = queue::Waiting::of(&self.catalog, self.run.id).await?;
        if waiting.is_empty() {
            return self.finish_dumps().await;
        }
        self.open_queues().await?;
        let mut hand = InHand::default();
        let mut heard_at = Instant::now();
        loop {
            self.check_stop()?;
            while hand.packages.len() < IN_HAND {
                let Some((order, uri)) = waiting.next(&self.catalog, self.run.id).await? else { break };
                let Some(mut record) = self.catalog.package(&uri).await? else { continue };
                Box::pin(self.spare(&uri, &mut record)).await?;
                if queue::is_open(&record) {
                    hand.packages.insert((order, uri), record);
                    continue;
                }
                let mut batch = Batch::new();
                batch.put_package(&uri, &record);
                self.commit(batch).await?;
            }
            let due = self.send_packages(&mut hand).await?;
            if hand.packages.is_empty() {
                break;
            }
            if hand.jobs.is_empty() {
                // Nothing is out, so something waits for its time.
                self.wait_until(due.unwrap_or_else(|| self.clock.now())).await?;
                continue;
            }
            let filter = Filter::Outcomes(self.source.clone());
            let bus = Arc::clone(&self.bus);
            let deliveries = tokio::select! {
                deliveries = bus.pull(&filter, OUTCOMES, OUTCOME_WAIT) => deliveries?,
                trouble = trouble::lasting(&self.store) => return Err(HarvestError::Trouble(trouble)),
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

    /// Sends whatever may go out. Returns when the next package that has to wait is due.
    async fn send_packages(&mut self, hand: &mut InHand) -> Result<Option<Timestamp>, HarvestError> {
        let now = self.clock.now();
        let mut due = None;
        let mut jobs = Vec::new();
        let mut room = SLICES_OUT.saturating_sub(hand.slices_out());
        // In a Change Dump, a later package waits until the earlier ones are settled.
        let mut busy: HashSet<SetId> = HashSet::new();
        for ((_, uri), record) in &hand.packages {
            let is_first = !record.capability.tells_changes() || busy.insert(record.set.clone());
            let out = |task: Task| hand.jobs.values().any(|job| job.package == *uri && job.task == task);
            if let Some(next) = record.next_attempt_at.filter(|next| *next > now) {
                due = earliest(due, Some(next));
                continue;
            }
            match &record.state {
                PackageState::Wanted if !out(Task::Fetch) => {
                    jobs.push((uri.clone(), record.clone(), Task::Fetch))
                }
                PackageState::Stored { .. } if is_first && !out(Task::Open) => {
                    jobs.push((uri.clone(), record.clone(), Task::Open));
                }
                PackageState::Opened { contents, done, .. } if is_first && contents.index.is_some() => {
                    let missing = done.missing(contents.slices).map(Task::Slice).filter(|task| !out(*task));
                    for task in missing.take(room) {
                        room -= 1;
                        jobs.push((uri.clone(), record.clone(), task));
                    }
                }
                // One job works all of its slices.
                PackageState::Opened { .. } if is_first && !out(Task::Open) => {
                    jobs.push((uri.clone(), record.clone(), Task::Open));
                }
                _ => {}
            }
        }
        for (uri, record, task) in jobs {
            self.send_package(hand, uri, record, task).await?;
        }
        Ok(due)
    }

    async fn send_package(
        &mut self,
        hand: &mut InHand,
        uri: String,
        record: PackageRecord,
        task: Task,
    ) -> Result<(), HarvestError> {
        let id = JobId::fresh();
        let (source, run, seq) = (self.source.clone(), self.run.id, record.seq);
        let terms = self.options.terms.clone();
        // Both were looked at when the package was planned.
        let Ok(name) = model::ResourceUri::try_from(uri.clone()) else { return Ok(()) };
        let Ok(lane) = Lane::of(&name.to_url()) else { return Ok(()) };
        let PackageRecord { declaration, settled, state, .. } = record;
        let task_of = |done: &model::SliceSet| match task {
            Task::Slice(number) => number,
            _ => done.missing(u32::MAX).next().unwrap_or_default(),
        };
        let (stored, task) = match (state, task) {
            (PackageState::Stored { stored }, _) => (stored, UnpackTask::default()),
            (PackageState::Opened { stored, contents, done }, _) => match contents.index {
                Some(index) => (stored, UnpackTask::Slice { index, number: task_of(&done) }),
                None => (stored, UnpackTask::Open { settled: task_of(&done) }),
            },
            (_, _) => {
                let held = settled.map(|settled| settled.validators).unwrap_or_default();
                let job = PackageJob {
                    id,
                    source,
                    run,
                    lane: lane.clone(),
                    uri: name,
                    seq,
                    declaration,
                    held,
                    terms,
                };
                self.queue_package(&job).await?;
                hand.lanes.insert(lane);
                hand.jobs.insert(id, Job { package: uri, task });
                return Ok(());
            }
        };
        let sent = match &task {
            UnpackTask::Slice { number, .. } => Task::Slice(*number),
            UnpackTask::Open { .. } => Task::Open,
        };
        let job = UnpackJob { id, source, run, lane, uri: name, seq, declaration, stored, task };
        self.queue_unpack(&job).await?;
        hand.jobs.insert(id, Job { package: uri, task: sent });
        Ok(())
    }

    /// Jobs that have vanished from the bus are sent again: their packages' records say what is still to be done.
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
    fn slices_out(&self) -> usize {
        self.jobs.values().filter(|job| matches!(job.task, Task::Slice(_))).count()
    }
}
