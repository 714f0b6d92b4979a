//! The end of a list: read, or left for a later run.

use catalog::Batch;
use model::{
    DocumentRecord, DocumentState, Failure, OaiGap, OaiReadingKind, ProblemReason, Subject, Validators,
    counted,
};
use planning::oai::{List, next_from};

use crate::error::HarvestError;
use crate::oai::reading::Reading;
use crate::planner::Planner;
use crate::run::RunContext;

/// Gaps that a message names.
const SHOWN: usize = 3;

/// Records that a list was read, and which of its windows were not.
pub(super) async fn end(
    ctx: &mut RunContext,
    planner: &mut Planner,
    mut reading: Reading,
    mut record: DocumentRecord,
) -> Result<(), HarvestError> {
    let from = next_from(&reading.list.progress);
    reading.count_signs(ctx);
    let span = reading.span(ctx);
    let mut batch = Batch::new();
    let Some(done) = List::of(&mut reading.list.progress, span).end() else {
        batch.delete_document(&reading.uri);
        return ctx.commit(batch).await;
    };
    record.state = DocumentState::Done;
    record.validators = Validators::default();
    record.selection = Some(ctx.selection.id());
    (record.entries, record.bad, record.doubtful) = (done.records, done.bad, done.doubtful);
    record.quirks.clone_from(&reading.quirks);
    match reading.kind {
        OaiReadingKind::Records => (record.at, record.at_latest) = (done.started, done.started),
        // Which records changed is not known from it.
        OaiReadingKind::Identifiers => (record.at, record.at_latest) = (done.started, None),
        OaiReadingKind::Changes => {
            record.from = from;
            // What an old answer says nothing of is still to be told.
            if !done.old {
                (record.until, record.until_latest) = (done.started, done.started);
            }
        }
    }
    ctx.run.counters.add_quirks(&record.quirks);
    ctx.progress.count_document(&record, |documents| documents.read += 1);
    ctx.settle_document_problem(&mut batch, &reading.uri).await?;
    if done.doubtful {
        planner.reconciler.ignore_absences(&reading.set);
    }
    for (at, _) in std::mem::take(&mut ctx.problems.of_entries) {
        batch.delete_problem(&Subject::Entry(at));
    }
    tell_gaps(ctx, &mut batch, &reading).await?;
    batch.put_document(&reading.uri, &record);
    reading.put(ctx, &mut batch);
    ctx.commit(batch).await
}

/// Leaves the rest of a list to a later run. What is read of it stays.
pub(super) async fn hold(
    ctx: &mut RunContext,
    planner: &mut Planner,
    reading: Reading,
    record: DocumentRecord,
    failure: Failure,
) -> Result<(), HarvestError> {
    planner.reconciler.ignore_absences(&reading.set);
    ctx.run.counters.add_quirks(&reading.quirks);
    let mut batch = Batch::new();
    reading.put(ctx, &mut batch);
    ctx.commit(batch).await?;
    planner.fail_document(ctx, &reading.uri, record, failure).await
}

/// Makes the unread windows of a list one problem, which stays until all of them are read.
async fn tell_gaps(ctx: &mut RunContext, batch: &mut Batch, reading: &Reading) -> Result<(), HarvestError> {
    let unread = &reading.list.progress.unread;
    let subject = Subject::Document(format!("{}#changes", reading.set));
    if unread.is_empty() {
        batch.delete_problem(&subject);
        return Ok(());
    }
    if reading.kind != OaiReadingKind::Identifiers {
        ctx.run.counters.gaps += unread.len() as u64;
    }
    let before = ctx.problem_before(&subject).await?;
    let problem = ctx.problem(before, ProblemReason::Gap, told(unread));
    ctx.put_problem(batch, &subject, &problem);
    Ok(())
}

/// What is not known, and what follows.
fn told(unread: &[OaiGap]) -> String {
    let mut text = "the records that changed ".to_owned();
    for (n, gap) in unread.iter().take(SHOWN).enumerate() {
        let and = if n == 0 { "" } else { ", and " };
        let from = gap.from.map_or("the beginning".to_owned(), |from| from.to_string());
        let until = gap.until.map_or("now".to_owned(), |until| until.to_string());
        text.push_str(&format!("{and}from {from} until {until} ({})", gap.why));
    }
    if let more @ 1.. = unread.len().saturating_sub(SHOWN) {
        text.push_str(&format!(", and in {}", counted(more as u64, "more window", "more windows")));
    }
    text.push_str(" could not be read. Each run tries again");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_names_its_times_and_why() {
        let at = |text: &str| Some(text.parse().unwrap());
        let since = "2026-01-01T00:00:00Z".parse().unwrap();
        let why = "status 500".to_owned();
        let until = at("2026-01-02T00:00:00Z");
        let gap = |from| OaiGap { from, until, since, why: why.clone(), short: None };
        let text = told(&[gap(None)]);
        assert!(text.contains("from the beginning until 2026-01-02T00:00:00Z (status 500)"), "{text}");
        let text = told(&[gap(None), gap(at("2026-01-01T00:00:00Z")), gap(None), gap(None)]);
        assert!(text.contains("in 1 more window"), "{text}");
    }
}
