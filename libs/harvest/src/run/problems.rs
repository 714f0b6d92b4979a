//! Problems of documents and entries: recorded once, kept until they are settled.

use std::collections::{BTreeMap, HashMap};

use catalog::{Batch, Catalog};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Disposition, ProblemReason, ProblemRecord, ResourceUri, Subject};
use resourcesync::BadEntry;

use crate::error::HarvestError;
use crate::run::RunContext;

/// Problems shown at the end of a run.
const SHOWN: usize = 5;
/// Problems with entries of one document whose start time is remembered. Beyond that, each counts as new.
const REMEMBERED: usize = 10_000;
/// Records per batch.
const BATCH: usize = 500;

/// What a run knows of the problems in its catalog.
#[derive(Debug, Default)]
pub(crate) struct ProblemLedger {
    /// Whether any problem record exists; without one, lookups are skipped.
    pub(crate) any: bool,
    /// Whether the operator ignores any problem.
    pub(crate) any_ignored: bool,
    /// Problems of documents that this process settled by reading the documents, in case they occur again.
    settled: HashMap<String, ProblemRecord>,
    /// Known problems with entries of the current document, by position.
    pub(crate) of_entries: HashMap<String, ProblemRecord>,
}

impl ProblemLedger {
    /// Looks whether problems exist, and whether any is ignored.
    pub(crate) async fn open(catalog: &Catalog) -> Result<Self, HarvestError> {
        let mut ledger = Self::default();
        let mut problems = catalog.scan_problems().await?;
        while !ledger.any_ignored
            && let Some((_, problem)) = problems.try_next().await?
        {
            ledger.any = true;
            ledger.any_ignored = problem.ignored.is_some();
        }
        Ok(ledger)
    }
}

impl RunContext {
    /// Writes a problem.
    pub(crate) fn put_problem(&mut self, batch: &mut Batch, subject: &Subject, problem: &ProblemRecord) {
        self.problems.any = true;
        batch.put_problem(subject, problem);
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
        let before = self.problems.of_entries.remove(&at);
        let problem = self.problem(before, reason, message.to_owned());
        self.run.counters.failed += 1;
        self.put_problem(batch, &Subject::Entry(at), &problem);
    }

    pub(crate) fn problem(
        &self,
        before: Option<ProblemRecord>,
        reason: ProblemReason,
        message: String,
    ) -> ProblemRecord {
        let now = self.clock.now();
        let ignored = before.as_ref().and_then(|before| before.still_ignored(reason, &message));
        ProblemRecord {
            reason,
            message,
            first_seen: before.as_ref().map_or(now, |before| before.first_seen),
            last_seen: now,
            attempts: before.map_or(0, |before| before.attempts) + 1,
            retry: true,
            next_attempt_at: None,
            ignored,
            evidence: Default::default(),
            declaration: None,
            listing: None,
            repair: false,
        }
    }

    /// The problem with each resource, if any, in the order of the arguments.
    pub(crate) async fn problems_of(
        &mut self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<Box<ProblemRecord>>>, HarvestError> {
        if !self.problems.any {
            return Ok(uris.iter().map(|_| None).collect());
        }
        let subjects: Vec<Subject> = uris.iter().map(subject).collect();
        let problems = self.catalog().await?.problems_many(&subjects).await?;
        Ok(problems.into_iter().map(|problem| problem.map(Box::new)).collect())
    }

    /// The problem with a document before this run read it, if any.
    pub(crate) async fn problem_before(
        &mut self,
        subject: &Subject,
    ) -> Result<Option<ProblemRecord>, HarvestError> {
        match self.problems.settled.remove(subject.uri()) {
            Some(before) => Ok(Some(before)),
            None => Ok(self.catalog().await?.problem(subject).await?),
        }
    }

    /// Settles the problem of a document that was read. Some may occur again for the same document in this run, and are
    /// then the same problem.
    pub(crate) async fn settle_document_problem(
        &mut self,
        batch: &mut Batch,
        uri: &str,
    ) -> Result<(), HarvestError> {
        let subject = Subject::Document(uri.to_owned());
        if self.problems.any
            && let Some(before) = self.catalog().await?.problem(&subject).await?
            && may_recur(before.reason)
        {
            self.problems.settled.insert(uri.to_owned(), before);
        }
        batch.delete_problem(&subject);
        Ok(())
    }

    /// Remembers the known problems with entries of a document that is about to be read. Those beyond the limit count
    /// as new. If the document is read from its `beginning`, these are removed: every remaining problem will occur
    /// again.
    pub(crate) async fn remember_entry_problems(
        &mut self,
        uri: &str,
        beginning: bool,
    ) -> Result<(), HarvestError> {
        self.problems.of_entries.clear();
        if !self.problems.any {
            return Ok(());
        }
        let mut batch = Batch::new();
        let mut problems = self.catalog().await?.scan_entry_problems(&format!("{uri}#")).await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            if self.problems.of_entries.len() < REMEMBERED {
                self.problems.of_entries.insert(subject.uri().to_owned(), problem);
            } else if beginning {
                batch.delete_problem(&subject);
            }
            if batch.len() >= BATCH {
                self.commit(std::mem::take(&mut batch)).await?;
            }
        }
        drop(problems);
        self.commit(batch).await
    }

    /// Removes the problems with entries of a document that is no longer used.
    pub(crate) async fn forget_entry_problems(&mut self, uri: &str) -> Result<(), HarvestError> {
        if !self.problems.any {
            return Ok(());
        }
        let mut batch = Batch::new();
        let mut problems = self.catalog().await?.scan_entry_problems(&format!("{uri}#")).await?;
        while let Some((subject, _)) = problems.try_next().await? {
            batch.delete_problem(&subject);
            if batch.len() >= BATCH {
                self.commit(std::mem::take(&mut batch)).await?;
            }
        }
        drop(problems);
        self.commit(batch).await
    }
}

/// Whether a problem of a document that was read is of what it says, or leaves out.
fn may_recur(reason: ProblemReason) -> bool {
    use ProblemReason::{Gap, Guard, NotListed, Uncompared};
    matches!(reason, Gap | Guard | NotListed | Uncompared)
}

/// Problems at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct OpenProblems {
    pub(crate) by_reason: BTreeMap<ProblemReason, u64>,
    pub(crate) ignored: u64,
    /// The first few open problems.
    pub(crate) first: Vec<(Subject, ProblemRecord)>,
}

impl OpenProblems {
    /// Reads the problems of a catalog.
    pub(crate) async fn of(catalog: &Catalog) -> Result<Self, HarvestError> {
        let mut counted = Self::default();
        let mut problems = catalog.scan_problems().await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            if problem.ignored.is_some() {
                counted.ignored += 1;
                continue;
            }
            *counted.by_reason.entry(problem.reason).or_default() += 1;
            if counted.first.len() < SHOWN {
                counted.first.push((subject, problem));
            }
        }
        Ok(counted)
    }
}

/// The subject of a resource's problem.
pub(crate) fn subject(uri: &ResourceUri) -> Subject {
    Subject::Resource(uri.as_str().to_owned())
}

/// End of the cooldown that a server requested.
pub(crate) fn asked_until(disposition: Disposition, now: Timestamp) -> Option<Timestamp> {
    match disposition {
        Disposition::Retry { after } => now.checked_add(after?).ok(),
        Disposition::Refuse => None,
    }
}
