//! Planning: the documents of a run are read once, and what they ask for becomes pending records.

use std::collections::BTreeMap;

use catalog::Batch;
use model::{DocumentRecord, DocumentState, Evidence, Lane, ProblemReason, Validators};
use resourcesync::{Mode as ReadMode, Quirks};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::document::{beyond, unreadable};
use crate::entry::Horizon;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;
use crate::read::{self, Opened};

impl Harvest {
    /// Reads every document of the run. Where changes do not join on to what is synchronized, the lists are read too. Returns whether notices alone
    /// told all of it.
    pub(crate) async fn plan(&mut self) -> Result<bool, HarvestError> {
        if self.options.notified && !Box::pin(self.plan_notices()).await? {
            return Ok(true);
        }
        self.read_all().await?;
        let gaps = self.gaps().await?;
        self.run.counters.gaps += gaps.iter().map(|gap| gap.holes.len() as u64).sum::<u64>();
        if self.queue_lists(&gaps).await? {
            self.read_all().await?;
        }
        self.record_gaps().await?;
        if self.queue_unread_lists().await? {
            self.read_queued().await?;
        }
        self.judge_list_editions().await?;
        self.settle_absences().await?;
        Ok(false)
    }

    /// Reads every queued document and the packages that they name; where packages cannot be read, the lists that say the same.
    async fn read_all(&mut self) -> Result<(), HarvestError> {
        self.read_queued().await?;
        // Boxed: in one piece with all that a run may do, these futures overflow the stack of a debug build's worker.
        Box::pin(self.choose_dumps()).await?;
        Box::pin(self.work_packages()).await?;
        self.read_queued().await
    }

    /// Reads every queued document, in the order of time. A document that cannot be read costs its own entries only.
    pub(crate) async fn read_queued(&mut self) -> Result<(), HarvestError> {
        loop {
            let spool = &self.spool;
            let documents = queue::next_documents(&self.catalog, self.run.id, |uri| spool.holds(uri)).await?;
            if documents.is_empty() {
                self.begun = None;
                let is_last = !self.spool.is_asking();
                Box::pin(self.lay()).await?;
                if is_last {
                    return Ok(());
                }
            }
            for (uri, record) in documents {
                self.show_document(&uri);
                Box::pin(self.plan_document(&uri, record)).await?;
            }
        }
    }

    async fn plan_document(&mut self, uri: &str, record: DocumentRecord) -> Result<(), HarvestError> {
        let begun = self.begun.take();
        let Ok(url) = Url::parse(uri) else {
            let failure =
                unreadable(ProblemReason::BadUri, "its URI is not absolute".to_owned(), Evidence::default());
            return self.fail_document(uri, record, failure).await;
        };
        if let Some(met) = self.spent.begin_document(&self.options.limits) {
            return self.fail_document(uri, record, beyond(met, Evidence::default())).await;
        }
        let mode = if self.options.strict { ReadMode::Strict } else { ReadMode::Tolerant };
        let horizon = Horizon::at(self.clock.now());
        let held = match record.state {
            // The packages of a dump that were not all settled are planned anew.
            DocumentState::Queued
                if self.may_trust_validators && (record.packages == 0 || record.unpacked.is_some()) =>
            {
                record.validators.clone()
            }
            _ => Validators::default(),
        };
        let options = self.spent.options(&self.options.limits, horizon.options(mode));
        let opened = match begun.filter(|begun| begun.answers(&url, &held)) {
            Some(begun) => {
                self.waits.add(begun.waited);
                Ok(Opened::Document(begun.read(options)))
            }
            None => {
                let asked_at = Instant::now();
                let opened = read::open(&self.client, &url, held, options).await;
                self.waits.add(asked_at.elapsed());
                opened
            }
        };
        match opened {
            Err(error) => self.fail_document_web(uri, record, &error).await,
            Ok(Opened::NotModified { requests }) => {
                self.run.counters.requests += u64::from(requests);
                self.document_unchanged(uri, record).await
            }
            Ok(Opened::Document(stream)) => {
                self.look_ahead(&record, &stream.url);
                self.read_document(uri, record, stream, horizon).await
            }
        }
    }

    /// What a first list names is asked for next, mostly of the list's own origin: what that one asks for between two requests is found out while the
    /// list is read, and not when the first resource waits for it.
    fn look_ahead(&mut self, record: &DocumentRecord, url: &Url) {
        let has_baseline = self.sets.get(&record.set).is_some_and(|set| set.has_baseline);
        let Ok(lane) = Lane::of(url) else { return };
        if !has_baseline && self.spacing.is_none() {
            let client = self.client.clone();
            let asked = tokio::spawn(async move { client.space_between(&lane).await.1 });
            self.spacing = Some(AbortOnDropHandle::new(asked));
        }
    }

    /// Counts the requests that were made to find out what an origin asks for.
    pub(crate) async fn looked_ahead(&mut self) {
        let Some(asked) = self.spacing.take() else { return };
        tokio::select! {
            requests = asked => self.run.counters.requests += u64::from(requests.unwrap_or_default()),
            // Nobody who stops a harvest waits for that.
            () = self.stop.cancelled() => {}
        }
    }

    /// Nothing in it has changed since it was read whole, so nothing is asked for that was not asked for then.
    async fn document_unchanged(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
    ) -> Result<(), HarvestError> {
        self.count_unmodified(uri, &record);
        self.asked_for(&record, |documents| documents.unmodified += 1);
        self.unmodified.insert(uri.to_owned());
        let mut batch = Batch::new();
        if record.leads_to_documents() {
            // The index is the same; the documents it names may have changed all the same.
            for (child, mut known) in queue::children(&self.catalog, uri).await? {
                if !queue::is_settled_child(&known, known.until) {
                    known.state = DocumentState::Queued;
                    known.run = self.run.id;
                    batch.put_document(&child, &known);
                }
            }
        }
        record.state = DocumentState::Done;
        batch.put_document(uri, &record);
        self.settle_document_problem(&mut batch, uri).await?;
        self.commit(batch).await
    }

    /// What an unmodified document says is as it was.
    fn count_unmodified(&mut self, uri: &str, record: &DocumentRecord) {
        if !record.leads_to_documents() {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            let listed = listed_in(record);
            self.run.counters.listed += listed;
            self.run.counters.unchanged += listed.saturating_sub(requeued);
        }
        self.run.counters.add_quirks(&record.quirks);
    }

    /// It is read nevertheless, and counted then.
    pub(crate) fn uncount_unmodified(&mut self, uri: &str, record: &DocumentRecord) {
        let counters = &mut self.run.counters;
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

/// Resources that a document that was read whole tells of, by itself or in the packages that it names.
fn listed_in(record: &DocumentRecord) -> u64 {
    record.entries.saturating_sub(record.packages) + record.unpacked.unwrap_or_default()
}

/// Quirks by their names.
pub(crate) fn names(quirks: &Quirks) -> BTreeMap<String, u64> {
    quirks.iter().map(|(quirk, count)| (quirk.as_str().to_owned(), count)).collect()
}
