//! The end of the packages: which dumps are known whole now, and what is read instead of what could not be.

use std::collections::{HashMap, HashSet};

use catalog::Batch;
use futures::TryStreamExt;
use model::{DocumentRecord, DocumentState, PackageRecord, PackageState, SetId, Subject, Validators};
use resourcesync::Capability;

use crate::again::is_told_by_lists;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;

/// Copies of manifests that are read in one run instead of packages.
const COPIES: usize = 1_000;

/// How far the packages of one dump have come.
#[derive(Debug, Default)]
struct Tally {
    /// Entries of the dump that name a package which is known.
    named: u64,
    /// Entries of the manifests.
    entries: u64,
    /// Packages that were not read.
    left: u64,
}

impl Tally {
    fn add(&mut self, record: &PackageRecord) {
        self.named += record.named;
        self.left += u64::from(record.state != PackageState::Done);
        self.entries += record.settled.as_ref().map_or(0, |settled| settled.entries);
    }

    /// Whether all that the dump names was read: nothing tells of what a package holds that was let go of.
    fn is_whole(&self, dump: &DocumentRecord) -> bool {
        self.left == 0 && self.named == dump.packages
    }
}

/// The copy of a manifest, to be read instead of its package.
struct Copy {
    uri: String,
    /// What names the package.
    dump: Capability,
    document: DocumentRecord,
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
            if record.state == PackageState::Failed
                && copies.len() < COPIES
                && let Some((uri, document)) = self.contents_of(&record).await?
            {
                copies.push(Copy { uri, dump: record.capability.clone(), document });
            }
            dumps.entry(record.document.clone()).or_default().add(&record);
        }
        drop(packages);
        let mut batch = Batch::new();
        let mut broken: HashSet<(SetId, Capability)> = HashSet::new();
        for (uri, tally) in dumps {
            let Some(mut record) = self.catalog.document(&uri).await? else { continue };
            // A dump that failed names more than was read of it, or its packages are of two editions.
            if tally.is_whole(&record) && record.state != DocumentState::Failed {
                if record.unpacked.is_none() {
                    record.unpacked = Some(tally.entries);
                    batch.put_document(&uri, &record);
                }
            } else if tally.left > 0 || !self.has_let_go(&record).await? {
                broken.insert((record.set, record.capability));
            }
        }
        for (set, dump) in broken {
            // Nobody knows what the missing packages name.
            self.seen.insert(set.clone(), None);
            let Some((known, list)) = self.sets.get(&set).zip(list_for(&dump)) else { continue };
            if known.documents(&list).next().is_some() {
                copies.retain(|copy| copy.document.set != set || copy.dump != dump);
            }
            for uri in known.documents(&list) {
                let before = self.catalog.document(uri).await?;
                if before.as_ref().is_some_and(|record| record.run == self.run.id) {
                    continue;
                }
                tracing::warn!(set.id = %set, list = uri, "packages could not be read; the list that says the same is read instead");
                let mut queued = queue::queued(self.run.id, &set, &list, before);
                queued.validators = Validators::default();
                batch.put_document(uri, &queued);
            }
        }
        for Copy { uri, document, .. } in
            copies.iter().filter(|copy| copy.document.state == DocumentState::Queued)
        {
            tracing::warn!(set.id = %document.set, contents = uri, "a package could not be read; what its manifest names is asked for by itself");
            batch.put_document(uri, document);
        }
        self.commit(batch).await
    }

    /// Whether packages of a dump may be missing because a list brings sooner what they hold.
    async fn has_let_go(&self, dump: &DocumentRecord) -> Result<bool, HarvestError> {
        Ok(dump.capability == Capability::ResourceDump && self.has_read_list(&dump.set).await?)
    }

    /// Packages that an earlier run could not read are nothing to be put right once a list of their set was read whole, by that run or by this
    /// one, once other documents told of all changes, or when their dump does not name them any more.
    pub(crate) async fn forget_packages(
        &self,
        batch: &mut Batch,
        listed: &HashSet<SetId>,
        followed: &HashSet<SetId>,
    ) -> Result<(), HarvestError> {
        if !self.has_problems {
            return Ok(());
        }
        let documents = queue::by_set(&self.catalog).await?;
        let mut packages = self.catalog.scan_packages().await?;
        while let Some((uri, record)) = packages.try_next().await? {
            if record.run == self.run.id || record.state != PackageState::Failed {
                continue;
            }
            let is_told = match record.capability {
                Capability::ResourceDump => {
                    listed.contains(&record.set) || is_told_by_lists(&record, &documents)
                }
                _ => followed.contains(&record.set),
            };
            if is_told || self.has_read(&record.document).await? {
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
}

/// The list that says what a dump says. Of packages that a Change List names itself, none does.
fn list_for(dump: &Capability) -> Option<Capability> {
    match dump {
        Capability::ResourceDump => Some(Capability::ResourceList),
        Capability::ChangeDump => Some(Capability::ChangeList),
        _ => None,
    }
}
