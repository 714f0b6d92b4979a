//! Reads one document, from its first entry to its end.

use catalog::Batch;
use documents::{DocumentError, DocumentStream, Part, expect_kind, take_header};
use model::{
    ChangeTimes, Disposition, DocumentRecord, DocumentState, Evidence, Failure, ProblemReason, Subject,
    Validators,
};
use planning::{EntryContext, Horizon, LimitReached, is_settled_part};
use resourcesync::{Capability, Entry, Item, Quirk, Root, Summary};

use crate::error::HarvestError;
use crate::planner::reading::names;
use crate::planner::{Planner, pages};
use crate::run::{RunContext, document_queue};

/// State while a document is read.
struct Reading {
    record: DocumentRecord,
    /// Validators of the version that is read.
    version: Validators,
    horizon: Horizon,
    context: Option<EntryContext>,
    /// Entries planned before a crash, which are read again.
    skip: u64,
    planned: u64,
    changes: ChangeTimes,
    /// Whether its entries are spooled for the merge join with the catalog.
    is_spooled: bool,
}

/// A document that was read to its end.
#[derive(Debug)]
pub(crate) struct ReadDocument {
    pub(crate) uri: String,
    record: DocumentRecord,
    /// Problems with entries that did not occur again.
    settled: Vec<Subject>,
}

/// Entries by the type of their target.
#[derive(Default)]
struct Sorted {
    /// Resources, and unreadable entries.
    resources: Vec<Item>,
    documents: Vec<Entry>,
    packages: Vec<Entry>,
}

impl Planner {
    /// Reads a document to its end, or as far as it can be read.
    pub(crate) async fn read_document(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: DocumentRecord,
        stream: DocumentStream,
        horizon: Horizon,
    ) -> Result<(), HarvestError> {
        let mut stream = stream;
        let read = self.read_parts(ctx, uri, record, &mut stream, horizon).await;
        self.reading.budget.end_document(stream.bytes());
        read?;
        // From here on, all planned records are looked up in the catalog.
        ctx.catalog().await.map(drop)
    }

