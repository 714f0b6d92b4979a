//! Mirrors: when a resource's own URI fails, the places that its entry names for the same bytes are requested, one
//! attempt each. The verifier judges the bytes by the same digest, wherever they came from.
//!
//! How far they were tried is part of the pending record, so it survives a crash. Each place is a plan of its own, with
//! a number of its own, and waits in the queue of its own origin.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use model::{Action, Failure, MementoStep, Mirror, MirrorPlan, Origin, PendingRecord, ResourceUri};
use planning::{RetryDecision, mirrors};

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::run::problems::subject;
use crate::settler::Settler;
use crate::settler::failures::{BATCH, Down, left_alone, record_problem};
use crate::settler::mementos::failed_at_memento;
use crate::settler::outcomes::FollowUp;

/// What follows a failure.
enum Next {
    /// Another place is requested.
    Elsewhere(PendingRecord),
    /// No other place is left. The failure is that of the resource's own URI.
    Failed(PendingRecord, Box<Failure>),
}

impl Settler {
    /// Handles a failed attempt at a mirror: the next place is planned, or the failure of the resource's own URI is
    /// returned with its plan. Other failures are returned as they are.
    pub(crate) fn after_mirror(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        failure: Failure,
        pending: PendingRecord,
        follow_up: &mut FollowUp,
    ) -> Option<(PendingRecord, Failure)> {
        let Some(mirror) = pending.at_mirror().cloned() else { return Some((pending, failure)) };
        let mut pending = pending;
        if pending.is_at_memento() {
            pending.account.tried(&failed_at_memento(&failure, &mirror.url), ctx.clock.now());
        } else {
            self.note_mirror(&pending, Some(&failure));
            pending.account.tried_at(&failure, ctx.clock.now(), Some(&mirror));
        }
        match self.next_place(ctx, uri, pending) {
            Next::Elsewhere(next) => {
                follow_up.any = true;
                batch.put_pending(uri, &next);
                None
            }
            Next::Failed(pending, failure) => Some((pending, *failure)),
        }
    }

    /// The plan to request a mirror after a failure at the resource's own URI; none where no mirror helps.
    pub(crate) fn begin_mirror(
        &self,
        ctx: &mut RunContext,
        uri: &ResourceUri,
        pending: &PendingRecord,
        failure: &Failure,
    ) -> Option<PendingRecord> {
        if !mirrors::may_help(failure) || !matches!(pending.action, Action::Fetch { .. }) {
            return None;
        }
        let usable = usable(ctx, uri, pending);
        let (begun, mirror) = mirrors::next(pending, &usable, |origin| self.trials.is_left_out(origin))?;
        let mut account = pending.account.clone();
        account.tried(failure, ctx.clock.now());
        let plan = MirrorPlan {
            at: Some(mirror.clone()),
            begun,
            failure: Some(failure.clone()),
            ..MirrorPlan::default()
        };
        let origin = mirror.url.origin().ok()?;
        Some(PendingRecord { account, ..elsewhere(ctx, pending.clone(), origin, plan) })
    }

    /// Counts what a mirror gave: a failure, or the declared bytes.
    pub(crate) fn note_mirror(&mut self, pending: &PendingRecord, failure: Option<&Failure>) {
        let mirror = pending.at_mirror().filter(|_| !pending.is_at_memento());
        if let Some(origin) = mirror.and_then(|mirror| mirror.url.origin().ok()) {
            self.trials.note(&origin, failure);
        }
    }

