//! Starts a run from cached discovery, unless it expired or a document moved. So an idle run costs only the requests
//! for its Change Lists.

use catalog::Batch;
use jiff::SignedDuration;
use model::{
    DiscoveryRecord, DocumentRecord, Mode, OaiList, ProblemReason, SetId, SetRecord, Subject, Validators,
};
use oaipmh::Pasted;
use planning::{Horizon, oai, queued_document, strategy};
use resourcesync::Mode as ReadMode;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::reading::names;
use crate::run::RunContext;

impl Planner {
    /// Queues the documents of a new run.
    pub(crate) async fn begin(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        self.discovery.rescans = self.sets_again(ctx).await?;
        let now = ctx.clock.now();
        let due = ctx.sets.iter().filter(|(_, set)| oai::is_sweep_due(set, now)).map(|(id, _)| id.clone());
        self.discovery.rescans.extend(due);
        let known = ctx.catalog().await?.discovery().await?.filter(|known| known.entry == ctx.entry.as_str());
        let remembered = match known.as_ref().filter(|known| self.is_current(ctx, known)) {
            Some(known) => self.choose(ctx, &known.sets),
            None => None,
        };
        match remembered {
            Some(chosen) => {
                let mut batch = Batch::new();
                self.queue(ctx, &mut batch, chosen).await?;
                ctx.commit(batch).await?;
            }
            None => {
                self.look(ctx, known).await?;
            }
        }
        self.discovery.has_begun = true;
        self.requeue_problems(ctx).await
    }

    /// Whether the Source no longer offers an unavailable document. A run from cached discovery rediscovers once to
    /// find that out, and queues what the Source offers instead.
    ///
    /// # Errors
    /// When the Source does not answer, or offers nothing any more. A later run continues then.
    pub(crate) async fn is_offered_no_more(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: &DocumentRecord,
        reason: ProblemReason,
    ) -> Result<bool, HarvestError> {
        // The index was read just now, so its list of parts is current.
        if self.discovery.is_fresh || record.parent.is_some() || !may_have_moved(reason) {
            return Ok(false);
        }
        tracing::info!(
            document.uri = uri,
            reason = reason.as_str(),
            "looking again for what the Source offers"
        );
        let known = ctx.catalog().await?.discovery().await?;
        let sets = self.look(ctx, known).await?;
        // The run is in progress, and may make other requests first.
        self.discovery.prefetched = None;
        let is_offered = sets
            .iter()
            .filter_map(|id| ctx.sets.get(id))
            .any(|set| set.documents(&record.capability).any(|offered| offered == uri));
        Ok(!is_offered)
    }

    /// Forgets a document that the Source no longer offers, and its problems.
    pub(crate) async fn forget_document(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
    ) -> Result<(), HarvestError> {
        ctx.forget_entry_problems(uri).await?;
        let mut batch = Batch::new();
        batch.delete_document(uri);
        batch.delete_problem(&Subject::Document(uri.to_owned()));
        ctx.commit(batch).await
    }

    /// Whether the cached discovery is still usable.
    fn is_current(&self, ctx: &mut RunContext, known: &DiscoveryRecord) -> bool {
        let age = ctx.clock.now().duration_since(known.looked_up_at);
        let most = SignedDuration::try_from(ctx.options.rediscover_after).unwrap_or(SignedDuration::MAX);
        let is_asked = ctx.options.rediscover || ctx.options.mode == Some(Mode::Baseline);
        // A clock that was set back gives no age.
        !is_asked && are_wanted(ctx, &known.sets) && known.failures == 0 && !age.is_negative() && age < most
    }

