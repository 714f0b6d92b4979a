//! Landing pages (Signposting, docs/adr/0073): their lists are read like other documents, and each page is read for
//! its typed links. What these lead to becomes entries; from there on it is planned like what lists name.
//!
//! A list queues the pages that have to be asked. A page that its sitemap describes, or that did not change since, costs
//! no request. Each page is planned in one batch with its record, so a crash reads on at the next page.

mod ask;
mod page_links;

use std::sync::Arc;

use catalog::Batch;
use futures::TryStreamExt;
use futures::stream::{self, StreamExt};
use model::{
    DocumentRecord, DocumentState, HomeSite, PageList, PageRecord, PageState, ProblemReason, ResourceUri,
    SetId, Subject,
};
use planning::follow::AfterChange;
use planning::pages::{self, PageEntries, PageRules};
use planning::{EntryContext, Horizon, ListedEntry};
use resourcesync::{Entry, Interval, Item, Link};

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

use self::ask::Came;

/// Pages that are taken from the catalog at a time.
const PAGES: usize = 16;
/// Pages that are requested at the same time, at most.
const AT_A_TIME: usize = 4;
/// Entries per batch.
const BATCH: usize = 500;

/// How a set names its landing pages, if it does.
pub(crate) fn list_of(ctx: &RunContext, set: &SetId) -> Option<PageList> {
    ctx.sets.get(set).and_then(|set| set.pages)
}

