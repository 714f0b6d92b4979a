//! Chooses packages instead of the resources of a list, if they need fewer requests.

use planning::{Cost, FEW_RESOURCES, Pace, is_dump_cheaper, queued_document};
use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use model::{Action, PackageState, SetId, Validators};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::harvest::Harvest;

impl Harvest {
    /// For each set whose Resource List was read and that also offers a Resource Dump: chooses the strategy that
    /// brings the pending resources sooner. Members of packages settle the pending records of the list; the rest is
    /// requested one by one.
    pub(crate) async fn choose_dumps(&mut self) -> Result<(), HarvestError> {
        if self.options.prefer.is_some() || !self.reach.is_anything_planned() {
            return Ok(());
        }
        let sets: Vec<(SetId, Vec<String>)> = self
            .sets
            .iter()
            .map(|(id, set)| {
                (id.clone(), set.documents(&Capability::ResourceDump).map(str::to_owned).collect())
            })
            .filter(|(_, dumps): &(SetId, Vec<String>)| !dumps.is_empty())
            .collect();
        if sets.is_empty() {
            return Ok(());
        }
        let wanted = self.pending_by_set().await?;
        for (set, dumps) in sets {
            // A dump of an earlier time does not contain the changes.
            if !self.has_read_list(&set).await? {
                continue;
            }
            let Some(&list) = wanted.get(&set).filter(|list| list.requests >= FEW_RESOURCES) else {
                continue;
            };
            self.queue_dumps(&set, &dumps).await?;
            self.read_queued().await?;
            let dump = self.packages_of(&set).await?;
            let pace = Pace { wait: self.waits.mean(), at_once: self.options.jobs_per_lane.get() };
            let share = list.requests as f64 / self.listed_of(&set).await?.max(1) as f64;
            let is_chosen = dump.requests > 0 && is_dump_cheaper(dump, list, share, pace);
            tracing::info!(
                set.id = %set, ?dump, ?list, ?pace,
                "{}", if is_chosen { "the dump is read" } else { "each resource is asked for by itself" }
            );
            if !is_chosen {
                self.let_go_of_packages(&set).await?;
            }
        }
        Ok(())
    }

    /// Whether a Resource List of a set was read in this run.
    pub(super) async fn has_read_list(&self, set: &SetId) -> Result<bool, HarvestError> {
        let Some(known) = self.sets.get(set) else { return Ok(false) };
        for uri in known.documents(&Capability::ResourceList) {
            if self.catalog.document(uri).await?.is_some_and(|list| list.run == self.run.id) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number of resources in a set's Resource Lists, as far as they were read in this run.
    async fn listed_of(&self, set: &SetId) -> Result<u64, HarvestError> {
        let mut listed = 0;
        let mut documents = self.catalog.scan_documents().await?;
        while let Some((_, record)) = documents.try_next().await? {
            if record.run == self.run.id
                && record.set == *set
                && record.capability == Capability::ResourceList
            {
                listed += record.entries.saturating_sub(record.documents);
            }
        }
        Ok(listed)
    }

    /// Queues a set's dumps. Dumps that this run already read before a crash are not read again: their packages are
    /// known.
    async fn queue_dumps(&mut self, set: &SetId, dumps: &[String]) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        for uri in dumps {
            let before = self.catalog.document(uri).await?;
            if before.as_ref().is_some_and(|record| record.run == self.run.id) {
                continue;
            }
            let mut dump = queued_document(self.run.id, set, &Capability::ResourceDump, before);
            dump.validators = Validators::default();
            batch.put_document(uri, &dump);
        }
        self.commit(batch).await
    }

    /// Cost of requesting each pending resource, by set.
    async fn pending_by_set(&self) -> Result<HashMap<SetId, Cost>, HarvestError> {
        let mut costs: HashMap<SetId, Cost> = HashMap::new();
        let mut pending = self.catalog.scan_pending(None).await?;
        while let Some((_, record)) = pending.try_next().await? {
            if matches!(record.action, Action::Fetch { .. }) {
                costs.entry(record.listing.set).or_insert(Cost::ZERO).add(record.declaration.length);
            }
        }
        Ok(costs)
    }

    /// Cost of receiving the unsettled packages of a set.
    async fn packages_of(&self, set: &SetId) -> Result<Cost, HarvestError> {
        let mut cost = Cost::ZERO;
        let mut packages = self.catalog.scan_packages().await?;
        while let Some((_, record)) = packages.try_next().await? {
            if record.run == self.run.id && record.set == *set && record.state == PackageState::Wanted {
                cost.add(record.declaration.length);
            }
        }
        Ok(cost)
    }

    /// Drops packages that are not received after all. The next dump lists them again.
    async fn let_go_of_packages(&mut self, set: &SetId) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        let mut packages = self.catalog.scan_packages().await?;
        while let Some((uri, record)) = packages.try_next().await? {
            if record.run == self.run.id && record.set == *set && record.state == PackageState::Wanted {
                if record.kept || self.is_resumed {
                    self.forget_upload(&uri, record.seq).await;
                }
                batch.delete_package(&uri);
                if batch.len() >= super::BATCH {
                    self.commit(std::mem::take(&mut batch)).await?;
                }
            }
        }
        drop(packages);
        self.commit(batch).await
    }
}
