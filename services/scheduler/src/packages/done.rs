//! The end of the packages: which dumps are known whole now, and what is read instead of what could not be.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bus::Filter;
use catalog::Batch;
use futures::TryStreamExt;
use model::{DocumentState, PackageState, ProblemReason, SetId, Subject, UnpackTask, Validators};
use resourcesync::Capability;

use super::{InHand, Task};
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::{letters, queue};

/// Letters taken at a time.
const LETTERS: usize = 8;

/// Copies of manifests that are read in one run instead of packages.
const COPIES: usize = 1_000;

/// How far the packages of one dump have come.
#[derive(Debug, Default)]
struct Tally {
    entries: u64,
    left: u64,
}

impl Harvest {
    /// Notes which dumps are settled whole. Where one is not, the list that says the same is read instead: what is held by
    /// now is not asked for again.
    pub(super) async fn finish_dumps(&mut self) -> Result<(), HarvestError> {
        let mut dumps: HashMap<String, Tally> = HashMap::new();
        let mut copies = Vec::new();
        let mut packages = self.catalog.scan_packages().await?;
        while let Some((_, record)) = packages.try_next().await? {
            if record.run != self.run.id {
                continue;
            }
            if record.state == PackageState::Failed && copies.len() < COPIES {
                copies.extend(self.contents_of(&record).await?);
            }
            let tally = dumps.entry(record.document).or_default();
            tally.left += u64::from(record.state != PackageState::Done);
            tally.entries += record.settled.map_or(0, |settled| settled.entries);
        }
        drop(packages);
        let mut batch = Batch::new();
        let mut broken: HashSet<(SetId, Capability)> = HashSet::new();
        for (uri, tally) in dumps {
            let Some(mut record) = self.catalog.document(&uri).await? else { continue };
            if tally.left > 0 {
                broken.insert((record.set.clone(), list_for(&record.capability)));
            } else if record.unpacked.is_none() {
                record.unpacked = Some(tally.entries);
                batch.put_document(&uri, &record);
            }
        }
        for (set, capability) in broken {
            // Nobody knows what the missing packages name.
            self.seen.insert(set.clone(), None);
            let Some(known) = self.sets.get(&set) else { continue };
            if known.documents(&capability).next().is_some() {
                copies.retain(|(_, copy)| copy.set != set);
            }
            for uri in known.documents(&capability) {
                let before = self.catalog.document(uri).await?;
                if before.as_ref().is_some_and(|record| record.run == self.run.id) {
                    continue;
                }
                tracing::warn!(set.id = %set, list = uri, "packages could not be read; the list that says the same is read instead");
                let mut list = queue::queued(self.run.id, &set, &capability, before);
                list.validators = Validators::default();
                list.state = DocumentState::Queued;
                batch.put_document(uri, &list);
            }
        }
        for (uri, copy) in copies.iter().filter(|(_, copy)| copy.state == DocumentState::Queued) {
            tracing::warn!(set.id = %copy.set, contents = uri, "a package could not be read; what its manifest names is asked for by itself");
            batch.put_document(uri, copy);
        }
        self.commit(batch).await
    }

    /// Packages that an earlier run could not read are nothing to be put right once a list of their set was read whole, or their
    /// dump does not name them any more.
    pub(crate) async fn forget_packages(
        &self,
        batch: &mut Batch,
        listed: &HashSet<SetId>,
    ) -> Result<(), HarvestError> {
        if !self.has_problems {
            return Ok(());
        }
        let mut packages = self.catalog.scan_packages().await?;
        while let Some((uri, record)) = packages.try_next().await? {
            if record.run == self.run.id || record.state != PackageState::Failed {
                continue;
            }
            let is_listed = record.capability == Capability::ResourceDump && listed.contains(&record.set);
            if is_listed || self.has_read(&record.document).await? {
                if record.kept {
                    self.forget_upload(&uri, record.seq).await;
                }
                batch.delete_package(&uri);
                batch.delete_problem(&Subject::Document(uri));
            }
        }
        Ok(())
    }

    /// Whether a document was read to its end in this run.
    async fn has_read(&self, uri: &str) -> Result<bool, HarvestError> {
        let known = self.catalog.document(uri).await?;
        Ok(known.is_some_and(|known| known.run == self.run.id && known.state == DocumentState::Done))
    }

    /// A job about a package that nobody could work on gives the package up for this run.
    pub(super) async fn take_package_letters(&mut self, hand: &mut InHand) -> Result<(), HarvestError> {
        let filter = Filter::Dead(self.source.clone());
        let bus = Arc::clone(&self.bus);
        for delivery in bus.pull(&filter, LETTERS, Duration::ZERO).await? {
            let letter = letters::read(&delivery);
            let mut batch = Batch::new();
            if let Some(job) = letter.id.job().and_then(|job| hand.jobs.remove(&job))
                && let Some(mut record) = self.catalog.package(&job.package).await?
            {
                let what = match job.task {
                    Task::Fetch => "receives it",
                    Task::Unpack(UnpackTask::Open { .. }) => "opens it",
                    Task::Unpack(UnpackTask::Slice { .. }) => "reads a part of it",
                };
                let message = format!(
                    "the job that {what} was given up: {}. That tells nothing against the package: the next run tries it again",
                    letter.why
                );
                record.state = PackageState::Failed;
                record.kept = job.task == Task::Fetch;
                let problem = self.problem(None, ProblemReason::Poison, message);
                self.has_problems = true;
                batch.put_problem(&Subject::Document(job.package.clone()), &problem);
                batch.put_package(&job.package, &record);
                hand.packages.remove(&(super::queue::order(&record), job.package));
            }
            self.record_letter(&mut batch, letter, 0).await?;
            self.commit(batch).await?;
            delivery.ack().await?;
        }
        Ok(())
    }
}

/// The list that says what a dump says.
fn list_for(dump: &Capability) -> Capability {
    if dump.tells_changes() { Capability::ChangeList } else { Capability::ResourceList }
}
