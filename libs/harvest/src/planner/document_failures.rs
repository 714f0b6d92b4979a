//! Documents that discovery or planning could not read: they become problems, and a later run reads them again.

use std::collections::HashMap;

use catalog::Batch;
use discovery::Discovery;
use futures::TryStreamExt;
use model::{DocumentRecord, DocumentState, Failure, ProblemReason, Subject, Validators};
use web::WebError;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;
use crate::run::problems::asked_until;

impl Planner {
    /// Records as problems what this discovery could not read, and settles those of earlier discoveries.
    pub(crate) async fn record_undiscovered(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        found: &Discovery,
    ) -> Result<(), HarvestError> {
        let mut before = HashMap::new();
        if ctx.problems.any {
            let mut problems = ctx.catalog().await?.scan_problems().await?;
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
            let problem = ctx.problem(before.remove(&subject), ProblemReason::Discovery, message);
            ctx.run.counters.documents_failed += 1;
            ctx.put_problem(batch, &subject, &problem);
        }
        Ok(())
    }

    pub(crate) async fn fail_document_web(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: DocumentRecord,
        error: &WebError,
    ) -> Result<(), HarvestError> {
        ctx.run.counters.requests += u64::from(error.requests());
        self.fail_document(ctx, uri, record, error.to_failure()).await
    }

    /// Gives a document up for this run. Its planned records stay planned.
    pub(crate) async fn fail_document(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        mut record: DocumentRecord,
        failure: Failure,
    ) -> Result<(), HarvestError> {
        let Failure { reason, message: why, disposition, evidence } = failure;
        if self.is_offered_no_more(ctx, uri, &record, reason).await? {
            tracing::info!(document.uri = uri, why, "the Source offers the document no longer");
            return self.forget_document(ctx, uri).await;
        }
        tracing::warn!(document.uri = uri, reason = reason.as_str(), why, "document not read to its end");
        record.state = DocumentState::Failed;
        ctx.progress.count_document(&record, |documents| documents.failed += 1);
        (record.validators, record.digest) = (Validators::default(), None);
        let subject = Subject::Document(uri.to_owned());
        let before = ctx.catalog().await?.problem(&subject).await?;
        let message = format!(
            "the document was not read to its end: {why}. What was read of it is kept; run again to retry"
        );
        let mut problem = ctx.problem(before, reason, message);
        problem.evidence = evidence;
        problem.next_attempt_at = asked_until(disposition, problem.last_seen);
        ctx.run.counters.documents_failed += 1;
        let mut batch = Batch::new();
        batch.put_document(uri, &record);
        ctx.put_problem(&mut batch, &subject, &problem);
        ctx.commit(batch).await
    }
}
