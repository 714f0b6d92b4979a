//! Candidates: bytes that were received when a resource had changed again since it was listed. A candidate waits for
//! a list that declares it. It is then verified like any other bitstream, without a second request.

use std::sync::Arc;

use catalog::Batch;
use fixity::Verdict;
use model::{
    Disposition, Evidence, Failure, Fetched, FetchedResult, PendingRecord, ProblemReason, ResourceUri,
    StoredBitstream, bytes,
};

use crate::run::RunContext;
use crate::settler::outcomes::{FollowUp, PriorRecords};
use crate::settler::{Settler, failures};

/// The next step for a resource that is out of sync. It follows from the pending record alone, so it is the same
/// after a crash and when the outcome arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// Request the resource.
    Fetch,
    /// The candidate matches the current declaration: send it to the verifier.
    Judge(&'a StoredBitstream),
    /// The candidate is certainly newer than the declaration: only ask the Source whether it still has it.
    Confirm(&'a StoredBitstream),
}

/// Chooses the next step. A declared digest must match the candidate's. A length alone does not prove that the list,
/// perhaps of a much later time, describes these bytes. A digest that was not computed on receipt cannot be compared,
/// so the resource is fetched.
pub(crate) fn next_step(pending: &PendingRecord) -> Step<'_> {
    let Some(candidate) = pending.candidate.as_deref() else { return Step::Fetch };
    let declared = &pending.declaration;
    let computed = &candidate.computed;
    match fixity::judge(&declared.digests, declared.length, computed) {
        Verdict::Verified { .. }
            if declared.digests.iter().all(|digest| computed.get(digest.algorithm()).is_some()) =>
        {
            Step::Judge(candidate)
        }
        Verdict::Mismatch { .. }
            if candidate.is_newer_than(pending.listing.latest) && !candidate.validators.is_empty() =>
        {
            Step::Confirm(candidate)
        }
        _ => Step::Fetch,
    }
}

/// The candidate in the form in which the fetcher would have sent it.
pub(crate) fn kept(uri: ResourceUri, pending: &PendingRecord, candidate: &StoredBitstream) -> Fetched {
    Fetched {
        uri,
        seq: pending.seq,
        declaration: pending.declaration.clone(),
        listed_until: pending.listing.latest,
        result: FetchedResult::Kept(Arc::new(candidate.clone())),
        patch: None,
    }
}

impl Settler {
    /// The candidate's bytes are lost or damaged: the resource is fetched like any other. This needs a new plan, so
    /// that a duplicate outcome about the candidate does not settle it.
    pub(crate) fn drop_candidate(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        failure: &Failure,
        pending: PendingRecord,
        follow_up: &mut FollowUp,
    ) {
        tracing::warn!(resource.uri = %uri, message = failure.message, "a candidate is fetched again");
        follow_up.any = true;
        let mut pending = pending;
        pending.account.tried(failure, ctx.clock.now());
        // Bytes that the resource itself has are damaged: the received ones replace them, even if their digest is equal.
        pending.repair |= pending.account.adopted.take().is_some_and(|adopted| adopted.from == *uri);
        batch.put_pending(uri, &PendingRecord { seq: ctx.next_seq(), candidate: None, ..pending });
    }

    /// The Source still has the candidate's version, and no list declares it. The listed version may be at its memento.
    pub(crate) fn settle_waiting(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        before: PriorRecords,
        follow_up: &mut FollowUp,
    ) {
        let PriorRecords { pending, problem, versions, .. } = before;
        let attempts = pending.attempts + 1;
        let failure = still_waiting(uri, &pending);
        if let Some(elsewhere) = self.begin_memento(ctx, uri, &pending, &failure, versions.as_ref()) {
            follow_up.any = true;
            return batch.put_pending(uri, &elsewhere);
        }
        failures::record_problem(
            ctx,
            batch,
            uri,
            failure,
            *pending,
            attempts,
            problem.map(|problem| *problem),
        );
    }
}

