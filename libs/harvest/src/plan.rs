//! Planning: reads the documents of a run once, and turns their entries into pending records.

use documents::Opened;
use planning::{Horizon, is_settled_part};
use std::collections::BTreeMap;

use catalog::Batch;
use model::{DocumentRecord, DocumentState, Evidence, Lane, ProblemReason, Validators};
use resourcesync::{Mode as ReadMode, Quirks};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::document::{beyond, unreadable};

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;

impl Harvest {
    /// Reads every document of the run, and the lists too if changes do not join the synchronized time. Returns
    /// whether Change Notifications alone were enough.
    pub(crate) async fn plan(&mut self) -> Result<bool, HarvestError> {
        if self.options.notified && !Box::pin(self.plan_notices()).await? {
            return Ok(true);
        }
        self.read_all().await?;
        let gaps = self.gaps().await?;
        self.run.counters.gaps += gaps.iter().map(|gap| gap.gaps.len() as u64).sum::<u64>();
        if self.queue_lists(&gaps).await? {
            self.read_all().await?;
        }
        self.record_gaps().await?;
        if self.queue_unread_lists().await? {
            self.read_queued().await?;
        }
        if self.judge_list_editions().await? {
            self.read_queued().await?;
        }
        self.settle_absences().await?;
        Ok(false)
    }

    /// Reads every queued document and its packages. If packages cannot be read, reads the lists with the same
    /// content.
    async fn read_all(&mut self) -> Result<(), HarvestError> {
        self.read_queued().await?;
        // Boxed: these futures, inlined into all others of a run, overflow the stack of a debug build's worker.
        Box::pin(self.choose_dumps()).await?;
        Box::pin(self.work_packages()).await?;
        self.read_queued().await
    }

    /// Reads every queued document, in chronological order. An unreadable document affects only its own entries.
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
            // The packages of a dump that were not all settled are planned again.
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
                let opened = documents::open(&self.client, &url, held, options).await;
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

    /// Starts to measure which delay the origin wants between two requests while a first list is read. The resources
    /// of a first list are requested next, mostly from the list's own origin. So the first of them need not wait for
    /// the measurement.
    fn look_ahead(&mut self, record: &DocumentRecord, url: &Url) {
        let has_baseline = self.sets.get(&record.set).is_some_and(|set| set.has_baseline);
        let Ok(lane) = Lane::of(url) else { return };
        if !has_baseline && self.spacing.is_none() {
            let client = self.client.clone();
            let asked = tokio::spawn(async move { client.space_between(&lane).await.1 });
            self.spacing = Some(AbortOnDropHandle::new(asked));
        }
    }

    /// Counts the requests of that measurement.
    pub(crate) async fn looked_ahead(&mut self) {
        let Some(asked) = self.spacing.take() else { return };
        tokio::select! {
            requests = asked => self.run.counters.requests += u64::from(requests.unwrap_or_default()),
            // Stopping a harvest must not wait for that.
            () = self.stop.cancelled() => {}
        }
    }

    /// Settles an unmodified document: it lists no more than when it was read whole.
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
            // The index is unmodified; the documents that it lists may have changed.
            for (child, mut known) in queue::children(&self.catalog, uri).await? {
                if !is_settled_part(&known, known.until) {
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

    /// Counts the content of an unmodified document from its record.
    fn count_unmodified(&mut self, uri: &str, record: &DocumentRecord) {
        if !record.leads_to_documents() {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            let listed = listed_in(record);
            self.run.counters.listed += listed;
            self.run.counters.unchanged += listed.saturating_sub(requeued);
        }
        self.run.counters.add_quirks(&record.quirks);
    }

    /// Reverts that count: the document is read after all, and counted then.
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

/// Number of resources in a document that was read whole, directly or in its packages.
fn listed_in(record: &DocumentRecord) -> u64 {
    record.entries.saturating_sub(record.packages) + record.unpacked.unwrap_or_default()
}

/// Quirks by name.
pub(crate) fn names(quirks: &Quirks) -> BTreeMap<String, u64> {
    quirks.iter().map(|(quirk, count)| (quirk.as_str().to_owned(), count)).collect()
}
