//! Planning: the documents of a run are read once, and what they ask for becomes pending records.

use std::collections::BTreeMap;

use catalog::Batch;
use model::{DocumentRecord, DocumentState, ProblemReason, Subject, Validators};
use resourcesync::{Capability, Datetime, Header, Mode as ReadMode, Quirk, Quirks, ReadError, Root, Summary};
use url::Url;

use crate::entry::{Context, Horizon};
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;
use crate::read::{self, DocumentError, DocumentStream, Opened, Part};

impl Harvest {
    /// Reads every document of the run. Where changes do not join on to what is synchronized, the lists are read too.
    pub(crate) async fn plan(&mut self) -> Result<(), HarvestError> {
        self.read_queued().await?;
        let gaps = self.gaps().await?;
        self.run.counters.gaps += gaps.len() as u64;
        if self.queue_lists(&gaps).await? {
            self.read_queued().await?;
        }
        self.record_gaps().await?;
        if self.queue_unread_lists().await? {
            self.read_queued().await?;
        }
        self.settle_absences().await
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
        let horizon = Horizon::at(self.clock.now());
        let held = match record.state {
            DocumentState::Queued if self.may_trust_validators => record.validators.clone(),
            _ => Validators::default(),
        };
        match read::open(&self.client, &url, held, horizon.options(mode)).await {
            Err(error) => self.fail_document_web(uri, record, &error).await,
            Ok(Opened::NotModified) => self.document_unchanged(uri, record).await,
            Ok(Opened::Document(stream)) => self.read_document(uri, record, stream, horizon).await,
        }
    }

    /// Nothing in it has changed since it was read whole, so nothing is asked for that was not asked for then.
    async fn document_unchanged(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
    ) -> Result<(), HarvestError> {
        self.run.counters.requests += 1;
        self.count_unmodified(uri, &record);
        self.unmodified.insert(uri.to_owned());
        let mut batch = Batch::new();
        if names_parts(&record) {
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

    /// What an unmodified document says is as it was.
    fn count_unmodified(&mut self, uri: &str, record: &DocumentRecord) {
        if !names_parts(record) {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            self.run.counters.listed += record.entries;
            self.run.counters.unchanged += record.entries.saturating_sub(requeued);
        }
        self.run.counters.add_quirks(&record.quirks);
    }

    /// It is read nevertheless, and counted then.
    pub(crate) fn uncount_unmodified(&mut self, uri: &str, record: &DocumentRecord) {
        let counters = &mut self.run.counters;
        if !names_parts(record) {
            let requeued = self.requeued.get(uri).copied().unwrap_or_default();
            counters.listed = counters.listed.saturating_sub(record.entries);
            counters.unchanged = counters.unchanged.saturating_sub(record.entries.saturating_sub(requeued));
        }
        for (name, times) in &record.quirks {
            let counted = counters.quirks.remove(name).unwrap_or_default();
            counters.quirks.extend((counted > *times).then(|| (name.clone(), counted - times)));
        }
    }

    async fn read_document(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
        mut stream: DocumentStream,
        horizon: Horizon,
    ) -> Result<(), HarvestError> {
        self.run.counters.requests += u64::from(stream.requests);
        let version = stream.validators.clone();
        // After a crash, what was planned of this very version is not planned again.
        let mut skip = match &record.state {
            DocumentState::Reading { planned, version: before }
                if !version.is_empty() && *before == version =>
            {
                *planned
            }
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
            self.read_whole.insert(uri.to_owned());
        }
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    if let Err(why) = expect_kind(&header, &record.capability) {
                        return self.fail_document(uri, record, ProblemReason::WrongKind, &why).await;
                    }
                    record.root = Some(header.root);
                    let certain =
                        |time: Option<Datetime>| time.and_then(|time| horizon.certain_instant(&time));
                    record.at = certain(header.at);
                    record.at_latest = header.at.and_then(|time| horizon.latest_instant(&time));
                    record.from = certain(header.from).or(record.from);
                    record.until = certain(header.until);
                    self.expect_names(&record);
                    context = Some(Context {
                        document: uri.to_owned(),
                        set: record.set.clone(),
                        changes: record.capability == Capability::ChangeList,
                        at: header.at,
                        completed: header.completed,
                        kind: header.capability,
                        horizon,
                    });
                }
                Part::Items(mut items) => {
                    let known = usize::try_from(skip).unwrap_or(usize::MAX).min(items.len());
                    items.drain(..known);
                    skip -= known as u64;
                    planned += items.len() as u64;
                    let Some(context) = &context else { continue };
                    record.state = DocumentState::Reading { planned, version: version.clone() };
                    let mut batch = Batch::new();
                    let is_index = record.root == Some(Root::SitemapIndex);
                    let (parts, items): (Vec<_>, Vec<_>) =
                        items.into_iter().partition(|item| is_index || context.is_part(item));
                    self.queue_children(&mut batch, uri, &record, parts).await?;
                    let latest = self.plan_entries(&mut batch, context, items).await?;
                    record.latest_change = record.latest_change.max(latest);
                    batch.put_document(uri, &record);
                    self.commit(batch).await?;
                }
                Part::End(summary) => return self.document_done(uri, record, version, summary).await,
                Part::Broken(DocumentError::Web(error), _) => {
                    return self.fail_document_web(uri, record, &error).await;
                }
                Part::Broken(error, summary) => {
                    self.run.counters.add_quirks(&names(&summary.quirks));
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
        record.doubtful = summary.bad > 0 || !summary.complete || summary.quirks.casts_doubt();
        // With an entry that could not be read, the document is asked for again next time: the problem must not vanish.
        record.validators = if summary.bad == 0 { version } else { Validators::default() };
        record.quirks = names(&summary.quirks);
        self.run.counters.add_quirks(&record.quirks);
        let mut batch = Batch::new();
        batch.put_document(uri, &record);
        batch.delete_problem(&Subject::Document(uri.to_owned()));
        self.commit(batch).await
    }
}

/// Whether its entries lead to further documents.
fn names_parts(record: &DocumentRecord) -> bool {
    record.root == Some(Root::SitemapIndex) || record.quirks.contains_key(Quirk::UrlsetAsIndex.as_str())
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
        DocumentError::Read(
            ReadError::Html { .. } | ReadError::NotXml { .. } | ReadError::UnknownRoot { .. },
        ) => ProblemReason::WrongKind,
        DocumentError::Web(error) => error.reason(),
        DocumentError::Read(_) | DocumentError::NothingSent | DocumentError::Stopped => {
            ProblemReason::Malformed
        }
    }
}

/// Quirks by their names.
pub(crate) fn names(quirks: &Quirks) -> BTreeMap<String, u64> {
    quirks.iter().map(|(quirk, count)| (quirk.as_str().to_owned(), count)).collect()
}
