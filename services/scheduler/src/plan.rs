//! Planning: the documents of a run are read once, and what they ask for becomes pending records.

use std::collections::HashMap;

use catalog::Batch;
use jiff::Timestamp;
use model::{
    Action, DocumentRecord, DocumentState, Lane, PendingRecord, ProblemReason, ProblemRecord, ResourceRecord,
    ResourceUri, SetRecord, Subject, Validators,
};
use resourcesync::{BadEntry, Capability, Header, Item, Mode as ReadMode, Options, ReadError, Root, Summary};
use url::Url;
use web::WebError;

use crate::decide::{Decision, Known, decide};
use crate::entry::{Context, Planned, certain_instant};
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;
use crate::read::{self, DocumentError, DocumentStream, Opened, Part};

impl Harvest {
    /// Reads every document of the run. Where changes do not join on to what is synchronized, the lists are read too.
    pub(crate) async fn plan(&mut self) -> Result<(), HarvestError> {
        self.read_queued().await?;
        if self.close_gaps().await? {
            self.read_queued().await?;
        }
        Ok(())
    }

    /// Reads every queued document, in the order of time. A document that cannot be read costs its own entries only.
    async fn read_queued(&mut self) -> Result<(), HarvestError> {
        loop {
            let documents = queue::next_documents(&self.catalog, self.run.id).await?;
            if documents.is_empty() {
                return Ok(());
            }
            for (uri, record) in documents {
                self.show_document(&uri);
                self.plan_document(&uri, record).await?;
            }
        }
    }

    async fn plan_document(&mut self, uri: &str, record: DocumentRecord) -> Result<(), HarvestError> {
        let Ok(url) = Url::parse(uri) else {
            return self.fail_document(uri, record, ProblemReason::BadUri, "its URI is not absolute").await;
        };
        let mode = if self.options.strict { ReadMode::Strict } else { ReadMode::Tolerant };
        let options = Options { mode, ..Options::default() };
        let held = match record.state {
            DocumentState::Queued if self.may_trust_validators => record.validators.clone(),
            _ => Validators::default(),
        };
        match read::open(&self.client, &url, held, options).await {
            Err(error) => self.fail_document_web(uri, record, &error).await,
            Ok(Opened::NotModified) => self.document_unchanged(uri, record).await,
            Ok(Opened::Document(stream)) => self.read_document(uri, record, stream).await,
        }
    }

