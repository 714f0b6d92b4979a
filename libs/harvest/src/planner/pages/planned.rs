//! Plans what a landing page leads to, in one batch with its record.

use std::sync::Arc;

use catalog::Batch;
use model::{HomeSite, PageRecord, PageState, ProblemReason, ResourceUri, Subject};
use planning::follow::AfterChange;
use planning::pages::{self, PageEntries};
use planning::{EntryContext, Horizon, ListedEntry};
use resourcesync::{Interval, Link};

use super::ask::{Came, Waiting};
use super::{page_links, rules};
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// Entries per batch.
const BATCH: usize = 500;

impl Planner {
    /// Takes what came of a page.
    pub(super) async fn take_page(
        &mut self,
        ctx: &mut RunContext,
        Waiting { uri, mut page, led }: Waiting,
        came: Came,
    ) -> Result<(), HarvestError> {
        let context = context_of(ctx, &page);
        // Its files are links of its records, and named with these.
        let is_of_records = !led.is_empty();
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
                if trouble.is_some() && !is_of_records {
                    // What it said before may be said still where it could not be read.
                    let known = rules(ctx).entries(&uri, &before, None, &context);
                    self.name_all(ctx, &context, &known);
                }
                read.links
            }
            Came::Failed(error) => {
                if !is_of_records {
                    let known = page.links.as_ref().map(model::Links::to_vec).unwrap_or_default();
                    let known = rules(ctx).entries(&uri, &known, None, &context);
                    self.name_all(ctx, &context, &known);
                }
                ctx.run.counters.requests += u64::from(error.requests());
                return self.fail_page(ctx, batch, &uri, page, error.to_failure()).await;
            }
        };
        ctx.run.counters.add_quirks(&page.quirks);
        if is_of_records {
            let found = (&links[..], trouble.is_none());
            self.take_for_records(ctx, &mut batch, &uri, &page, found, led).await?;
        } else {
            let version = pages::version(page.lastmod, &page.validators);
            let found = rules(ctx).entries(&uri, &links, version.as_deref(), &context);
            let planned = self.take_page_entries(ctx, &mut batch, &context, &uri, found);
            self.plan_all(ctx, &mut batch, planned).await?;
        }
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
    pub(super) fn take_page_entries(
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
    pub(super) async fn plan_all(
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

/// The list of a page as the document of its entries. It states no time.
pub(super) fn context_of(ctx: &RunContext, page: &PageRecord) -> EntryContext {
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
