//! Dead letters: a message that no service could process becomes problems, its own and those of its resources.

use std::sync::Arc;

use bus::{DeadLetter, DeadPayload, Delivery, MessageId};
use catalog::Batch;
use futures::TryStreamExt;
use model::{
    Action, DeadLetterSummary, Disposition, Evidence, Failure, KeptPayload, ProblemReason, ProblemRecord,
    Subject,
};

use crate::dispatcher::Dispatcher;
use crate::error::HarvestError;
use crate::run::RunContext;
use crate::run::problems::subject;
use crate::settler::failures;

/// Bytes of a payload that are kept in the catalog: enough to find the fault, even for thousands of dead letters.
const KEPT: usize = 16 * 1024;
/// Bytes of a reason that are kept with each resource.
const WHY: usize = 500;
/// Bytes of a message's name. Names of the fleet are much shorter; a foreign name must still fit a key.
const NAME: usize = 200;

impl Dispatcher {
    /// Settles dead letters. They are acknowledged only when their problems are durable. A redelivery after a crash
    /// has the same result.
    pub(crate) async fn settle_dead_letters(
        &mut self,
        ctx: &mut RunContext,
        deliveries: Vec<Delivery>,
    ) -> Result<(), HarvestError> {
        for delivery in deliveries {
            self.settle_letter(ctx, &delivery).await?;
        }
        Ok(())
    }

    async fn settle_letter(&mut self, ctx: &mut RunContext, delivery: &Delivery) -> Result<(), HarvestError> {
        let letter = read(delivery);
        let job = letter.id.job();
        let uris = job.map_or_else(Vec::new, |job| self.window.resources_of(job).to_vec());
        let pending = ctx.plans_of(&uris).await?;
        let mut batch = Batch::new();
        let mut given_up = 0;
        for (uri, pending) in uris.into_iter().zip(pending) {
            // An earlier delivery may have settled some of them meanwhile.
            let Some(pending) = pending.filter(|pending| matches!(pending.action, Action::Fetch { .. }))
            else {
                continue;
            };
            let before = ctx.catalog().await?.problem(&subject(&uri)).await?;
            let message = format!(
                "the job with {uri} became a dead letter after {}: {}. The next run retries the resource. \
                 `thresher explain {}` shows the message",
                deliveries(letter.attempts),
                cut(&letter.why, WHY),
                name_of(&letter.id),
            );
            let failure = Failure {
                reason: ProblemReason::Poison,
                message,
                disposition: Disposition::Retry { after: None },
                evidence: Evidence::default(),
            };
            let attempts = pending.attempts + 1;
            failures::record_problem(ctx, &mut batch, &uri, failure, pending, attempts, before);
            given_up += 1;
        }
        record_letter(ctx, &mut batch, letter, given_up).await?;
        ctx.commit(batch).await?;
        delivery.ack().await?;
        if let Some(job) = job {
            // Presumably no service tried any of its resources, so it says nothing about its origin.
            self.window.job_done(job, 0, 0);
        }
        Ok(())
    }
}

pub(crate) async fn record_letter(
    ctx: &mut RunContext,
    batch: &mut Batch,
    letter: DeadLetter,
    given_up: usize,
) -> Result<(), HarvestError> {
    let subject = Subject::Message(name_of(&letter.id).to_owned());
    let follows = match given_up {
        0 => "No resource is pending because of it: all are settled, or were sent again".to_owned(),
        1 => "One resource became a problem; the next run retries it".to_owned(),
        more => format!("{more} resources became problems; the next run retries them"),
    };
    let message = format!(
        "a message in {} became a dead letter after {}: {}. {follows}. If it returns, see its payload",
        letter.subject,
        deliveries(letter.attempts),
        cut(&letter.why, WHY)
    );
    tracing::warn!(message.id = %letter.id, resources = given_up, why = letter.why, "a message became a dead letter");
    let before = ctx.catalog().await?.problem(&subject).await?;
    let now = ctx.clock.now();
    let payload = match letter.payload {
        DeadPayload::Text(text) => KeptPayload::Text(text),
        DeadPayload::Base64(text) => KeptPayload::Base64(text),
    };
    let kept = DeadLetterSummary {
        run: ctx.run.id,
        queue: letter.subject,
        why: letter.why,
        attempts: letter.attempts,
        length: letter.length as u64,
        payload: payload.cut_to(KEPT),
    };
    let problem = ProblemRecord {
        reason: ProblemReason::Poison,
        message,
        first_seen: before.map_or(now, |before| before.first_seen),
        last_seen: now,
        attempts: kept.attempts,
        // The message is not retried; its resources are.
        retry: false,
        next_attempt_at: None,
        ignored: None,
        evidence: Evidence { given_up: Some(Box::new(kept)), ..Evidence::default() },
        declaration: None,
        listing: None,
        repair: false,
    };
    ctx.put_problem(batch, &subject, &problem);
    Ok(())
}

/// At the end of a run: settles messages that only earlier runs met. The resources that became problems with them
/// have problems of their own.
pub(crate) async fn forget_letters(ctx: &mut RunContext, batch: &mut Batch) -> Result<(), HarvestError> {
    if !ctx.problems.any {
        return Ok(());
    }
    let mut messages = ctx.catalog().await?.scan_message_problems().await?;
    while let Some((subject, problem)) = messages.try_next().await? {
        if problem.evidence.given_up.is_none_or(|kept| kept.run != ctx.run.id) {
            batch.delete_problem(&subject);
        }
    }
    Ok(())
}

/// The dead letter in a delivery. An unreadable one counts as the message that was given up.
pub(crate) fn read(delivery: &Delivery) -> DeadLetter {
    let read = delivery.payload.read().map(Arc::unwrap_or_clone);
    read.unwrap_or_else(|error| DeadLetter::new(delivery, format!("this is no dead letter: {error}")))
}

fn name_of(id: &MessageId) -> &str {
    cut(id.as_str(), NAME)
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn deliveries(attempts: u32) -> String {
    if attempts == 1 { "one delivery".to_owned() } else { format!("{attempts} deliveries") }
}
