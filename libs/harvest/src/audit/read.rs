//! Reads the entries of a Source's documents.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use documents::{Part, expect_kind, take_header};
use jiff::Timestamp;
use model::{ChangeTimes, DocumentRecord, DocumentState, SetId, SetRecord, counted};
use planning::follow::Followed;
use planning::{EntryContext, Horizon, LimitReached, Lists, queued_document};
use reconcile::{EntrySorter, SpoolError};
use resourcesync::{Capability, Entry, Header, Item, Root, Summary};
use url::Url;

use super::Auditor;
use super::named::{Named, NamedPackages};
use crate::error::HarvestError;
use crate::planner::reading::names;
use crate::run::RunContext;

/// Remarks kept for display.
const MOST_REMARKS: usize = 100;

/// State of the reading so far.
pub(crate) struct SpooledLists {
    pub(crate) entries: EntrySorter,
    /// The documents of the spooled entries, with their sets.
    pub(crate) documents: Vec<(Arc<str>, SetId)>,
    /// What could not be compared, and why: the first remarks.
    pub(crate) remarks: Vec<String>,
    pub(crate) unread: u64,
    pub(crate) horizon: Horizon,
}

/// A set of resources that is audited.
pub(crate) struct Audited {
    pub(crate) id: SetId,
    pub(crate) lists: Lists,
    pub(crate) at_latest: Option<Timestamp>,
    /// Whether its lists were read whole and without doubtful entries, so that a resource that they omit is absent.
    pub(crate) is_whole: bool,
    /// Its change documents.
    pub(crate) changes: Vec<DocumentRecord>,
    pub(crate) held: u64,
    pub(crate) to_delete: u64,
}

/// A document to read.
struct QueuedDocument {
    uri: String,
    /// Start of its interval, from its index.
    from: Option<Timestamp>,
    parent: Option<String>,
    /// Nested indexes above it.
    above: u32,
}

/// A document that is being read.
pub(crate) struct Reading<'a> {
    pub(crate) record: DocumentRecord,
    context: Option<EntryContext>,
    /// The lists contain the changes up to this time.
    after: Option<Timestamp>,
    pub(crate) changes: ChangeTimes,
    parts: Vec<QueuedDocument>,
    /// The document of the spooled entries, by number.
    pub(crate) number: usize,
    pub(crate) set: &'a SetId,
    /// Nested indexes above it.
    above: u32,
    /// The packages that it lists.
    packages: Option<NamedPackages>,
    /// Whether a doubtful manifest, or links that are not followed, make it unclear what is omitted.
    pub(crate) is_doubtful: bool,
    /// State before the current package.
    pub(crate) before: BeforePackage,
}

/// State before a package is read. Reading its manifest may break off, and start again elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BeforePackage {
    pub(crate) listed: u64,
    pub(crate) unread: u64,
    pub(crate) remarks: usize,
    pub(crate) changes: ChangeTimes,
}

impl SpooledLists {
    pub(crate) fn new(horizon: Horizon) -> Self {
        Self { entries: EntrySorter::new(), documents: Vec::new(), remarks: Vec::new(), unread: 0, horizon }
    }

    /// Registers a document whose entries are spooled, and returns its number.
    pub(crate) fn begin(&mut self, document: &str, set: &SetId) -> usize {
        self.documents.push((document.into(), set.clone()));
        self.documents.len() - 1
    }

    /// Records that something could not be compared.
    pub(crate) fn note_unread(&mut self, what: impl FnOnce() -> String) {
        self.unread += 1;
        self.remark(what);
    }

    pub(crate) fn remark(&mut self, what: impl FnOnce() -> String) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(what());
        }
    }
}

impl Auditor {
    /// Reads a set's lists, and the changes since.
    pub(crate) async fn read_set(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        id: &SetId,
        set: &SetRecord,
    ) -> Result<Audited, HarvestError> {
        let kinds = [Capability::ResourceList, Capability::ResourceDump];
        let kind = kinds.into_iter().find(|kind| set.documents(kind).next().is_some());
        let lists = match kind {
            Some(kind) => self.read_kind(ctx, spooled, id, set, kind, None).await?,
            None => Vec::new(),
        };
        let at = lists.iter().map(|(_, record)| record.at).min().flatten();
        let root = lists.iter().find(|(_, record)| record.parent.is_none());
        let is_read = |record: &DocumentRecord| record.is_read_whole() && !record.doubtful;
        let audited = Lists {
            set: id.clone(),
            document: root.map_or_else(|| id.as_str().to_owned(), |(uri, _)| uri.clone()),
            at,
            uris: lists.iter().map(|(uri, _)| uri.clone()).collect(),
        };
        let mut changes = self.read_kind(ctx, spooled, id, set, Capability::ChangeList, at).await?;
        if changes.is_empty() {
            changes = self.read_kind(ctx, spooled, id, set, Capability::ChangeDump, at).await?;
        }
        Ok(Audited {
            id: id.clone(),
            lists: audited,
            at_latest: lists.iter().map(|(_, record)| record.at_latest).min().flatten(),
            is_whole: !set.doubtful && !lists.is_empty() && lists.iter().all(|(_, record)| is_read(record)),
            changes: changes.into_iter().map(|(_, record)| record).collect(),
            held: 0,
            to_delete: 0,
        })
    }

