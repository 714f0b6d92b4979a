//! Problems of documents and entries: said once, kept until they are settled.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use model::{DocumentRecord, DocumentState, ProblemReason, ProblemRecord, ResourceUri, Subject, Validators};
use resourcesync::BadEntry;
use web::WebError;

use crate::discover::Discovery;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;
use crate::settle::subject;

impl Harvest {
    /// What discovery could not read is a problem of this run; what an earlier one could not read is settled by this look.
    pub(crate) async fn record_undiscovered(
        &mut self,
        batch: &mut Batch,
        found: &Discovery,
    ) -> Result<(), HarvestError> {
        let mut before = HashMap::new();
        if self.has_problems {
            let mut problems = self.catalog.scan_problems().await?;
            while let Some((subject, problem)) = problems.try_next().await? {
                if problem.reason == ProblemReason::Discovery {
                    batch.delete_problem(&subject);
                    before.insert(subject, problem);
                }
            }
        }
        for unread in &found.failures {
            let subject = Subject::Document(unread.url.clone());
            let message =
                format!("what it leads to was not harvested: {}. The next run looks again", unread.why);
            let problem = self.problem(before.remove(&subject), ProblemReason::Discovery, message);
            self.has_problems = true;
            self.run.counters.documents_failed += 1;
            batch.put_problem(&subject, &problem);
        }
        Ok(())
    }

    pub(crate) async fn fail_document_web(
        &mut self,
        uri: &str,
        record: DocumentRecord,
        error: &WebError,
    ) -> Result<(), HarvestError> {
        self.run.counters.requests += u64::from(error.requests());
        self.fail_document(uri, record, error.reason(), &error.to_string()).await
    }

    /// Gives a document up for this run. What was planned of it stays planned.
    pub(crate) async fn fail_document(
        &mut self,
        uri: &str,
        mut record: DocumentRecord,
        reason: ProblemReason,
        why: &str,
    ) -> Result<(), HarvestError> {
        if self.is_offered_no_more(uri, &record, reason).await? {
            tracing::info!(document.uri = uri, why, "the Source offers the document no longer");
            return self.forget_document(uri).await;
        }
        tracing::warn!(document.uri = uri, reason = reason.as_str(), why, "document not read to its end");
        record.state = DocumentState::Failed;
        record.validators = Validators::default();
        let subject = Subject::Document(uri.to_owned());
        let before = self.catalog.problem(&subject).await?;
        let message = format!(
            "the document was not read to its end: {why}. What was read of it is kept; run again to retry"
        );
        let problem = self.problem(before, reason, message);
        self.run.counters.documents_failed += 1;
        let mut batch = Batch::new();
        batch.put_document(uri, &record);
        batch.put_problem(&subject, &problem);
        self.commit(batch).await
    }

    pub(crate) fn bad_entry(&mut self, batch: &mut Batch, document: &str, bad: &BadEntry) {
        let at = format!("{document}#{}:{}", bad.position.line, bad.position.column);
        let named = bad.loc.as_ref().map_or(String::new(), |loc| format!(" (of {loc})"));
        let message = format!("the entry{named} was left out: {}", bad.reason);
        self.entry_problem(batch, at, ProblemReason::Malformed, &message);
    }

    pub(crate) fn entry_problem(
        &mut self,
        batch: &mut Batch,
        at: String,
        reason: ProblemReason,
        message: &str,
    ) {
        let problem = self.problem(None, reason, message.to_owned());
        self.run.counters.failed += 1;
        self.has_problems = true;
        batch.put_problem(&Subject::Entry(at), &problem);
    }

    pub(crate) fn problem(
        &self,
        before: Option<ProblemRecord>,
        reason: ProblemReason,
        message: String,
    ) -> ProblemRecord {
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
            mend: false,
        }
    }

    /// The problem with each resource, if there is one, in the order asked.
    pub(crate) async fn problems_of(
        &self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<ProblemRecord>>, HarvestError> {
        if !self.has_problems {
            return Ok(uris.iter().map(|_| None).collect());
        }
        let subjects: Vec<Subject> = uris.iter().map(subject).collect();
        Ok(self.catalog.problems_many(&subjects).await?)
    }

    /// Entry problems of a document that is read anew are settled by that reading.
    pub(crate) async fn forget_entry_problems(&mut self, uri: &str) -> Result<(), HarvestError> {
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