    async fn read_parts(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: DocumentRecord,
        stream: &mut DocumentStream,
        horizon: Horizon,
    ) -> Result<(), HarvestError> {
        ctx.run.counters.requests += u64::from(stream.requests);
        let mut reading = self.take_up(ctx, uri, record, stream.validators.clone(), horizon).await?;
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    if let Err(why) = expect_kind(&header, &reading.record.capability) {
                        let failure = unreadable(ProblemReason::WrongKind, why, (*stream.evidence).clone());
                        return self.fail_document(ctx, uri, reading.record, failure).await;
                    }
                    reading.context = Some(take_header(&mut reading.record, uri, header, reading.horizon));
                    self.expect_names(ctx, &reading.record);
                }
                Part::Items(mut items) => {
                    let met = self.take_within_limits(ctx, uri, &reading, &mut items).await?;
                    if !self.plan_items(ctx, uri, &mut reading, items).await? {
                        return Ok(());
                    }
                    if let Some(met) = met {
                        // The spooled entries are kept.
                        if !Box::pin(self.reconcile(ctx)).await? {
                            return Ok(());
                        }
                        let failure = beyond(met, (*stream.evidence).clone());
                        return self.fail_document(ctx, uri, reading.record, failure).await;
                    }
                }
                Part::End(summary) => {
                    // An entry that says nothing but its URI is requested each time the list is read. So the same body
                    // does not prove that nothing is new.
                    let is_telling = summary.quirks.count(Quirk::EntryWithoutMetadata) == 0;
                    reading.record.digest = stream.digest().filter(|_| is_telling);
                    return self.document_done(ctx, uri, reading, summary).await;
                }
                Part::Broken(error, summary) => {
                    // The spooled entries are kept. Without disk space for them, the document is read again.
                    if !Box::pin(self.reconcile(ctx)).await? {
                        return Ok(());
                    }
                    if let DocumentError::Web(error) = error {
                        return self.fail_document_web(ctx, uri, reading.record, &error).await;
                    }
                    ctx.run.counters.add_quirks(&names(&summary.quirks));
                    let evidence = (*stream.evidence).clone();
                    let failure = match self.limit_met_by(ctx, &error) {
                        Some(met) => beyond(met, evidence),
                        None => unreadable(error.reason(), error.to_string(), evidence),
                    };
                    return self.fail_document(ctx, uri, reading.record, failure).await;
                }
            }
        }
        let why = DocumentError::Stopped.to_string();
        self.fail_document(
            ctx,
            uri,
            reading.record,
            unreadable(ProblemReason::Malformed, why, (*stream.evidence).clone()),
        )
        .await
    }

    /// Cuts the entries to the run's limits. Returns the limit that excludes the rest.
    async fn take_within_limits(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        reading: &Reading,
        items: &mut Vec<Item>,
    ) -> Result<Option<LimitReached>, HarvestError> {
        let limits = ctx.options.limits;
        let met = self.reading.budget.take_entries(&limits, items);
        let named = items.iter().filter(|item| reading.leads_to_document(item)).count();
        if named == 0 {
            return Ok(met);
        }
        let above = self.indexes_above(ctx, uri, &reading.record).await?;
        let (mut room, met_by_documents) = self.reading.budget.room_for(&limits, above, named);
        if met_by_documents.is_some() {
            items.retain(|item| {
                let is_document = reading.leads_to_document(item);
                let is_taken = !is_document || room > 0;
                room -= usize::from(is_document && is_taken);
                is_taken
            });
        }
        Ok(met_by_documents.or(met))
    }

    /// Number of nested indexes above a document. Counting stops at the limit.
    async fn indexes_above(
        &self,
        ctx: &mut RunContext,
        uri: &str,
        record: &DocumentRecord,
    ) -> Result<u32, HarvestError> {
        let catalog = ctx.catalog().await?;
        let set = ctx.sets.get(&record.set);
        // An index may have listed this document in an earlier run, although the Source also offers it directly.
        let is_offered = |uri: &str| {
            set.is_some_and(|set| set.documents(&record.capability).any(|offered| offered == uri))
        };
        let mut above = 0;
        let mut at = uri.to_owned();
        let mut parent = record.parent.clone();
        while let Some(uri) = parent.filter(|_| above < ctx.options.limits.index_levels && !is_offered(&at)) {
            above += 1;
            parent = catalog.document(&uri).await?.and_then(|record| record.parent);
            at = uri;
        }
        Ok(above)
    }

    /// The limit of the run that stopped the reading of a document, if any.
    fn limit_met_by(&self, ctx: &mut RunContext, error: &DocumentError) -> Option<LimitReached> {
        match error {
            DocumentError::Read(error) => ctx.options.limits.met_by(error),
            _ => None,
        }
    }

    /// Starts at the document's first entry, or after a crash at the first unplanned entry of the same version.
    async fn take_up(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: DocumentRecord,
        version: Validators,
        horizon: Horizon,
    ) -> Result<Reading, HarvestError> {
        let (skip, changes) = match &record.state {
            DocumentState::Reading { planned, version: before, changes }
                if !version.is_empty() && *before == version && ctx.selection.covers(record.selection) =>
            {
                (*planned, *changes)
            }
            DocumentState::Reading { planned, .. } => {
                ctx.run.counters.listed = ctx.run.counters.listed.saturating_sub(*planned);
                (0, ChangeTimes::default())
            }
            _ => (0, ChangeTimes::default()),
        };
        let is_spooled = self.reconciler.is_spooled(ctx, &record);
        let mut reading =
            Reading { record, version, horizon, context: None, skip, planned: skip, changes, is_spooled };
        ctx.remember_entry_problems(uri, skip == 0).await?;
        if skip == 0 {
            (reading.record.documents, reading.record.packages, reading.record.unpacked) = (0, 0, None);
            reading.record.selection = Some(ctx.selection.id());
            self.reading.whole.insert(uri.to_owned());
        }
        Ok(reading)
    }

    /// Plans entries by the type of their target: a resource, a document to read, or a package to receive. Returns
    /// whether there was disk space. If not, the document must be read again.
    async fn plan_items(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        reading: &mut Reading,
        mut items: Vec<Item>,
    ) -> Result<bool, HarvestError> {
        let known = usize::try_from(reading.skip).unwrap_or(usize::MAX).min(items.len());
        items.drain(..known);
        reading.skip -= known as u64;
        let count = items.len() as u64;
        let position = reading.record.packages;
        let Sorted { resources, documents, packages } = reading.sort(items);
        let Some(context) = &reading.context else { return Ok(true) };
        let mut batch = Batch::new();
        let is_of_pages = pages::list_of(ctx, &context.set).is_some();
        Box::pin(self.plan_packages(ctx, &mut batch, uri, &reading.record, position, packages)).await?;
        if reading.is_spooled {
            ctx.know_publications_of(&resources).await?;
            let before = ctx.counted();
            let number = self.reconciler.spool.number(uri, &context.set);
            let (entries, changes) = self.read_entries(ctx, &mut batch, context, resources, Some(number));
            ctx.hold_back(before);
            reading.changes.merge(changes);
            self.queue_children(ctx, &mut batch, uri, &reading.record, documents).await?;
            if !batch.is_empty() {
                ctx.commit(batch).await?;
            }
            // The number of planned entries stays the same until these are planned.
            return Ok(self.reconciler.spool_entries(ctx, number, &context.set, &entries).await);
        }
        if !resources.is_empty() && !Box::pin(self.reconcile(ctx)).await? {
            // Earlier entries are planned first. The document must be read again.
            return Ok(false);
        }
        reading.planned += count;
        if is_of_pages {
            Box::pin(self.plan_pages(ctx, &mut batch, context, resources)).await?;
        } else {
            reading.changes.merge(self.plan_entries(ctx, &mut batch, context, resources).await?);
        }
        self.queue_children(ctx, &mut batch, uri, &reading.record, documents).await?;
        let planned = reading.planned;
        let version = reading.version.clone();
        reading.record.state = DocumentState::Reading { planned, version, changes: reading.changes };
        batch.put_document(uri, &reading.record);
        ctx.commit_behind(batch).await?;
        // The entry adds a name at least.
        self.reconciler.make_room(ctx).await;
        Ok(true)
    }

    async fn document_done(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        reading: Reading,
        summary: Summary,
    ) -> Result<(), HarvestError> {
        let Reading { mut record, version, changes, is_spooled, .. } = reading;
        record.state = DocumentState::Done;
        record.entries = summary.entries;
        record.bad = summary.bad;
        // A sitemap of landing pages need not say what it is.
        let is_of_pages = pages::list_of(ctx, &record.set).is_some();
        let is_doubt = |quirk: Quirk| quirk.casts_doubt() && !(is_of_pages && quirk == Quirk::NoCapability);
        record.doubtful =
            summary.bad > 0 || !summary.complete || summary.quirks.iter().any(|(quirk, _)| is_doubt(quirk));
        // If an entry was unreadable, the next run requests the document unconditionally, so that the problem does
        // not vanish.
        record.validators = if summary.bad == 0 { version } else { Validators::default() };
        record.quirks = names(&summary.quirks);
        if is_of_pages {
            record.quirks.remove(Quirk::NoCapability.as_str());
        }
        if has_lost(&record, changes) {
            let moment = changes.oldest.unwrap_or_else(|| ctx.clock.now());
            record.unseen_before = record.unseen_before.max(Some(moment));
        }
        (record.oldest_change, record.latest_change) = (changes.oldest, changes.latest);
        ctx.progress.count_document(&record, |documents| documents.read += 1);
        let mut settled = Vec::new();
        if !ctx.problems.of_entries.is_empty() {
            if self.reading.whole.contains(uri) {
                settled.extend(ctx.problems.of_entries.drain().map(|(at, _)| Subject::Entry(at)));
            } else {
                // After a crash it is unknown which problems occurred before. The next reading tells.
                record.validators = Validators::default();
            }
        }
        // No entry of an index waits to be planned.
        let waits = is_spooled && summary.entries + summary.bad > record.documents;
        let read = ReadDocument { uri: uri.to_owned(), record, settled };
        if waits {
            return self.await_plans(ctx, read).await;
        }
        let mut batch = Batch::new();
        self.note_read(ctx, &mut batch, read).await?;
        ctx.commit(batch).await
    }

    /// Records a document as read: all its entries are planned.
    pub(crate) async fn note_read(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        read: ReadDocument,
    ) -> Result<(), HarvestError> {
        let ReadDocument { uri, record, settled } = read;
        ctx.run.counters.add_quirks(&record.quirks);
        settled.iter().for_each(|problem| batch.delete_problem(problem));
        batch.put_document(&uri, &record);
        if record.leads_to_documents() {
            self.let_go_of_children(ctx, batch, &uri).await?;
        }
        ctx.settle_document_problem(batch, &uri).await
    }

    /// Forgets documents that an index no longer lists: they are not requested again, and their problems are dropped.
    /// A closed document stays known for the changes that it covered.
    async fn let_go_of_children(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        index: &str,
    ) -> Result<(), HarvestError> {
        // This waits for the commits in progress, which queued the documents that it does list.
        for (uri, mut child) in document_queue::children(&*ctx.catalog().await?, index).await? {
            if child.run != ctx.run.id && !is_settled_part(&child, child.until) {
                child.parent = None;
                batch.put_document(&uri, &child);
                batch.delete_problem(&Subject::Document(uri));
            }
        }
        Ok(())
    }
}