    /// Reads a set's documents of one kind, and those that they lead to.
    async fn read_kind(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        id: &SetId,
        set: &SetRecord,
        kind: Capability,
        after: Option<Timestamp>,
    ) -> Result<Vec<(String, DocumentRecord)>, HarvestError> {
        let first = |uri: &str| QueuedDocument { uri: uri.to_owned(), from: None, parent: None, above: 0 };
        let mut queue: VecDeque<QueuedDocument> = set.documents(&kind).map(first).collect();
        let mut seen: HashSet<String> = queue.iter().map(|next| next.uri.clone()).collect();
        let mut documents = Vec::new();
        while let Some(next) = queue.pop_front() {
            ctx.check_stop()?;
            ctx.progress.show_document(&next.uri);
            let record = queued_document(ctx.run.id, id, &kind, None);
            let (record, parts) = self.read_document(ctx, spooled, id, &next, record, after).await?;
            documents.push((next.uri, record));
            let mut parts: Vec<QueuedDocument> =
                parts.into_iter().filter(|part| seen.insert(part.uri.clone())).collect();
            self.budget.queue(parts.len());
            // Changes in chronological order, whatever order an index has.
            parts.sort_by_key(|part| part.from);
            queue.extend(parts);
        }
        Ok(documents)
    }

    async fn read_document(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        set: &SetId,
        next: &QueuedDocument,
        mut record: DocumentRecord,
        after: Option<Timestamp>,
    ) -> Result<(DocumentRecord, Vec<QueuedDocument>), HarvestError> {
        let uri = &next.uri;
        (record.parent, record.from) = (next.parent.clone(), next.from);
        record.state = DocumentState::Failed;
        if let Some(met) = self.budget.begin_document(&ctx.options.limits) {
            spooled.note_unread(|| format!("{uri} was not read: {met}"));
            return Ok((record, Vec::new()));
        }
        let url = match Url::parse(uri) {
            Ok(url) => url,
            Err(error) => {
                spooled.note_unread(|| format!("{uri} was not read: {error}"));
                return Ok((record, Vec::new()));
            }
        };
        let options = self.options_within_limits(ctx, spooled);
        let (requests, opened) = documents::open_anew(&ctx.client, &url, options).await;
        ctx.run.counters.requests += requests;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => {
                spooled.note_unread(|| format!("{uri} was not read: {error}"));
                return Ok((record, Vec::new()));
            }
        };
        let number = spooled.begin(uri, set);
        let mut reading = Reading {
            record,
            context: None,
            after,
            changes: ChangeTimes::default(),
            parts: Vec::new(),
            number,
            set,
            packages: None,
            is_doubtful: false,
            above: next.above,
            before: BeforePackage::default(),
        };
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    if let Err(why) = reading.begin(uri, header, spooled.horizon) {
                        spooled.note_unread(|| format!("{uri} was not read: {why}"));
                        break;
                    }
                }
                Part::Items(mut items) => {
                    ctx.check_stop()?;
                    let met = self.budget.take_entries(&ctx.options.limits, &mut items);
                    self.spool_items(ctx, spooled, &mut reading, items).await?;
                    if let Some(met) = self.cut_parts(ctx, &mut reading).or(met) {
                        spooled.note_unread(|| format!("{uri} was not read to its end: {met}"));
                        break;
                    }
                }
                Part::End(summary) => {
                    reading.end(&summary);
                    ctx.run.counters.add_quirks(&reading.record.quirks);
                    if summary.bad > 0 {
                        spooled.note_unread(|| {
                            let bad = counted(summary.bad, "entry", "entries");
                            format!("{uri} has {bad} that cannot be read")
                        });
                    }
                }
                Part::Broken(error, summary) => {
                    ctx.run.counters.add_quirks(&names(&summary.quirks));
                    let why = error.message(&ctx.options.limits);
                    spooled.note_unread(|| format!("{uri} was not read to its end: {why}"));
                }
            }
        }
        self.budget.end_document(stream.bytes());
        // Its response takes a permit of its origin, which the packages may need.
        drop(stream);
        if let Some(packages) = reading.packages.take() {
            Box::pin(self.read_packages(ctx, spooled, &mut reading, packages)).await?;
            reading.take_packages();
        }
        ctx.show();
        Ok((reading.record, reading.parts))
    }

    /// Cuts the documents that an index leads to, to the run's limits. Returns the limit that excludes the rest.
    fn cut_parts(&self, ctx: &mut RunContext, reading: &mut Reading<'_>) -> Option<LimitReached> {
        let (room, met) = self.budget.room_for(&ctx.options.limits, reading.above, reading.parts.len());
        reading.parts.truncate(room);
        met
    }

    async fn spool_items(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        items: Vec<Item>,
    ) -> Result<(), HarvestError> {
        for item in items {
            let Some(context) = &reading.context else { continue };
            let is_part = context.is_part(&item);
            let Item::Entry(entry) = item else { continue };
            if is_part || reading.is_index() && entry.metadata.change.is_none() {
                reading.lead_to(*entry, spooled.horizon);
                continue;
            }
            if reading.is_package(context, &entry) {
                reading.name_package(&entry, spooled.horizon)?;
                continue;
            }
            let context = context.clone();
            self.spool_entry(ctx, spooled, reading, &context, *entry).await?;
        }
        ctx.show();
        Ok(())
    }

    /// Spools an entry about a resource.
    pub(crate) async fn spool_entry(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        context: &EntryContext,
        entry: Entry,
    ) -> Result<(), HarvestError> {
        if !ctx.options.filter.takes(&entry.loc) {
            return Ok(());
        }
        ctx.run.counters.listed += 1;
        match context.read(entry) {
            Ok(entry) => {
                entry.listing.change_time.into_iter().for_each(|time| reading.changes.add(time));
                // The lists already contain it.
                if entry.moment.latest.zip(reading.after).is_none_or(|(latest, after)| latest >= after) {
                    spooled.entries.add(&entry, reading.number)?;
                    let Followed { entries: followed, beyond, .. } =
                        ctx.options.follow.follow(&ctx.options.filter, &entry);
                    if !beyond.is_empty() {
                        // What they lead to is not named, and no resource of the set is one too many for that.
                        reading.is_doubtful = true;
                        let most = followed.len();
                        spooled.note_unread(|| {
                            format!(
                                "{} has more links than the {most} that are followed; --follow-max, or the max of a \
                                 --follow-rule, allows more",
                                entry.uri
                            )
                        });
                    }
                    let (taken, met) = self.budget.take_links(&ctx.options.limits, followed.len());
                    ctx.run.counters.linked += taken as u64;
                    met.into_iter().for_each(|met| spooled.note_unread(|| met.to_string()));
                    followed[..taken]
                        .iter()
                        .try_for_each(|linked| spooled.entries.add(linked, reading.number))?;
                    spooled.entries.make_room().await?;
                }
            }
            Err(error) => spooled.note_unread(|| error.to_string()),
        }
        Ok(())
    }
}

