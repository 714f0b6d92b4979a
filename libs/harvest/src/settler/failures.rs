//! Handles failures: retry within this run, or record a problem that the next run retries.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use model::{
    Action, ChangeEvent, Disposition, Evidence, Failure, Origin, PendingRecord, ProblemReason, ProblemRecord,
    ResourceUri,
};
use planning::RetryDecision;
use resourcesync::Change;
use web::GetRequest;

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::run::problems::{asked_until, subject};
use crate::settler::Settler;
use crate::settler::outcomes::{FollowUp, PriorRecords, provenance_of};

/// Pending records that are given up per batch.
pub(crate) const BATCH: usize = 500;

/// Why an origin is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Down {
    /// It did not answer many requests in a row.
    Silent,
    /// It requested a longer cooldown than a run waits for.
    Resting {
        /// End of the cooldown.
        until: Timestamp,
    },
}

impl Settler {
    /// Settles a failure: another attempt in this run, or a problem.
    pub(crate) fn settle_failed(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        failure: Failure,
        before: PriorRecords,
        follow_up: &mut FollowUp,
    ) {
        let now = ctx.clock.now();
        let PriorRecords { pending, record, problem, versions } = before;
        let pending = *pending;
        // A deletion that the operator has undone stays undone.
        let is_undone = record.is_some_and(|record| record.is_present() && record.listing == pending.listing);
        if pending.listing.change == Some(Change::Deleted)
            && !is_undone
            && matches!(failure.evidence.status, Some(404 | 410))
        {
            // The Source lists its deletion, and the server says that it is gone: the deletion is now certain.
            let seq = ctx.next_seq();
            follow_up.any = true;
            let certain = PendingRecord { seq, action: Action::Delete, next_attempt_at: None, ..pending };
            return batch.put_pending(uri, &certain);
        }
        if failure.reason == ProblemReason::Challenged
            && let (Action::Fetch { origin }, Some(until)) =
                (&pending.action, asked_until(failure.disposition, now))
        {
            // Other pending records of this origin would fail the same way, and the wait is long. This run ends
            // without them.
            follow_up.resting.push((origin.clone(), until));
            self.challenged.insert(origin.clone());
        }
        if pending.at_mirror().is_some()
            && let RetryDecision::Patience { .. } = ctx.options.retries.after(&failure, 1)
            && let (Action::Fetch { origin }, Some(until)) =
                (&pending.action, asked_until(failure.disposition, now))
        {
            follow_up.resting.push((origin.clone(), until));
        }
        let Some((pending, failure)) = self.after_mirror(ctx, batch, uri, failure, pending, follow_up) else {
            return;
        };
        let mut pending = pending;
        let attempts = pending.attempts + 1;
        let next = ctx.options.retries.after(&failure, attempts);
        if !matches!(next, RetryDecision::Again { .. })
            && let Some(elsewhere) = self.begin_mirror(ctx, uri, &pending, &failure)
        {
            if let (RetryDecision::Patience { .. }, Action::Fetch { origin }, Some(until)) =
                (next, &pending.action, asked_until(failure.disposition, now))
            {
                follow_up.resting.push((origin.clone(), until));
            }
            follow_up.any = true;
            return batch.put_pending(uri, &elsewhere);
        }
        if let Some(elsewhere) = self.begin_memento(ctx, uri, &pending, &failure, versions.as_ref()) {
            follow_up.any = true;
            return batch.put_pending(uri, &elsewhere);
        }
        let due = next.wait().and_then(|wait| now.checked_add(SignedDuration::try_from(wait).ok()?).ok());
        match next {
            RetryDecision::Again { .. } => {
                follow_up.any = true;
                follow_up.due = earliest(follow_up.due, due);
                pending.account.tried(&failure, now);
                batch.put_pending(uri, &PendingRecord { attempts, next_attempt_at: due, ..pending });
            }
            RetryDecision::Patience { .. } => {
                follow_up.any = true;
                if let (Action::Fetch { origin }, Some(until)) = (&pending.action, due) {
                    follow_up.resting.push((origin.clone(), until));
                }
                batch.put_pending(uri, &PendingRecord { attempts, next_attempt_at: due, ..pending });
            }
            RetryDecision::Problem => {
                record_problem(ctx, batch, uri, failure, pending, attempts, problem.map(|problem| *problem))
            }
        }
    }

    /// Decides about the origins that are skipped. If the Source's own origin is down, the run waits, with all its
    /// work pending, once mirrors have given what they have. Another origin must not hold the run up: its pending
    /// records become problems, which the next run retries. Returns whether the run goes on with mirrors, while
    /// skipped origins rest.
    pub(crate) async fn leave(
        &mut self,
        ctx: &mut RunContext,
        down: &HashMap<Origin, Down>,
    ) -> Result<bool, HarvestError> {
        if self.divert(ctx, down).await? {
            return Ok(true);
        }
        let own = Origin::of(&ctx.entry).ok().and_then(|own| down.get_key_value(&own));
        if own.is_some() && has_work_at_mirrors(ctx, down).await? {
            return Ok(true);
        }
        match own {
            Some((origin, Down::Resting { until })) if !self.challenged.contains(origin) => {
                let (origin, until) = (origin.clone(), *until);
                match ctx.catalog().await?.count_pending().await? {
                    // Mirrors gave all that the origin did not.
                    0 => Ok(false),
                    pending => Err(HarvestError::Patience { origin, until, pending }),
                }
            }
            Some((origin, Down::Silent)) if !ctx.entry_answers().await => {
                let origin = origin.clone();
                let pending = ctx.catalog().await?.count_pending().await?;
                Err(HarvestError::Unreachable { origin, pending })
            }
            _ => self.give_up(ctx, down).await.map(|()| false),
        }
    }