impl Reading {
    /// Whether an entry leads to a document. An entry with a change is always a resource, in any kind of document.
    fn leads_to_document(&self, item: &Item) -> bool {
        let is_index = self.record.root == Some(Root::SitemapIndex);
        let is_part = self.context.as_ref().is_some_and(|context| context.is_part(item));
        is_part || is_index && matches!(item, Item::Entry(entry) if entry.metadata.change.is_none())
    }

    /// Sorts entries by the type of their target.
    fn sort(&mut self, items: Vec<Item>) -> Sorted {
        let mut sorted = Sorted::default();
        for item in items {
            let is_document = self.leads_to_document(&item);
            match item {
                Item::Entry(entry) if is_document => sorted.documents.push(*entry),
                Item::Entry(entry) if self.is_package(&entry) => sorted.packages.push(*entry),
                item => sorted.resources.push(item),
            }
        }
        self.record.documents += sorted.documents.len() as u64;
        self.record.packages += sorted.packages.len() as u64;
        sorted
    }

    /// Whether an entry leads to a package: every entry of a dump, and an entry of a Change List without a change.
    fn is_package(&self, entry: &Entry) -> bool {
        if matches!(self.record.capability, Capability::ResourceDump | Capability::ChangeDump) {
            return true;
        }
        self.context.as_ref().is_some_and(|context| context.is_package(entry))
    }
}

/// Whether a document without `from` no longer contains a change that it contained before.
fn has_lost(record: &DocumentRecord, changes: ChangeTimes) -> bool {
    let Some(known) = record.latest_change else { return false };
    record.from.is_none() && changes.oldest.is_none_or(|oldest| oldest > known)
}

/// Failure for content beyond a limit of the run. It is not read.
pub(crate) fn beyond(met: LimitReached, evidence: Evidence) -> Failure {
    unreadable(met.reason(), met.to_string(), evidence)
}

/// Failure of an unreadable document. The next run reads it again.
pub(crate) fn unreadable(reason: ProblemReason, message: String, evidence: Evidence) -> Failure {
    Failure { reason, message, disposition: Disposition::Retry { after: None }, evidence }
}