    /// Nothing in it has changed since it was read whole, so nothing is asked for that was not asked for then.
    async fn document_unchanged(&mut self, uri: &str, mut record: DocumentRecord) -> Result<(), HarvestError> {
        self.run.counters.requests += 1;
        if record.root == Some(Root::UrlSet) {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            self.run.counters.listed += record.entries;
            self.run.counters.unchanged += record.entries.saturating_sub(requeued);
        }
        self.run.counters.add_quirks(&record.quirks);
        let mut batch = Batch::new();
        if record.root == Some(Root::SitemapIndex) {
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
        batch.delete_problem(&Subject::Document(uri.to_owned()));
        self.commit(batch).await
    }

    async fn read_document(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
        mut stream: DocumentStream,
    ) -> Result<(), HarvestError> {
        self.run.counters.requests += u64::from(stream.requests);
        let version = stream.validators.clone();
        // After a crash, what was planned of this very version is not planned again.
        let mut skip = match &record.state {
            DocumentState::Reading { planned, version: before } if !version.is_empty() && *before == version => *planned,
            DocumentState::Reading { planned, .. } => {
                self.run.counters.listed = self.run.counters.listed.saturating_sub(*planned);
                0
            }
            _ => 0,
        };
        let mut planned = skip;
        let mut context = None;
        if skip == 0 {
            self.forget_entry_problems(uri).await?;
        }
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    if let Err(why) = expect_kind(&header, &record.capability) {
                        return self.fail_document(uri, record, ProblemReason::WrongKind, &why).await;
                    }
                    record.root = Some(header.root);
                    record.at = header.at.as_ref().and_then(certain_instant);
                    record.from = header.from.as_ref().and_then(certain_instant).or(record.from);
                    record.until = header.until.as_ref().and_then(certain_instant);
                    context = Some(Context::new(uri, &record.set, &record.capability, header.at));
                }
                Part::Items(mut items) => {
                    let known = usize::try_from(skip).unwrap_or(usize::MAX).min(items.len());
                    items.drain(..known);
                    skip -= known as u64;
                    planned += items.len() as u64;
                    let Some(context) = &context else { continue };
                    record.state = DocumentState::Reading { planned, version: version.clone() };
                    let mut batch = Batch::new();
                    if record.root == Some(Root::SitemapIndex) {
                        self.queue_children(&mut batch, uri, &record, items).await?;
                    } else {
                        let latest = self.plan_entries(&mut batch, context, items).await?;
                        record.latest_change = record.latest_change.max(latest);
                    }
                    batch.put_document(uri, &record);
                    self.commit(batch).await?;
                }
                Part::End(summary) => return self.document_done(uri, record, version, summary).await,
                Part::Broken(DocumentError::Web(error), _) => {
                    return self.fail_document_web(uri, record, &error).await;
                }
                Part::Broken(error, summary) => {
                    self.run.counters.add_quirks(&counts(&summary));
                    let reason = reason_of(&error);
                    return self.fail_document(uri, record, reason, &error.to_string()).await;
                }
            }
        }
        self.fail_document(uri, record, ProblemReason::Malformed, &DocumentError::Stopped.to_string()).await
    }

    async fn document_done(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
        version: Validators,
        summary: Summary,
    ) -> Result<(), HarvestError> {
        record.state = DocumentState::Done;
        record.entries = summary.entries;
        record.bad = summary.bad;
        // With an entry that could not be read, the document is asked for again next time: the problem must not vanish.
        record.validators = if summary.bad == 0 { version } else { Validators::default() };
        record.quirks = counts(&summary);
        self.run.counters.add_quirks(&record.quirks);
        let mut batch = Batch::new();
        batch.put_document(uri, &record);
        batch.delete_problem(&Subject::Document(uri.to_owned()));
        self.commit(batch).await
    }

    /// Entries of a list become pending records where something is to be done. Gives the latest change among them.
    async fn plan_entries(
        &mut self,
        batch: &mut Batch,
        context: &Context,
        items: Vec<Item>,
    ) -> Result<Option<Timestamp>, HarvestError> {
        let mut entries: Vec<Planned> = Vec::with_capacity(items.len());
        for item in items {
            let entry = match item {
                Item::Entry(entry) => *entry,
                Item::Bad(bad) => {
                    self.bad_entry(batch, &context.document, &bad);
                    continue;
                }
            };
            if !self.options.filter.takes(&entry.loc) {
                continue;
            }
            self.run.counters.listed += 1;
            let position = entry.position;
            match context.read(entry) {
                Ok(planned) => entries.push(planned),
                Err(error) => {
                    let at = format!("{}#{}:{}", context.document, position.line, position.column);
                    self.entry_problem(batch, at, ProblemReason::BadUri, &error.to_string());
                }
            }
        }
        let uris: Vec<ResourceUri> = entries.iter().map(|planned| planned.uri.clone()).collect();
        let records = self.catalog.resources_many(&uris).await?;
        let pending = self.catalog.pending_many(&uris).await?;
        // Several changes of one resource may stand in one batch: each sees what the one before it planned.
        let mut plans: HashMap<ResourceUri, Option<PendingRecord>> =
            uris.into_iter().zip(pending).filter(|(_, pending)| pending.is_some()).collect();
        let baseline_at = self.sets.get(&context.set).and_then(baseline_for_changes);
        let latest = entries.iter().filter_map(|planned| planned.listing.change_time).max();
        for (planned, record) in entries.into_iter().zip(&records) {
            let known = Known {
                record: record.as_ref(),
                pending: plans.get(&planned.uri).and_then(Option::as_ref),
                baseline_at,
            };
            let decision = decide(&planned.declaration, &planned.listing, planned.latest, known);
            self.apply(batch, planned, decision, record.as_ref(), &mut plans);
        }
        Ok(latest)
    }

    fn apply(
        &mut self,
        batch: &mut Batch,
        planned: Planned,
        decision: Decision,
        record: Option<&ResourceRecord>,
        plans: &mut HashMap<ResourceUri, Option<PendingRecord>>,
    ) {
        let Planned { uri, declaration, listing, .. } = planned;
        let action = match decision {
            Decision::Stale => {
                self.run.counters.unchanged += 1;
                return;
            }
            Decision::Unchanged => {
                self.run.counters.unchanged += 1;
                if let Some(Some(_)) = plans.insert(uri.clone(), None) {
                    batch.delete_pending(&uri);
                }
                if self.has_problems {
                    batch.delete_problem(&Subject::Resource(uri.as_str().to_owned()));
                }
                if let Some(record) = record.filter(|r| r.is_present() && !r.sets.contains(&listing.set)) {
                    let mut record = record.clone();
                    record.sets.push(listing.set);
                    batch.put_resource(&uri, &record);
                }
                return;
            }
            Decision::Delete => Action::Delete,
            Decision::Fetch => match Lane::of(&uri.to_url()) {
                Ok(lane) => Action::Fetch { lane },
                Err(error) => {
                    self.entry_problem(batch, uri.as_str().to_owned(), ProblemReason::BadUri, &error.to_string());
                    return;
                }
            },
        };
        let pending = PendingRecord {
            seq: self.next_seq(),
            action,
            declaration,
            listing,
            attempts: 0,
            next_attempt_at: None,
        };
        batch.put_pending(&uri, &pending);
        if plans.insert(uri, Some(pending)).flatten().is_none() {
            self.run.counters.planned += 1;
        }
    }

    /// The documents that an index names are queued, unless this very version of a closed one was read whole before.
    async fn queue_children(
        &mut self,
        batch: &mut Batch,
        index: &str,
        parent: &DocumentRecord,
        items: Vec<Item>,
    ) -> Result<(), HarvestError> {
        for item in items {
            let entry = match item {
                Item::Entry(entry) => *entry,
                Item::Bad(bad) => {
                    self.bad_entry(batch, index, &bad);
                    continue;
                }
            };
            let until = entry.metadata.until.as_ref().and_then(certain_instant);
            let before = self.catalog.document(&entry.loc).await?;
            if before.as_ref().is_some_and(|known| known.run == self.run.id || queue::is_settled_child(known, until)) {
                continue;
            }
            let from = entry.metadata.from.as_ref().and_then(certain_instant);
            let mut child = queue::queued(self.run.id, &parent.set, &parent.capability, before);
            child.parent = Some(index.to_owned());
            child.from = from.or(child.from);
            batch.put_document(&entry.loc, &child);
        }
        Ok(())
    }

    async fn fail_document_web(
        &mut self,
        uri: &str,
        record: DocumentRecord,
        error: &WebError,
    ) -> Result<(), HarvestError> {
        self.run.counters.requests += u64::from(error.requests());
        self.fail_document(uri, record, error.reason(), &error.to_string()).await
    }

    /// Gives a document up for this run. What was planned of it stays planned.
    async fn fail_document(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
        reason: ProblemReason,
        why: &str,
    ) -> Result<(), HarvestError> {
        tracing::warn!(document.uri = uri, reason = reason.as_str(), why, "document not read to its end");
        record.state = DocumentState::Failed;
        record.validators = Validators::default();
        let subject = Subject::Document(uri.to_owned());
        let before = self.catalog.problem(&subject).await?;
        let message = format!("the document was not read to its end: {why}. What was read of it is kept; run again to retry");
        let problem = self.problem(before, reason, message);
        self.run.counters.documents_failed += 1;
        let mut batch = Batch::new();
        batch.put_document(uri, &record);
        batch.put_problem(&subject, &problem);
        self.commit(batch).await
    }

    fn bad_entry(&mut self, batch: &mut Batch, document: &str, bad: &BadEntry) {
        let at = format!("{document}#{}:{}", bad.position.line, bad.position.column);
        let named = bad.loc.as_ref().map_or(String::new(), |loc| format!(" (of {loc})"));
        let message = format!("the entry{named} was left out: {}", bad.reason);
        self.entry_problem(batch, at, ProblemReason::Malformed, &message);
    }

    fn entry_problem(&mut self, batch: &mut Batch, at: String, reason: ProblemReason, message: &str) {
        let problem = self.problem(None, reason, message.to_owned());
        self.run.counters.failed += 1;
        self.has_problems = true;
        batch.put_problem(&Subject::Entry(at), &problem);
    }

    pub(crate) fn problem(&self, before: Option<ProblemRecord>, reason: ProblemReason, message: String) -> ProblemRecord {
        let now = self.clock.now();
        ProblemRecord {
            reason,
            message,
            first_seen: before.as_ref().map_or(now, |before| before.first_seen),
            last_seen: now,
            attempts: before.map_or(0, |before| before.attempts) + 1,
            retry: true,
            evidence: Default::default(),
            declaration: None,
            listing: None,
        }
    }

    /// Entry problems of a document that is read anew are settled by that reading.
    async fn forget_entry_problems(&mut self, uri: &str) -> Result<(), HarvestError> {
        if !self.has_problems {
            return Ok(());
        }
        let mut batch = Batch::new();
        let prefix = format!("{uri}#");
        for subject in queue::entry_problems(&self.catalog, &prefix).await? {
            batch.delete_problem(&subject);
        }
        self.commit(batch).await
    }
}

/// Changes that the baseline contains are not applied again; before there is a baseline, there are none such.
fn baseline_for_changes(set: &SetRecord) -> Option<Timestamp> {
    set.baseline_at.filter(|_| set.has_baseline)
}

/// A document must be what it is read as; one that does not say (a plain sitemap) is taken at the operator's word.
fn expect_kind(header: &Header, expected: &Capability) -> Result<(), String> {
    match &header.capability {
        None => Ok(()),
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(format!("it is a {found}, but was announced as a {expected}")),
    }
}

fn reason_of(error: &DocumentError) -> ProblemReason {
    match error {
        DocumentError::Read(ReadError::Truncated { .. }) => ProblemReason::Truncated,
        DocumentError::Read(ReadError::Html { .. } | ReadError::NotXml { .. } | ReadError::UnknownRoot { .. }) => ProblemReason::WrongKind,
        DocumentError::Web(error) => error.reason(),
        DocumentError::Read(_) | DocumentError::NothingSent | DocumentError::Stopped => ProblemReason::Malformed,
    }
}

fn counts(summary: &Summary) -> std::collections::BTreeMap<String, u64> {
    summary.quirks.iter().map(|(quirk, count)| (quirk.as_str().to_owned(), count)).collect()
}
