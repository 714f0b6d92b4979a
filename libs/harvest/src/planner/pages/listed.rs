//! Takes what a list says of landing pages: plans those that it describes, and queues the others.

use catalog::Batch;
use model::{DocumentRecord, DocumentState, PageRecord, PageState, ProblemReason, ResourceUri, SetId};
use planning::pages;
use planning::{EntryContext, ListedEntry};
use resourcesync::{Entry, Item, Link};

use super::rules;
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// Pages that are looked up at a time: the links of each may have a megabyte.
const LOOKED_UP: usize = 16;
/// Bytes of links in the records of pages, beyond which their batch is committed.
const LINK_BYTES: usize = 1024 * 1024;

impl Planner {
    /// Takes a page that is a set of its own as read: it is queued as a page.
    pub(crate) async fn queue_single_page(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        mut record: DocumentRecord,
    ) -> Result<(), HarvestError> {
        let Ok(page) = uri.parse::<ResourceUri>() else { return Ok(()) };
        self.expect_names(ctx, &record);
        ctx.forget_entry_problems(uri).await?;
        self.reading.whole.insert(uri.to_owned());
        record.state = DocumentState::Done;
        record.selection = Some(ctx.selection.id());
        record.entries = 1;
        let before = ctx.catalog().await?.page(&page).await?;
        let mut batch = Batch::new();
        if before.as_ref().is_none_or(|before| before.run != ctx.run.id) {
            let queued = queued(ctx, before, &record.set, uri);
            batch.put_page(&page, &PageRecord { state: PageState::Queued, ..queued });
        }
        batch.put_document(uri, &record);
        ctx.settle_document_problem(&mut batch, uri).await?;
        ctx.commit(batch).await
    }

    /// Takes entries of a sitemap of landing pages: plans what the sitemap says of a page, and queues the others.
    pub(crate) async fn plan_pages(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        items: Vec<Item>,
    ) -> Result<(), HarvestError> {
        let mut listed: Vec<(ResourceUri, Entry)> = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Bad(bad) => ctx.bad_entry(batch, &context.document, &bad),
                Item::Entry(entry) => match entry.loc.parse::<ResourceUri>() {
                    Ok(uri) => listed.push((uri, *entry)),
                    Err(error) => {
                        let position = entry.position;
                        let at = format!("{}#{}:{}", context.document, position.line, position.column);
                        ctx.entry_problem(batch, at, ProblemReason::BadUri, &error.to_string());
                    }
                },
            }
        }
        let mut planned = Vec::new();
        let mut listed = listed.into_iter();
        loop {
            let some: Vec<_> = listed.by_ref().take(LOOKED_UP).collect();
            if some.is_empty() {
                return self.plan_all(ctx, batch, planned).await;
            }
            planned.extend(self.sort_pages(ctx, batch, context, some).await?);
        }
    }

    /// Records pages as described or queued. Returns the entries of the described ones.
    async fn sort_pages(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        listed: Vec<(ResourceUri, Entry)>,
    ) -> Result<Vec<ListedEntry>, HarvestError> {
        let uris: Vec<ResourceUri> = listed.iter().map(|(uri, _)| uri.clone()).collect();
        let known = ctx.catalog().await?.pages_many(&uris).await?;
        let mut planned = Vec::new();
        let mut link_bytes = 0;
        for ((uri, entry), known) in listed.into_iter().zip(known) {
            let lastmod = entry.lastmod.as_ref().map(resourcesync::Datetime::instant);
            let links = pages::of_sitemap(&entry.links);
            if pages::is_described(&links) && !is_cut(&entry) {
                let described = PageRecord {
                    state: PageState::Done,
                    lastmod,
                    links: pages::kept(&links).ok().flatten(),
                    ..PageRecord::new(context.set.clone(), &*context.document, ctx.run.id)
                };
                let version = pages::version(lastmod, &described.validators);
                let found = rules(ctx).entries(&uri, &links, version.as_deref(), context);
                planned.extend(self.take_page_entries(ctx, batch, context, &uri, found));
                // The run of such a page decides nothing.
                if known.is_none_or(|known| PageRecord { run: ctx.run.id, ..known } != described) {
                    link_bytes += put_page(batch, &uri, &described);
                }
                continue;
            }
            if known.as_ref().is_some_and(|known| known.run == ctx.run.id) {
                continue;
            }
            let mut record = queued(ctx, known, &context.set, &context.document);
            let is_same = record.read_at.is_some() && lastmod.is_some() && record.lastmod == lastmod;
            let is_known = is_same && record.state == PageState::Done;
            record.state = if is_known { PageState::Known } else { PageState::Queued };
            record.lastmod = lastmod;
            if record.links.is_none() {
                record.links = pages::kept(&links).ok().flatten();
            }
            link_bytes += put_page(batch, &uri, &record);
        }
        if link_bytes > LINK_BYTES {
            ctx.commit_behind(std::mem::take(batch)).await?;
        }
        Ok(planned)
    }
}

/// Adds the record of a page to a batch. Returns the bytes of its links.
fn put_page(batch: &mut Batch, uri: &ResourceUri, page: &PageRecord) -> usize {
    batch.put_page(uri, page);
    page.links.as_ref().map_or(0, |links| links.as_str().len())
}

/// The record of a page that this run meets.
fn queued(ctx: &RunContext, known: Option<PageRecord>, set: &SetId, document: &str) -> PageRecord {
    match known {
        Some(known) => PageRecord {
            set: set.clone(),
            document: document.to_owned(),
            run: ctx.run.id,
            state: if known.state == PageState::Done { PageState::Done } else { PageState::Queued },
            ..known
        },
        None => PageRecord::new(set.clone(), document, ctx.run.id),
    }
}

/// Whether links of an entry may have been dropped beyond a limit: then its page is read.
fn is_cut(entry: &Entry) -> bool {
    let limits = limits();
    let bytes: usize = entry.links.iter().map(Link::size).sum();
    entry.links.len() >= limits.0 || bytes + LONGEST_LINK > limits.1
}

/// The longest link that is kept of an entry, in bytes.
const LONGEST_LINK: usize = 8 * 1024;

/// Links, and their bytes, that are read of an entry of a sitemap of landing pages.
pub(crate) fn limits() -> (usize, usize) {
    (5_000, 512 * 1024)
}