    /// Runs discovery, and queues the documents that sync the Source. Returns the sets.
    async fn look(
        &mut self,
        ctx: &mut RunContext,
        known: Option<DiscoveryRecord>,
    ) -> Result<Vec<SetId>, HarvestError> {
        let looked_up_at = ctx.clock.now();
        let known = known.map(|known| known.documents).unwrap_or_default();
        let options = Horizon::at(looked_up_at).options(ReadMode::Tolerant);
        let (wanted, lists_pages) = (&ctx.options.oai, ctx.options.landing_pages);
        let search =
            discovery::discover_source(&ctx.client, &ctx.entry, &options, known, wanted, lists_pages);
        let (mut found, prefetched) = search.await?;
        self.discovery.prefetched = prefetched;
        self.discovery.page = found.page.take();
        self.discovery.is_fresh = true;
        ctx.run.counters.requests += found.requests;
        // A list is read again, and its quirks are counted then.
        for document in found.documents.iter().filter(|document| document.entries.is_some()) {
            ctx.run.counters.add_quirks(&names(&document.quirks));
        }
        if let Some(repository) = &found.oai {
            ctx.run.counters.add_quirks(&repository.quirks);
        }
        let mut sets = Vec::new();
        for (id, set) in &found.sets {
            // The state of the sets is kept; their capabilities are replaced.
            let known = ctx.sets.entry(id.clone()).or_default();
            known.capabilities.clone_from(&set.capabilities);
            known.doubtful = set.doubtful;
            known.left_out = false;
            // What did not answer may be the catalog that calls a sitemap one of landing pages.
            if set.pages.is_some() || found.failures.is_empty() {
                known.pages = set.pages;
            }
            keep_progress(known, set);
            sets.push(id.clone());
        }
        let left_out = leave_out(ctx, &sets);
        let chosen = self.choose(ctx, &sets).ok_or_else(|| HarvestError::NothingUsable {
            source_url: ctx.entry.to_string(),
            offers: strategy::offers(&found.sets),
        })?;
        let mut batch = Batch::new();
        self.queue(ctx, &mut batch, chosen).await?;
        self.record_undiscovered(ctx, &mut batch, &found).await?;
        batch.put_look(&discovery::discovery_report(&found, looked_up_at));
        batch.put_discovery(&DiscoveryRecord {
            entry: ctx.entry.to_string(),
            looked_up_at,
            sets: sets.clone(),
            failures: found.failures.len() as u64,
            documents: found.known,
        });
        ctx.commit(batch).await?;
        for uri in left_out {
            self.forget_document(ctx, &uri).await?;
        }
        Ok(sets)
    }

    fn choose(&self, ctx: &mut RunContext, sets: &[SetId]) -> Option<strategy::Strategy> {
        let sets = sets.iter().filter_map(|id| Some((id, ctx.sets.get(id)?)));
        strategy::choose(sets, ctx.options.mode, ctx.options.prefer, &ctx.selection, &self.discovery.rescans)
    }

    /// Queues documents that are not yet part of this run.
    async fn queue(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        chosen: strategy::Strategy,
    ) -> Result<(), HarvestError> {
        let is_any_stored = !ctx.is_catalog_empty();
        for (id, set) in &mut ctx.sets {
            set.partly_held = !set.has_baseline && is_any_stored;
            batch.put_set(id, set);
        }
        for (set, capability, uri) in chosen.documents {
            let before = ctx.catalog().await?.document(&uri).await?;
            if before.as_ref().is_some_and(|before| before.run == ctx.run.id) {
                continue;
            }
            let mut queued = queued_document(ctx.run.id, &set, &capability, before);
            if strategy::is_baseline(&capability) && self.is_uncompared(ctx, &set) {
                queued.validators = Validators::default();
            }
            batch.put_document(&uri, &queued);
        }
        if chosen.mode == Mode::Baseline {
            ctx.run.mode = Mode::Baseline;
        }
        Ok(())
    }
}

/// Leaves out the lists of a repository that were not found: the options alone choose them. Returns the documents of
/// those that were chosen before.
fn leave_out(ctx: &mut RunContext, found: &[SetId]) -> Vec<String> {
    let mut documents = Vec::new();
    for (_, known) in ctx.sets.iter_mut().filter(|(id, set)| set.oai.is_some() && !found.contains(id)) {
        if !known.left_out {
            documents.extend(known.capabilities.iter().map(|link| link.uri.clone()));
        }
        known.left_out = true;
    }
    documents
}

/// Whether these are the sets that the options choose.
fn are_wanted(ctx: &RunContext, sets: &[SetId]) -> bool {
    let mut known = sets.iter().filter_map(|id| ctx.sets.get(id));
    if ctx.options.landing_pages || known.clone().any(|set| set.pages.is_some()) {
        // Options may have made landing pages of the entries, or not.
        return ctx.options.oai.is_empty() && known.all(|set| ctx.selection.covers(set.selection));
    }
    let lists: Vec<&OaiList> = sets.iter().filter_map(|id| ctx.sets.get(id)?.oai.as_deref()).collect();
    if lists.is_empty() {
        return ctx.options.oai.is_empty();
    }
    let given = Pasted::read(&ctx.entry).ok().and_then(|pasted| pasted.set);
    oai::are_wanted(&lists, &ctx.options.oai, given.as_deref())
}

/// Takes over what a repository says of its list, and keeps how far that is harvested.
fn keep_progress(known: &mut SetRecord, found: &SetRecord) {
    let progress = known.oai.take().map(|list| list.progress).unwrap_or_default();
    known.oai = found.oai.clone().map(|mut list| {
        list.progress = progress;
        list
    });
}

/// Whether a failure may mean that a document moved, or that its server is gone.
fn may_have_moved(reason: ProblemReason) -> bool {
    use ProblemReason::{Connect, Dns, HttpClientError, Redirect, Timeout, Tls, WrongKind};
    matches!(reason, HttpClientError | WrongKind | Redirect | Dns | Connect | Tls | Timeout)
}
