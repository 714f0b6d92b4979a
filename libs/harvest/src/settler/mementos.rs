//! Mementos: when a resource has changed again since it was listed, the listed version may still be where its entry's
//! `memento` leads (ResourceSync 1.1, section 14.6). It goes into the history, where versions are kept. The bytes that
//! the resource itself gave wait as a candidate all the same.
//!
//! The memento is a place of the same plan, like a mirror: a plan of its own in the queue of its origin, judged by the
//! declared digest.

use catalog::Batch;
use fixity::Verdict;
use model::{
    Assurance, Evidence, Failure, MementoStep, MirrorPlan, PendingRecord, ProblemReason, ResourceUri,
    StoredBitstream, Version, Versions, moment,
};
use planning::mementos;

use crate::run::RunContext;
use crate::settler::Settler;
use crate::settler::failures::record_problem;
use crate::settler::mirrors::{elsewhere, usable};
use crate::settler::one_outcome::bitstream;
use crate::settler::outcomes::PriorRecords;

impl Settler {
    /// The plan to request the listed version at its memento, after the resource itself gave a later one; none where
    /// versions are not kept, where this one is, or where no memento helps.
    pub(crate) fn begin_memento(
        &self,
        ctx: &mut RunContext,
        uri: &ResourceUri,
        pending: &PendingRecord,
        failure: &Failure,
        versions: Option<&Versions>,
    ) -> Option<PendingRecord> {
        let is_begun = pending.mirror.as_ref().is_some_and(|plan| plan.memento != MementoStep::None);
        if failure.reason != ProblemReason::ChangedAgain || is_begun || self.versions_to_keep() == 0 {
            return None;
        }
        let PendingRecord { declaration, listing, .. } = pending;
        if mementos::is_kept(versions, declaration) {
            return None;
        }
        let at = mementos::usable(uri, declaration, listing, &ctx.options.filter)?;
        let origin = at.url.origin().ok()?;
        let mut account = pending.account.clone();
        account.tried(failure, ctx.clock.now());
        // gc finds the received bytes there while the memento is requested.
        let candidate = failure.evidence.candidate.clone();
        let begun = usable(ctx, uri, pending).len();
        let plan =
            MirrorPlan { at: Some(at), begun, failure: Some(failure.clone()), memento: MementoStep::Asked };
        Some(PendingRecord { account, candidate, ..elsewhere(ctx, pending.clone(), origin, plan) })
    }

    /// Settles bytes that came from a memento: they are the listed version, and go into the history. The resource
    /// itself stays a problem.
    pub(crate) fn settle_memento(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        stored: StoredBitstream,
        before: PriorRecords,
    ) {
        let PriorRecords { pending, problem, versions, .. } = before;
        let mut pending = *pending;
        let Some(plan) = pending.mirror.take() else { return };
        let now = ctx.clock.now();
        ctx.run.counters.bytes += stored.computed.length();
        let declared = &pending.declaration;
        // The verifier judged the same. A length alone, or nothing, proves no version.
        if matches!(fixity::judge(&declared.digests, None, &stored.computed), Verdict::Verified { .. }) {
            let version = Version {
                bitstream: bitstream(stored, Assurance::Digest, now),
                declaration: declared.clone(),
                listing: pending.listing.clone(),
                from: now,
                until: now,
                source_from: moment::source_time(&pending.listing, declared),
                lost: None,
            };
            let mut versions = versions.unwrap_or_default();
            if versions.add_earlier(version, self.versions_to_keep()) {
                batch.put_versions(uri, &versions);
            }
        }
        let attempts = pending.attempts + 1;
        let failure = plan.failure.unwrap_or_else(|| changed_again(uri));
        record_problem(ctx, batch, uri, failure, pending, attempts, problem.map(|problem| *problem));
    }
}

/// An attempt at a memento that failed, as the history tells it.
pub(crate) fn failed_at_memento(failure: &Failure, memento: &ResourceUri) -> Failure {
    // The history shows the message of a failure without evidence.
    let message = format!("its memento {memento} did not give the listed version: {}", failure.message);
    Failure { message, evidence: Evidence::default(), ..failure.clone() }
}

/// The failure of a plan that lost its own.
fn changed_again(uri: &ResourceUri) -> Failure {
    Failure {
        reason: ProblemReason::ChangedAgain,
        message: format!("{uri} has changed again since it was listed"),
        disposition: model::Disposition::Retry { after: None },
        evidence: Default::default(),
    }
}
