//! Reads the landing pages that wait: some at a time, so that a slow one does not hold up the others.

use std::collections::VecDeque;

use catalog::Batch;
use discovery::LinkSetMemory;
use futures::TryStreamExt;
use futures::stream::{FuturesUnordered, StreamExt};
use model::{DocumentState, PageState, ResourceUri, Subject};

use super::ask::{self, Waiting};
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// Pages that are taken from the catalog at a time.
const PAGES: usize = 16;
/// Maximum pages that are requested at the same time.
const AT_A_TIME: usize = 4;
/// Maximum problems of pages that are forgotten in one batch.
const BATCH: usize = 500;

impl Planner {
    /// Reads the queued pages of this run, and plans each as soon as it is read.
    pub(crate) async fn read_pages(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let has_of_records = std::mem::take(&mut self.reading.has_pages);
        if !has_of_records && ctx.sets.values().all(|set| set.pages.is_none()) {
            return Ok(());
        }
        let client = ctx.client.clone();
        let at_a_time = ctx.options.jobs_per_origin.get().min(AT_A_TIME);
        let memory = LinkSetMemory::default();
        let mut seen = self.discovery.page.take();
        let mut waiting = VecDeque::new();
        let (mut after, mut is_end) = (None, false);
        let mut asked = FuturesUnordered::new();
        loop {
            while asked.len() < at_a_time {
                if waiting.is_empty() && !is_end {
                    waiting = self.next_pages(ctx, &mut after).await?;
                    is_end = waiting.is_empty();
                }
                let Some(page) = waiting.pop_front() else { break };
                let seen = seen.take_if(|seen| seen.requested == page.uri.to_url());
                asked.push(ask::ask(client.clone(), page, seen, memory.clone()));
            }
            let next = tokio::select! {
                next = asked.next() => next,
                () = ctx.stop.cancelled() => return Err(HarvestError::Stopped),
            };
            let Some((page, came)) = next else { return Ok(()) };
            ctx.progress.show_document(page.uri.as_str());
            Box::pin(self.take_page(ctx, page, came)).await?;
        }
    }

    /// The next pages that wait in this run. Forgets the problems of pages that are listed no longer.
    async fn next_pages(
        &mut self,
        ctx: &mut RunContext,
        after: &mut Option<ResourceUri>,
    ) -> Result<VecDeque<Waiting>, HarvestError> {
        loop {
            let mut waiting = VecDeque::new();
            let mut batch = Batch::new();
            let mut scan = ctx.catalog().await?.scan_pages("", after.as_ref()).await?;
            while waiting.len() < PAGES
                && batch.len() < BATCH
                && let Some((uri, mut page)) = scan.try_next().await?
            {
                *after = Some(uri.clone());
                if !page.records.is_empty() {
                    if let Some(led) = self.still_led(ctx, &mut batch, &uri, &mut page).await? {
                        waiting.push_back(Waiting { uri, page, led });
                    }
                } else if page.run == ctx.run.id && page.is_waiting() {
                    waiting.push_back(Waiting { uri, page, led: Vec::new() });
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
            let is_end = batch.is_empty();
            ctx.commit(batch).await?;
            if is_end || !waiting.is_empty() {
                return Ok(waiting);
            }
        }
    }
}
