//! The end of packages: which dumps are known whole, and what is read instead of unreadable packages.

use std::collections::{HashMap, HashSet};

use catalog::Batch;
use futures::TryStreamExt;
use model::{
    DocumentRecord, DocumentState, PackageRecord, PackageState, SelectionId, SetId, Subject, Validators,
};
use planning::{is_listed_elsewhere, queued_document};
use resourcesync::Capability;

use super::{choose, contents, names, unlisted, uploads};
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::{RunContext, document_queue};

/// Copies of manifests that are read instead of packages in one run.
const COPIES: usize = 1_000;

/// Progress of one dump's packages.
#[derive(Debug, Default)]
struct Tally {
    /// Entries of the dump with a known package.
    named: u64,
    /// Entries of the manifests.
    entries: u64,
    /// Packages that were not read.
    left: u64,
    /// With which their members were selected.
    selections: HashSet<Option<SelectionId>>,
}

impl Tally {
    fn add(&mut self, record: &PackageRecord) {
        self.named += record.named;
        self.selections.insert(record.selection);
        self.left += u64::from(record.state != PackageState::Done);
        self.entries += record.settled.as_ref().map_or(0, |settled| settled.entries);
    }

    /// Whether everything that the dump lists was read. A dropped package counts as unread.
    fn is_whole(&self, dump: &DocumentRecord) -> bool {
        self.left == 0 && self.named == dump.packages
    }
}

/// The copy of a manifest that is read instead of its package.
struct Copy {
    uri: String,
    /// Kind of the document that lists the package.
    dump: Capability,
    document: DocumentRecord,
}

/// Records which dumps are settled whole. Otherwise the list with the same content is read instead; already
/// stored resources are not requested again.
pub(crate) async fn finish_dumps(ctx: &mut RunContext, planner: &mut Planner) -> Result<(), HarvestError> {
    let mut dumps: HashMap<String, Tally> = HashMap::new();
    let mut copies = Vec::new();
    let mut packages = ctx.catalog().await?.scan_packages().await?;
    while let Some((_, record)) = packages.try_next().await? {
        if record.run != ctx.run.id {
            continue;
        }
        if record.state == PackageState::Failed
            && copies.len() < COPIES
            && let Some((uri, document)) = contents::contents_of(ctx, &record).await?
        {
            copies.push(Copy { uri, dump: record.capability.clone(), document });
        }
        dumps.entry(record.document.clone()).or_default().add(&record);
    }
    drop(packages);
    let mut batch = Batch::new();
    let mut whole: HashMap<String, SetId> = HashMap::new();
    let mut broken: HashSet<(SetId, Capability)> = HashSet::new();
    for (uri, tally) in dumps {
        let Some(mut record) = ctx.catalog().await?.document(&uri).await? else { continue };
        // A failed dump lists more than was read of it, or its packages are of two editions.
        if tally.is_whole(&record) && record.state != DocumentState::Failed {
            if record.unpacked.is_none() {
                if tally.selections.iter().any(|selection| *selection != record.selection) {
                    record.selection = Some(SelectionId::SEVERAL);
                }
                record.unpacked = Some(tally.entries);
                batch.put_document(&uri, &record);
            }
            if !record.doubtful {
                whole.insert(uri, record.set);
            }
        } else if tally.left > 0 || !has_let_go(ctx, &record).await? {
            broken.insert((record.set, record.capability));
        }
    }
    for (set, dump) in broken {
        // The content of the missing packages is unknown.
        planner.reconciler.ignore_absences(&set);
        let catalog = ctx.catalog().await?;
        let Some((known, list)) = ctx.sets.get(&set).zip(list_for(&dump)) else { continue };
        if known.documents(&list).next().is_some() {
            copies.retain(|copy| copy.document.set != set || copy.dump != dump);
        }
        for uri in known.documents(&list) {
            let before = catalog.document(uri).await?;
            if before.as_ref().is_some_and(|record| record.run == ctx.run.id) {
                continue;
            }
            tracing::warn!(set.id = %set, list = uri, "packages could not be read; the list that says the same is read instead");
            let mut queued = queued_document(ctx.run.id, &set, &list, before);
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
    ctx.commit(batch).await?;
    unlisted::forget_unlisted(ctx, &whole).await
}

/// Whether packages of a dump may be missing because a list brings their resources sooner.
pub(crate) async fn has_let_go(ctx: &mut RunContext, dump: &DocumentRecord) -> Result<bool, HarvestError> {
    Ok(dump.capability == Capability::ResourceDump && choose::has_read_list(ctx, &dump.set).await?)
}

/// Forgets packages that an earlier run could not read in these cases. A list of their set was read whole, by
/// that run or this one. Other documents covered all changes. Or their dump no longer lists them.
pub(crate) async fn forget_packages(
    ctx: &mut RunContext,
    batch: &mut Batch,
    listed: &HashSet<SetId>,
    followed: &HashSet<SetId>,
) -> Result<(), HarvestError> {
    if !ctx.problems.any {
        return Ok(());
    }
    let documents = document_queue::by_set(&*ctx.catalog().await?).await?;
    let mut packages = ctx.catalog().await?.scan_packages().await?;
    while let Some((uri, record)) = packages.try_next().await? {
        if record.run == ctx.run.id || record.state != PackageState::Failed {
            continue;
        }
        let is_told = match record.capability {
            Capability::ResourceDump => {
                listed.contains(&record.set) || is_listed_elsewhere(&record, &documents)
            }
            _ => followed.contains(&record.set),
        };
        if is_told || has_read(ctx, &record.document).await? {
            if record.kept {
                uploads::forget_upload(ctx, &uri, record.seq).await;
            }
            names::forget(ctx, batch, &uri).await?;
            batch.delete_package(&uri);
            batch.delete_problem(&Subject::Document(uri));
        }
    }
    Ok(())
}

/// Whether a document was read to its end in this run.
pub(crate) async fn has_read(ctx: &mut RunContext, uri: &str) -> Result<bool, HarvestError> {
    let known = ctx.catalog().await?.document(uri).await?;
    Ok(known.is_some_and(|known| known.run == ctx.run.id && known.state == DocumentState::Done))
}

/// The kind of list with the content of a dump. Packages that a Change List itself lists have none.
fn list_for(dump: &Capability) -> Option<Capability> {
    match dump {
        Capability::ResourceDump => Some(Capability::ResourceList),
        Capability::ChangeDump => Some(Capability::ChangeList),
        _ => None,
    }
}
