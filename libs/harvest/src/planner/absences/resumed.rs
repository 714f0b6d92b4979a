//! What a resumed run knows of the lists and dumps that an interrupted process read. The names of lists were in its
//! memory; those of packages are kept.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use model::{
    Absent, DocumentRecord, DocumentState, PackageRecord, Phase, ProblemReason, SetId, SetRecord, Subject,
    Validators,
};
use planning::strategy;
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::kept_names::{Known, known};
use crate::run::{RunContext, document_queue};

const INTERRUPTED: &str = "the run was interrupted while it read this";
const NAMES_LOST: &str = "the names that its unchanged packages list were not kept";

impl Planner {
    /// Takes up the documents that an interrupted process read whole and that name no resource themselves: indexes and
    /// dumps. The resources are named by what this process is about to read, and by packages whose names are kept.
    pub(crate) async fn take_up_snapshots(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        if ctx.run.phase != Phase::Planning {
            return Ok(());
        }
        let documents = document_queue::documents(&*ctx.catalog().await?).await?;
        let packages = packages_of_run(ctx).await?;
        let mut parts: HashMap<&str, u64> = HashMap::new();
        for (_, record) in documents.iter().filter(|(_, record)| record.run == ctx.run.id) {
            if let Some(index) = &record.parent {
                *parts.entry(index).or_default() += 1;
            }
        }
        for (uri, record) in &documents {
            let names_nothing = record.documents + record.packages == record.entries;
            // The interrupted process may have read it long ago. Only a stated time tells parts of another edition.
            let is_read =
                record.run == ctx.run.id && record.state == DocumentState::Done && record.at.is_some();
            let are_all_parts_known = parts.get(uri.as_str()).copied().unwrap_or_default()
                == record.documents
                && packages.get(uri).copied().unwrap_or_default() == record.packages;
            if is_read
                && !record.doubtful
                && names_nothing
                && are_all_parts_known
                && may_be_compared(ctx, &record.set)
            {
                self.reading.whole.insert(uri.clone());
                self.expect_names(ctx, record);
            }
        }
        self.name_settled_packages(ctx).await
    }

    /// Names what packages list that an interrupted process settled, whole or in part.
    async fn name_settled_packages(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let mut packages = ctx.catalog().await?.scan_packages().await?;
        while let Some((uri, package)) = packages.try_next().await? {
            if package.run == ctx.run.id && self.reading.whole.contains(&package.document) {
                self.name_kept(ctx, &uri, &package).await?;
            }
        }
        Ok(())
    }

    /// Records a problem for each set whose lists or dumps were read whole, but partly by an interrupted process, or
    /// whose unchanged packages list what is not known: what they leave out is unknown. The next run reads them anew.
    pub(super) async fn tell_uncompared(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let lost_names = std::mem::take(&mut self.reconciler.lost_names);
        let is_resumed = ctx.progress.is_resumed();
        if ctx.options.absent == Absent::Keep || !is_resumed && lost_names.is_empty() {
            return Ok(());
        }
        let packages = packages_of_run(ctx).await?;
        let sets: Vec<SetId> = ctx.sets.keys().filter(|set| may_be_compared(ctx, set)).cloned().collect();
        for set in sets {
            let (kind, snapshots) = self.snapshots(ctx, &set).await?;
            let is_known =
                |(_, record): &(String, DocumentRecord)| record.is_read_whole() && !record.doubtful;
            let has_lost_names = kind == Capability::ResourceDump && lost_names.contains(&set);
            // The packages of an unmodified dump are those of an earlier run.
            let is_lost = |(uri, record): &(String, DocumentRecord)| {
                !self.reading.whole.contains(uri)
                    && !self.reading.unmodified.contains(uri)
                    && (record.packages == 0 || packages.contains_key(uri))
            };
            let is_interrupted = is_resumed && snapshots.iter().any(is_lost);
            if snapshots.iter().all(is_known) && (is_interrupted || has_lost_names) {
                let why = if is_interrupted { INTERRUPTED } else { NAMES_LOST };
                self.tell_uncompared_set(ctx, snapshots, why).await?;
            }
        }
        Ok(())
    }

    async fn tell_uncompared_set(
        &mut self,
        ctx: &mut RunContext,
        snapshots: Vec<(String, DocumentRecord)>,
        why: &str,
    ) -> Result<(), HarvestError> {
        let first = snapshots.iter().find(|(_, record)| record.parent.is_none());
        let Some((document, _)) = first.or(snapshots.first()) else { return Ok(()) };
        let subject = Subject::Document(document.clone());
        let before = ctx.problem_before(&subject).await?;
        let before = before.filter(|before| before.reason == ProblemReason::Uncompared);
        let message = format!(
            "{why}, so it is not known which stored resources the Source leaves out; all of them are kept. Run again: \
             the next run reads it anew"
        );
        let problem = ctx.problem(before, ProblemReason::Uncompared, message);
        let mut batch = Batch::new();
        ctx.put_problem(&mut batch, &subject, &problem);
        let mut packages = ctx.catalog().await?.scan_packages().await?;
        while let Some((uri, package)) = packages.try_next().await? {
            let is_of_them = snapshots.iter().any(|(dump, _)| *dump == package.document);
            if package.run == ctx.run.id && is_of_them && known(ctx, &uri, &package).await? == Known::Lost {
                // It is received again, whatever the dump declares of it.
                batch.put_package(&uri, &PackageRecord { settled: None, ..package });
            }
        }
        drop(packages);
        for (uri, record) in snapshots {
            let anew = DocumentRecord { validators: Validators::default(), digest: None, ..record };
            batch.put_document(&uri, &anew);
        }
        ctx.commit(batch).await
    }

    /// The lists of a set that belong to this run, otherwise its dumps.
    pub(super) async fn snapshots(
        &self,
        ctx: &mut RunContext,
        set: &SetId,
    ) -> Result<(Capability, Vec<(String, DocumentRecord)>), HarvestError> {
        let documents = document_queue::documents(&*ctx.catalog().await?).await?;
        let (dumps, lists): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .filter(|(_, r)| r.set == *set && strategy::is_baseline(&r.capability) && r.run == ctx.run.id)
            .partition(|(_, r)| r.capability == Capability::ResourceDump);
        Ok(if lists.is_empty() {
            (Capability::ResourceDump, dumps)
        } else {
            (Capability::ResourceList, lists)
        })
    }
}

/// Whether the documents of a set tell what is absent. Lists of a repository and of landing pages tell it their own way.
fn may_be_compared(ctx: &RunContext, set: &SetId) -> bool {
    let is_plain = |set: &SetRecord| set.oai.is_none() && set.pages.is_none();
    ctx.sets.get(set).is_some_and(|set| is_plain(set) && set.may_be_held() && !set.doubtful)
}

/// How many entries of each dump have a package in this run.
async fn packages_of_run(ctx: &mut RunContext) -> Result<HashMap<String, u64>, HarvestError> {
    let mut found: HashMap<String, u64> = HashMap::new();
    let mut packages = ctx.catalog().await?.scan_packages().await?;
    while let Some((_, package)) = packages.try_next().await? {
        if package.run == ctx.run.id {
            *found.entry(package.document).or_default() += package.named;
        }
    }
    Ok(found)
}