impl Reading<'_> {
    fn begin(&mut self, uri: &str, header: Header, horizon: Horizon) -> Result<(), String> {
        expect_kind(&header, &self.record.capability)?;
        self.context = Some(take_header(&mut self.record, uri, header, horizon));
        Ok(())
    }

    fn is_index(&self) -> bool {
        self.record.root == Some(Root::SitemapIndex)
    }

    /// Whether an entry leads to a package: every entry of a dump, and an entry of a Change List without a change.
    fn is_package(&self, context: &EntryContext, entry: &Entry) -> bool {
        matches!(self.record.capability, Capability::ResourceDump | Capability::ChangeDump)
            || context.is_package(entry)
    }

    /// Whether the target of an entry covers only changes that the lists contain.
    fn is_told(&self, entry: &Entry, horizon: Horizon) -> bool {
        let until = entry.metadata.until.and_then(|until| horizon.latest_instant(&until));
        until.zip(self.after).is_some_and(|(until, after)| until < after)
    }

    /// Adds a package, unless it covers only changes that the lists contain.
    fn name_package(&mut self, entry: &Entry, horizon: Horizon) -> Result<(), SpoolError> {
        if self.is_told(entry, horizon) {
            return Ok(());
        }
        self.record.packages += 1;
        let packages = match &mut self.packages {
            Some(packages) => packages,
            none => none.insert(NamedPackages::new()?),
        };
        packages.add(&Named::of(entry))
    }

    /// Attributes the changes in the manifests to the document that lists them.
    fn take_packages(&mut self) {
        self.record.doubtful |= self.is_doubtful;
        (self.record.oldest_change, self.record.latest_change) = (self.changes.oldest, self.changes.latest);
    }

    /// Adds a part, unless it covers only changes that the lists contain.
    fn lead_to(&mut self, entry: Entry, horizon: Horizon) {
        self.record.documents += 1;
        if self.is_told(&entry, horizon) {
            return;
        }
        let from = entry.metadata.from.and_then(|from| horizon.certain_instant(&from));
        let parent = self.context.as_ref().map(|context| context.document.as_ref().to_owned());
        self.parts.push(QueuedDocument { uri: entry.loc, from, parent, above: self.above + 1 });
    }

    fn end(&mut self, summary: &Summary) {
        let record = &mut self.record;
        record.state = DocumentState::Done;
        record.entries = summary.entries;
        record.bad = summary.bad;
        record.doubtful =
            self.is_doubtful || summary.bad > 0 || !summary.complete || summary.quirks.casts_doubt();
        record.quirks = names(&summary.quirks);
        (record.oldest_change, record.latest_change) = (self.changes.oldest, self.changes.latest);
    }
}
