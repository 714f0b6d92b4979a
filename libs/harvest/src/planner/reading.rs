//! Planning: reads the documents of a run once, and turns their entries into pending records.

use std::collections::BTreeMap;

use catalog::Batch;
use documents::Opened;
use model::{DocumentRecord, DocumentState, Evidence, Origin, PageList, ProblemReason, Validators};
use planning::{Horizon, is_settled_part};
use resourcesync::Quirks;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::error::HarvestError;
use crate::planner::document::{beyond, unreadable};
use crate::planner::{Planner, pages};
use crate::run::{RunContext, document_queue};

impl Planner {
    /// Reads every queued document, in chronological order. An unreadable document affects only its own entries.
    pub(crate) async fn read_queued(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        loop {
            let spool = &self.reconciler.spool;
            let documents =
                document_queue::next_documents(&*ctx.catalog().await?, ctx.run.id, |uri| spool.holds(uri))
                    .await?;
            if documents.is_empty() {
                self.discovery.prefetched = None;
                let is_last = !self.reconciler.spool.has_entries();
                Box::pin(self.reconcile(ctx)).await?;
                if is_last {
                    return Ok(());
                }
            }
            for (uri, record) in documents {
                ctx.progress.show_document(&uri);
                Box::pin(self.plan_document(ctx, &uri, record)).await?;
            }
        }
    }

    async fn plan_document(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: DocumentRecord,
    ) -> Result<(), HarvestError> {
        let prefetched = self.discovery.prefetched.take();
        let Ok(url) = Url::parse(uri) else {
            let failure =
                unreadable(ProblemReason::BadUri, "its URI is not absolute".to_owned(), Evidence::default());
            return self.fail_document(ctx, uri, record, failure).await;
        };
        let page_list = pages::list_of(ctx, &record.set);
        if page_list == Some(PageList::Page) {
            return self.queue_single_page(ctx, uri, record).await;
        }
        if let Some(met) = self.reading.budget.begin_document(&ctx.options.limits) {
            return self.fail_document(ctx, uri, record, beyond(met, Evidence::default())).await;
        }
        let mode = ctx.read_mode();
        let horizon = Horizon::at(ctx.clock.now());
        let held = match record.state {
            // The packages of a dump that were not all settled are planned again.
            // Landing pages may have changed although their sitemap did not.
            _ if page_list.is_some() => Validators::default(),
            DocumentState::Queued
                if ctx.selection.covers(record.selection)
                    && (record.packages == 0 || record.unpacked.is_some()) =>
            {
                record.validators.clone()
            }
            _ => Validators::default(),
        };
        let mut options = self.reading.budget.options(&ctx.options.limits, horizon.options(mode));
        if page_list.is_some() {
            (options.limits.max_links_per_entry, options.limits.max_link_bytes) = pages::limits();
        }
        let opened = match prefetched.filter(|prefetched| prefetched.answers(&url, &held)) {
            Some(prefetched) => {
                self.reading.latencies.add(prefetched.waited);
                Ok(Opened::Document(prefetched.read(options)))
            }
            None => {
                let asked_at = Instant::now();
                let opened = documents::open(&ctx.client, &url, held, options).await;
                self.reading.latencies.add(asked_at.elapsed());
                opened
            }
        };
        if opened.as_ref().is_ok_and(Opened::is_redirected) {
            self.reading.redirected.insert(uri.to_owned());
        }
        match opened {
            Err(error) => self.fail_document_web(ctx, uri, record, &error).await,
            Ok(Opened::NotModified { requests, .. }) => {
                ctx.run.counters.requests += u64::from(requests);
                self.document_unchanged(ctx, uri, record).await
            }
            Ok(Opened::Document(stream)) => {
                self.begin_spacing(ctx, &record, &stream.url);
                self.read_document(ctx, uri, record, stream, horizon).await
            }
        }
    }

    /// Starts to measure which delay the origin wants between two requests while a first list is read. The resources
    /// of a first list are requested next, mostly from the list's own origin. So the first of them need not wait for
    /// the measurement.
    fn begin_spacing(&mut self, ctx: &mut RunContext, record: &DocumentRecord, url: &Url) {
        let has_baseline = ctx.sets.get(&record.set).is_some_and(|set| set.has_baseline);
        let Ok(origin) = Origin::of(url) else { return };
        if !has_baseline && self.spacing.is_none() {
            let client = ctx.client.clone();
            let asked = tokio::spawn(async move { client.space_between(&origin).await.1 });
            self.spacing = Some(AbortOnDropHandle::new(asked));
        }
    }

    /// Counts the requests of that measurement.
    pub(crate) async fn end_spacing(&mut self, ctx: &mut RunContext) {
        let Some(asked) = self.spacing.take() else { return };
        tokio::select! {
            requests = asked => ctx.run.counters.requests += u64::from(requests.unwrap_or_default()),
            // Stopping a harvest must not wait for that.
            () = ctx.stop.cancelled() => {}
        }
    }

    /// Settles an unmodified document: it lists no more than when it was read whole.
    async fn document_unchanged(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        mut record: DocumentRecord,
    ) -> Result<(), HarvestError> {
        self.count_unmodified(ctx, uri, &record);
        ctx.progress.count_document(&record, |documents| documents.unmodified += 1);
        self.reading.unmodified.insert(uri.to_owned());
        let mut batch = Batch::new();
        if record.leads_to_documents() {
            // The index is unmodified; the documents that it lists may have changed.
            for (child, mut known) in document_queue::children(&*ctx.catalog().await?, uri).await? {
                if !is_settled_part(&known, known.until) || !ctx.selection.covers(known.selection) {
                    known.state = DocumentState::Queued;
                    known.run = ctx.run.id;
                    batch.put_document(&child, &known);
                }
            }
        }
        record.state = DocumentState::Done;
        batch.put_document(uri, &record);
        ctx.settle_document_problem(&mut batch, uri).await?;
        ctx.commit(batch).await
    }

    /// Counts the content of an unmodified document from its record.
    fn count_unmodified(&mut self, ctx: &mut RunContext, uri: &str, record: &DocumentRecord) {
        if !record.leads_to_documents() {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            let listed = listed_in(record);
            ctx.run.counters.listed += listed;
            ctx.run.counters.unchanged += listed.saturating_sub(requeued);
        }
        ctx.run.counters.add_quirks(&record.quirks);
    }

    /// Reverts that count: the document is read after all, and counted then.
    pub(crate) fn uncount_unmodified(&mut self, ctx: &mut RunContext, uri: &str, record: &DocumentRecord) {
        let counters = &mut ctx.run.counters;
        if !record.leads_to_documents() {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            let listed = listed_in(record);
            counters.listed = counters.listed.saturating_sub(listed);
            counters.unchanged = counters.unchanged.saturating_sub(listed.saturating_sub(requeued));
        }
        for (name, times) in &record.quirks {
            let counted = counters.quirks.remove(name).unwrap_or_default();
            counters.quirks.extend((counted > *times).then(|| (name.clone(), counted - times)));
        }
    }
}

/// Number of resources in a document that was read whole, directly or in its packages.
fn listed_in(record: &DocumentRecord) -> u64 {
    record.entries.saturating_sub(record.packages) + record.unpacked.unwrap_or_default()
}

/// Quirks by name.
pub(crate) fn names(quirks: &Quirks) -> BTreeMap<String, u64> {
    quirks.iter().map(|(quirk, count)| (quirk.as_str().to_owned(), count)).collect()
}