/// The rules of this run for the links of pages.
pub(crate) fn rules(ctx: &RunContext) -> PageRules<'_> {
    PageRules { follow: &ctx.options.follow, filter: &ctx.options.filter }
}

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
        let uris: Vec<ResourceUri> = listed.iter().map(|(uri, _)| uri.clone()).collect();
        let known = ctx.catalog().await?.pages_many(&uris).await?;
        let mut planned = Vec::new();
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
                    batch.put_page(&uri, &described);
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
            batch.put_page(&uri, &record);
        }
        self.plan_all(ctx, batch, planned).await
    }

    /// Reads the queued pages of this run.
    pub(crate) async fn read_pages(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        if ctx.sets.values().all(|set| set.pages.is_none()) {
            return Ok(());
        }
        let mut after = None;
        loop {
            let waiting = self.next_pages(ctx, &mut after).await?;
            if waiting.is_empty() {
                return Ok(());
            }
            let client = ctx.client.clone();
            let at_a_time = ctx.options.jobs_per_origin.get().min(AT_A_TIME);
            let mut seen = self.discovery.page.take();
            let asked: Vec<_> = waiting
                .into_iter()
                .map(|(uri, page)| {
                    let seen = seen.take_if(|seen| seen.requested == uri.to_url());
                    ask::ask(client.clone(), uri, page, seen)
                })
                .collect();
            let mut answers = Box::pin(stream::iter(asked).buffered(at_a_time));
            loop {
                let next = tokio::select! {
                    next = answers.next() => next,
                    () = ctx.stop.cancelled() => return Err(HarvestError::Stopped),
                };
                let Some((uri, page, came)) = next else { break };
                ctx.progress.show_document(uri.as_str());
                Box::pin(self.take_page(ctx, uri, page, came)).await?;
            }
        }
    }

    /// The next pages that wait in this run. Forgets the problems of pages that are listed no longer.
    async fn next_pages(
        &mut self,
        ctx: &mut RunContext,
        after: &mut Option<ResourceUri>,
    ) -> Result<Vec<(ResourceUri, PageRecord)>, HarvestError> {
        let mut waiting = Vec::new();
        let mut batch = Batch::new();
        let mut scan = ctx.catalog().await?.scan_pages("", after.as_ref()).await?;
        while waiting.len() < PAGES
            && batch.len() < BATCH
            && let Some((uri, mut page)) = scan.try_next().await?
        {
            *after = Some(uri.clone());
            if page.run == ctx.run.id && page.is_waiting() {
                waiting.push((uri, page));
            } else if page.run != ctx.run.id && page.state == PageState::Failed {
                let list = ctx.catalog().await?.document(&page.document).await?;
                if list.is_none_or(|list| list.run == ctx.run.id && list.state == DocumentState::Done) {
                    page.state = PageState::Done;
                    batch.put_page(&uri, &page);
                    batch.delete_problem(&Subject::Document(uri.as_str().to_owned()));
                }
            }
        }
        drop(scan);
        let is_any = !batch.is_empty();
        ctx.commit(batch).await?;
        if waiting.is_empty() && is_any {
            return Box::pin(self.next_pages(ctx, after)).await;
        }
        Ok(waiting)
    }

    /// Takes what came of a page.
    async fn take_page(
        &mut self,
        ctx: &mut RunContext,
        uri: ResourceUri,
        mut page: PageRecord,
        came: Came,
    ) -> Result<(), HarvestError> {
        let context = context_of(ctx, &page);
        let mut batch = Batch::new();
        let mut trouble = None;
        let links: Vec<Link> = match came {
            Came::Known => page.links.as_ref().map(model::Links::to_vec).unwrap_or_default(),
            Came::Unchanged { requests } => {
                ctx.run.counters.requests += requests;
                page.read_at = Some(ctx.clock.now());
                page.links.as_ref().map(model::Links::to_vec).unwrap_or_default()
            }
            Came::Read(landing) => {
                ctx.run.counters.requests += landing.requests;
                let before = page.links.take().map(|links| links.to_vec()).unwrap_or_default();
                let read = page_links::read(&landing, &before);
                page.quirks = read.quirks;
                page.validators = landing.validators;
                page.read_at = Some(ctx.clock.now());
                trouble = read.trouble;
                match pages::kept(&read.links) {
                    Ok(links) => page.links = links,
                    // The next run asks for it whatever version it has.
                    Err(pages::TooMany) => (page.validators, page.read_at) = (Default::default(), None),
                }
                if trouble.is_some() {
                    // What it said before may be said still where it could not be read.
                    let known = rules(ctx).entries(&uri, &before, None, &context);
                    self.name_all(ctx, &context, &known);
                }
                read.links
            }
            Came::Failed(error) => {
                let known = page.links.as_ref().map(model::Links::to_vec).unwrap_or_default();
                let known = rules(ctx).entries(&uri, &known, None, &context);
                self.name_all(ctx, &context, &known);
                ctx.run.counters.requests += u64::from(error.requests());
                return self.fail_page(ctx, batch, &uri, page, error.to_failure()).await;
            }
        };
        ctx.run.counters.add_quirks(&page.quirks);
        let version = pages::version(page.lastmod, &page.validators);
        let found = rules(ctx).entries(&uri, &links, version.as_deref(), &context);
        let planned = self.take_page_entries(ctx, &mut batch, &context, &uri, found);
        self.plan_all(ctx, &mut batch, planned).await?;
        if let Some(failure) = trouble {
            return self.fail_page(ctx, batch, &uri, page, failure).await;
        }
        page.state = PageState::Done;
        batch.put_page(&uri, &page);
        if ctx.problems.any {
            ctx.settle_document_problem(&mut batch, uri.as_str()).await?;
        }
        self.reconciler.make_room(ctx).await;
        ctx.commit_behind(batch).await
    }

    /// Counts what a page leads to, names it, and returns the entries to plan.
    fn take_page_entries(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        page: &ResourceUri,
        found: PageEntries,
    ) -> Vec<ListedEntry> {
        self.name_all(ctx, context, &found);
        let home = HomeSite::of(&ctx.entry);
        let PageEntries { mut entries, out_of_scope, foreign, elsewhere, unfit, .. } = found;
        let (room, met) = self.reading.budget.take_links(&ctx.options.limits, entries.len());
        entries.truncate(room);
        let counters = &mut ctx.run.counters;
        counters.listed += entries.len() as u64;
        counters.foreign += entries.iter().filter(|entry| home.is_foreign(entry.uri.as_str())).count() as u64;
        counters.out_of_scope += out_of_scope;
        counters.foreign_left_out += foreign;
        if !elsewhere.is_empty() {
            *counters.quirks.entry(page_links::ELSEWHERE.to_owned()).or_default() += elsewhere.len() as u64;
        }
        let at = format!("{}#{page}", context.document);
        if let Some(met) = met {
            if !std::mem::replace(&mut self.reading.has_met_links, true) {
                ctx.entry_problem(batch, at, met.reason(), &met.to_string());
            }
        } else if let Some((link, error)) = unfit {
            let why = format!("the link {} of {page} to {} is not followed: {error}", link.rel, link.href);
            ctx.entry_problem(batch, at, ProblemReason::BadUri, &why);
        }
        entries
    }

    /// Records that a page names its resources, so that none counts as absent.
    fn name_all(&mut self, ctx: &mut RunContext, context: &EntryContext, found: &PageEntries) {
        let entries = found.entries.iter().map(|entry| &entry.uri);
        for uri in entries.chain(found.others()) {
            self.reconciler.note_name(ctx, &context.document, &context.set, uri);
        }
    }

    /// Plans entries, some at a time. The last of them are in the batch.
    async fn plan_all(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        mut planned: Vec<ListedEntry>,
    ) -> Result<(), HarvestError> {
        while planned.len() > BATCH {
            let rest = planned.split_off(BATCH);
            let some = std::mem::replace(&mut planned, rest);
            self.plan_linked(ctx, batch, some, AfterChange::default()).await?;
            ctx.commit_behind(std::mem::take(batch)).await?;
            self.reconciler.make_room(ctx).await;
        }
        self.plan_linked(ctx, batch, planned, AfterChange::default()).await
    }

    /// Gives a page up for this run. What is planned of it stays planned.
    async fn fail_page(
        &mut self,
        ctx: &mut RunContext,
        mut batch: Batch,
        uri: &ResourceUri,
        mut page: PageRecord,
        failure: model::Failure,
    ) -> Result<(), HarvestError> {
        let model::Failure { reason, message: why, disposition, evidence } = failure;
        tracing::warn!(page.uri = uri.as_str(), reason = reason.as_str(), why, "landing page not read");
        page.state = PageState::Failed;
        page.validators = Default::default();
        let subject = Subject::Document(uri.as_str().to_owned());
        let before = ctx.catalog().await?.problem(&subject).await?;
        let message = format!(
            "the landing page was not read to its end: {why}. What is known of it is kept; run again to retry"
        );
        let mut problem = ctx.problem(before, reason, message);
        problem.evidence = evidence;
        problem.next_attempt_at = crate::run::problems::asked_until(disposition, problem.last_seen);
        ctx.run.counters.documents_failed += 1;
        batch.put_page(uri, &page);
        ctx.put_problem(&mut batch, &subject, &problem);
        self.reconciler.make_room(ctx).await;
        ctx.commit(batch).await
    }
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

/// The list of a page as the document of its entries. It states no time.
fn context_of(ctx: &RunContext, page: &PageRecord) -> EntryContext {
    EntryContext {
        document: Arc::from(page.document.as_str()),
        set: page.set.clone(),
        changes: false,
        at: None,
        completed: None,
        interval: Interval::OPEN,
        kind: None,
        horizon: Horizon::at(ctx.clock.now()),
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