fn still_waiting(uri: &ResourceUri, pending: &PendingRecord) -> Failure {
    let declaration = &pending.declaration;
    let expected = declaration.digests.first().map(ToString::to_string);
    let candidate = pending.candidate.clone();
    Failure {
        reason: ProblemReason::ChangedAgain,
        message: format!(
            "{uri} has changed again since it was listed, and its Source still has the version that was kept as a candidate. \
             The candidate is not served; what was held before is kept too. The next list that declares its digest settles it"
        ),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence {
            final_url: candidate.as_ref().and_then(|candidate| candidate.final_url.clone()),
            expected: expected.or_else(|| declaration.length.map(bytes)),
            computed: candidate.as_ref().map(|candidate| format!("sha-256:{}", candidate.computed.sha256())),
            candidate,
            ..Evidence::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use fixity::{Computed, Digest, Sha256};
    use jiff::Timestamp;
    use model::{Action, Declaration, Listing, Location, Seq, SetId, Validators};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    /// A pending record with a candidate `new`, modified at second 10. Its entry is of second `latest`.
    fn pending(digests: Vec<Digest>, length: Option<u64>, latest: i64) -> PendingRecord {
        let computed = Computed::of(b"new");
        let candidate = StoredBitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            media_type: None,
            encoding: None,
            validators: Validators { etag: Some("\"new\"".to_owned()), last_modified: None },
            modified: Some(at(10)),
            final_url: None,
        };
        PendingRecord {
            seq: Seq::new(1),
            action: Action::Fetch { origin: "http://h".parse().unwrap() },
            declaration: Declaration { digests, length, ..Declaration::default() },
            listing: Listing {
                document: "http://h/changes.xml".into(),
                set: SetId::new("http://h/caps.xml"),
                change: None,
                change_time: None,
                as_of: None,
                latest: Some(at(latest)),
                links: None,
                linked: None,
            },
            attempts: 0,
            next_attempt_at: None,
            candidate: Some(Box::new(candidate)),
            repair: false,
            mirror: None,
            patch: None,
            account: Default::default(),
        }
    }

    fn sha256(content: &[u8]) -> Vec<Digest> {
        vec![Sha256::of(content).into()]
    }

    #[test]
    fn a_candidate_whose_digest_is_declared_is_judged() {
        for length in [None, Some(3)] {
            let pending = pending(sha256(b"new"), length, 20);
            assert!(matches!(next_step(&pending), Step::Judge(_)), "{length:?}");
        }
    }

    #[test]
    fn without_a_candidate_it_is_fetched() {
        let pending = PendingRecord { candidate: None, ..pending(sha256(b"new"), None, 20) };
        assert_eq!(next_step(&pending), Step::Fetch);
    }

    #[test]
    fn a_length_alone_or_nothing_at_all_does_not_tell_that_the_candidate_is_meant() {
        for length in [None, Some(3)] {
            assert_eq!(next_step(&pending(vec![], length, 20)), Step::Fetch, "{length:?}");
        }
    }

    #[test]
    fn a_digest_that_was_not_computed_when_it_came_is_computed_by_fetching() {
        let md5 = fixity::parse_hashes("md5:900150983cd24fb0d6963f7d28e17f72").known;
        assert_eq!(next_step(&pending(md5.clone(), None, 20)), Step::Fetch);
        assert_eq!(next_step(&pending([sha256(b"new"), md5].concat(), None, 20)), Step::Fetch);
    }

    #[test]
    fn while_the_list_speaks_of_an_earlier_moment_the_source_is_asked_whether_it_still_has_it() {
        assert!(matches!(next_step(&pending(sha256(b"old"), None, 9)), Step::Confirm(_)));
        assert!(matches!(next_step(&pending(vec![], Some(4), 9)), Step::Confirm(_)));
    }

    #[test]
    fn what_a_later_list_declares_otherwise_is_fetched() {
        assert_eq!(next_step(&pending(sha256(b"later"), None, 10)), Step::Fetch);
    }
}