    /// Moves pending records of mirrors that are left out to other places. Those without another place become problems.
    pub(crate) async fn pass_on(
        &mut self,
        ctx: &mut RunContext,
        records: Vec<(ResourceUri, Box<PendingRecord>)>,
    ) -> Result<(), HarvestError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for (uri, record) in records {
            match self.next_place(ctx, &uri, *record) {
                Next::Elsewhere(next) => batch.put_pending(&uri, &next),
                Next::Failed(next, failure) => {
                    let attempts = next.attempts + 1;
                    if ctx.options.retries.after(&failure, attempts) == RetryDecision::Problem {
                        let before = ctx.catalog().await?.problem(&subject(&uri)).await?;
                        record_problem(ctx, &mut batch, &uri, *failure, next, attempts, before);
                    } else {
                        batch.put_pending(&uri, &next);
                    }
                }
            }
        }
        ctx.commit(batch).await
    }

    /// Moves the pending records of skipped origins to other places that their entries name. Returns whether any was
    /// moved: then there is work at origins that are not skipped.
    pub(crate) async fn divert(
        &mut self,
        ctx: &mut RunContext,
        down: &HashMap<Origin, Down>,
    ) -> Result<bool, HarvestError> {
        if down.is_empty() {
            return Ok(false);
        }
        let mut is_any = false;
        let mut batch = Batch::new();
        let mut moved = 0;
        let mut pending = ctx.catalog().await?.scan_pending(None).await?;
        while let Some((uri, record)) = pending.try_next().await? {
            let Action::Fetch { origin } = &record.action else { continue };
            let Some((origin, why)) = down.get_key_value(origin) else { continue };
            let failure = left_alone(&uri, origin, *why, self.challenged.contains(origin), ctx.clock.now());
            let next = match record.at_mirror().cloned() {
                Some(mirror) => {
                    let mut record = record;
                    if record.is_at_memento() {
                        record.account.tried(&failed_at_memento(&failure, &mirror.url), ctx.clock.now());
                    } else {
                        record.account.tried_at(&failure, ctx.clock.now(), Some(&mirror));
                    }
                    match self.next_place(ctx, &uri, record) {
                        // The resource's own URI is requested once more, and its failure settles it.
                        Next::Elsewhere(next) | Next::Failed(next, _) => Some(next),
                    }
                }
                None => self.begin_mirror(ctx, &uri, &record, &failure),
            };
            let Some(next) = next else { continue };
            batch.put_pending(&uri, &next);
            is_any = true;
            moved += 1;
            if moved >= BATCH {
                ctx.commit(std::mem::take(&mut batch)).await?;
                moved = 0;
            }
        }
        if !batch.is_empty() {
            ctx.commit(batch).await?;
        }
        Ok(is_any)
    }

    /// The place after a mirror that failed: another mirror, else the resource's own URI if it was not requested yet.
    fn next_place(&self, ctx: &mut RunContext, uri: &ResourceUri, pending: PendingRecord) -> Next {
        let usable = usable(ctx, uri, &pending);
        let next = mirrors::next(&pending, &usable, |origin| self.trials.is_left_out(origin));
        let failure = pending.mirror.as_ref().and_then(|plan| plan.failure.clone());
        if let Some((begun, mirror)) = next
            && let Ok(origin) = mirror.url.origin()
        {
            let plan = MirrorPlan { at: Some(mirror.clone()), begun, failure, ..MirrorPlan::default() };
            return Next::Elsewhere(elsewhere(ctx, pending, origin, plan));
        }
        let memento = if pending.is_at_memento() { MementoStep::Done } else { MementoStep::None };
        let plan = MirrorPlan { at: None, begun: usable.len(), failure: None, memento };
        let own = match uri.origin() {
            Ok(own) => elsewhere(ctx, pending, own, plan),
            // It was planned, so it has an origin.
            Err(_) => pending,
        };
        match failure {
            Some(failure) => Next::Failed(own, Box::new(failure)),
            None => Next::Elsewhere(own),
        }
    }
}

/// The mirrors of a pending resource, in their order.
pub(crate) fn usable(ctx: &RunContext, uri: &ResourceUri, pending: &PendingRecord) -> Vec<Mirror> {
    let options = &ctx.options;
    mirrors::usable(options.mirrors, uri, &pending.declaration, &pending.listing, &options.filter)
}

/// The same work at another place, as a plan of its own: late outcomes of the place before do not settle it.
pub(crate) fn elsewhere(
    ctx: &mut RunContext,
    pending: PendingRecord,
    origin: Origin,
    plan: MirrorPlan,
) -> PendingRecord {
    PendingRecord {
        seq: ctx.next_seq(),
        action: Action::Fetch { origin },
        mirror: Some(Box::new(plan)),
        next_attempt_at: None,
        ..pending
    }
}