    /// Records all pending records of these origins as problems, in one pass whatever their number.
    async fn give_up(
        &mut self,
        ctx: &mut RunContext,
        down: &HashMap<Origin, Down>,
    ) -> Result<(), HarvestError> {
        if down.is_empty() {
            return Ok(());
        }
        let mut given_up = Vec::with_capacity(BATCH);
        let mut pending = ctx.catalog().await?.scan_pending(None).await?;
        loop {
            let next = pending.try_next().await?;
            let ended = next.is_none();
            given_up.extend(next.and_then(|(uri, record)| {
                let Action::Fetch { origin } = &record.action else { return None };
                let (origin, why) = down.get_key_value(origin)?;
                Some((uri, record, origin, *why))
            }));
            if given_up.len() < BATCH && !ended {
                continue;
            }
            let mut batch = Batch::new();
            for (uri, record, origin, why) in given_up.drain(..) {
                let before = ctx.catalog().await?.problem(&subject(&uri)).await?;
                let is_challenged = self.challenged.contains(origin);
                let failure = left_alone(&uri, origin, why, is_challenged, ctx.clock.now());
                let attempts = record.attempts;
                record_problem(ctx, &mut batch, &uri, failure, record, attempts, before);
            }
            ctx.commit(batch).await?;
            if ended {
                return Ok(());
            }
        }
    }
}

/// Whether a resource waits to be requested at a mirror that is not skipped.
async fn has_work_at_mirrors(
    ctx: &mut RunContext,
    down: &HashMap<Origin, Down>,
) -> Result<bool, HarvestError> {
    let mut pending = ctx.catalog().await?.scan_pending(None).await?;
    while let Some((_, record)) = pending.try_next().await? {
        if let Action::Fetch { origin } = &record.action
            && record.at_mirror().is_some()
            && !down.contains_key(origin)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn record_problem(
    ctx: &mut RunContext,
    batch: &mut Batch,
    uri: &ResourceUri,
    failure: Failure,
    pending: PendingRecord,
    attempts: u32,
    before: Option<ProblemRecord>,
) {
    tracing::warn!(resource.uri = %uri, reason = failure.reason.as_str(), message = failure.message, "not in step");
    let now = ctx.clock.now();
    ctx.run.counters.failed += 1;
    let mut evidence = failure.evidence;
    if evidence.candidate.is_none() && keeps_candidate(failure.reason, &pending, before.as_ref()) {
        evidence.candidate.clone_from(&pending.candidate);
    }
    let event = ChangeEvent::Problem { reason: failure.reason, message: failure.message.clone() };
    let (account, document) = provenance_of(&pending);
    batch.append_change(&ctx.log(uri, event, &document, account));
    let ignored = before
        .as_ref()
        .filter(|before| before.is_about(&pending.declaration, &pending.listing))
        .and_then(|before| before.still_ignored(failure.reason, &failure.message));
    let problem = ProblemRecord {
        reason: failure.reason,
        message: failure.message,
        first_seen: before.as_ref().map_or(now, |problem| problem.first_seen),
        last_seen: now,
        attempts: before.map_or(0, |problem| problem.attempts) + attempts,
        retry: matches!(failure.disposition, Disposition::Retry { .. }),
        next_attempt_at: asked_until(failure.disposition, now),
        ignored,
        evidence,
        declaration: Some(pending.declaration),
        listing: Some(pending.listing),
        repair: pending.repair,
    };
    batch.delete_pending(uri);
    ctx.put_problem(batch, &subject(uri), &problem);
}

impl RunContext {
    async fn entry_answers(&mut self) -> bool {
        match self.client.get(GetRequest::new(self.entry.clone())).await {
            Ok(response) => {
                self.run.counters.requests += u64::from(response.requests());
                true
            }
            Err(error) => {
                self.run.counters.requests += u64::from(error.requests());
                error.is_answer()
            }
        }
    }
}

/// The failure of a resource whose origin is skipped.
pub(crate) fn left_alone(
    uri: &ResourceUri,
    origin: &Origin,
    why: Down,
    is_challenged: bool,
    now: Timestamp,
) -> Failure {
    let (reason, what, after) = match why {
        Down::Silent => (ProblemReason::Timeout, "has not answered for many requests in a row", None),
        Down::Resting { until } => {
            let after = Some(until.duration_since(now));
            let (reason, what) = if is_challenged {
                let what = "answered with a challenge of its bot defence and has a cooldown";
                (ProblemReason::Challenged, what)
            } else {
                (ProblemReason::Throttled, "requested a cooldown that is longer than a run waits")
            };
            (reason, what, after)
        }
    };
    Failure {
        reason,
        message: format!("{origin} {what}, so {uri} was not fetched; the next run retries it"),
        disposition: Disposition::Retry { after },
        evidence: Evidence::default(),
    }
}

/// Whether a candidate keeps waiting although something else failed: no other bytes were received, and no list has a
/// new declaration.
fn keeps_candidate(reason: ProblemReason, pending: &PendingRecord, before: Option<&ProblemRecord>) -> bool {
    let came = matches!(reason, ProblemReason::DigestMismatch | ProblemReason::LengthMismatch);
    !came && before.is_some_and(|before| before.declaration.as_ref() == Some(&pending.declaration))
}

/// The earlier of two times, if there is any.
pub(crate) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
