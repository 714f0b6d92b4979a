//! The judgement.

use std::collections::HashSet;
use std::sync::Arc;

use bus::{Bus, MessageId, Queue, Work};
use bytes::Bytes;
use fixity::{Mismatch, Verdict};
use model::{
    Assurance, Disposition, Evidence, Failure, Fetched, FetchedResult, Location, Outcome, OutcomeResult,
    Outcomes, PackId, ProblemReason, ResourceUri, StoredBitstream, VerifyJob,
};
use store::{Store, StoreError};

/// Works verify jobs.
#[derive(Debug, Clone)]
pub struct Verifier {
    store: Store,
    bus: Arc<dyn Bus>,
}

impl Verifier {
    /// A verifier of what lies in `store`, which reports on `bus`.
    pub fn new(store: Store, bus: Arc<dyn Bus>) -> Self {
        Self { store, bus }
    }

    /// Works one message. It may be acknowledged when this says so.
    pub async fn work(&self, payload: Bytes) -> Work {
        let job: VerifyJob = match model::decode(&payload) {
            Ok(job) => job,
            Err(error) => return Work::Poison { why: error.to_string() },
        };
        let outcomes = match self.judge(job).await {
            Ok(outcomes) => outcomes,
            Err(error) => return Work::Later { after: None, why: error.to_string() },
        };
        let queue = Queue::Outcomes { source: outcomes.source.clone() };
        let id = MessageId::new(format!("outcomes-{}", outcomes.id));
        match self.bus.publish(queue, id, model::encode(&outcomes).into()).await {
            Ok(_) => Work::Done,
            Err(error) => Work::Later { after: None, why: error.to_string() },
        }
    }

    /// Judges the bitstreams of a job.
    ///
    /// # Errors
    /// Only when the store cannot be asked: then nothing is judged, and the job is to be done again.
    pub async fn judge(&self, job: VerifyJob) -> Result<Outcomes, StoreError> {
        let VerifyJob { id, source, run, lane, items, requests, elapsed_ms } = job;
        let mut packs = HashSet::new();
        let mut judged = Vec::with_capacity(items.len());
        // The last member of a pack tells whether all of it is there: look at that one first.
        let order = last_members_first(&items);
        let mut missing = HashSet::new();
        for n in order {
            if let FetchedResult::Stored(stored) = &items[n].result
                && !self.lies_there(stored, &mut packs).await?
            {
                missing.insert(n);
            }
        }
        for (n, Fetched { uri, seq, declaration, result }) in items.into_iter().enumerate() {
            let result = match result {
                FetchedResult::Stored(_) if missing.contains(&n) => OutcomeResult::Failed(not_there(&uri)),
                FetchedResult::Stored(stored) => {
                    let verdict = fixity::judge(&declaration.digests, declaration.length, &stored.computed);
                    outcome_of(&uri, verdict, stored)
                }
                FetchedResult::NotModified => OutcomeResult::NotModified,
                FetchedResult::Deferred => OutcomeResult::Deferred,
                FetchedResult::Failed(failure) => OutcomeResult::Failed(failure),
            };
            judged.push(Outcome { uri, seq, result });
        }
        Ok(Outcomes { id, source, run, lane, items: judged, requests, elapsed_ms })
    }

    /// Whether the store has the bitstream, asked once for each pack.
    async fn lies_there(
        &self,
        stored: &StoredBitstream,
        packs: &mut HashSet<PackId>,
    ) -> Result<bool, StoreError> {
        if let Location::Pack { pack, .. } = &stored.location
            && packs.contains(pack)
        {
            return Ok(true);
        }
        let there = self.store.exists(&stored.location, stored.computed.length()).await?;
        if let (true, Location::Pack { pack, .. }) = (there, &stored.location) {
            packs.insert(*pack);
        }
        Ok(there)
    }
}

fn last_members_first(items: &[Fetched]) -> Vec<usize> {
    let offset = |n: &usize| match &items[*n].result {
        FetchedResult::Stored(StoredBitstream { location: Location::Pack { offset, .. }, .. }) => *offset,
        _ => 0,
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|n| std::cmp::Reverse(offset(n)));
    order
}

fn outcome_of(uri: &ResourceUri, verdict: Verdict, stored: StoredBitstream) -> OutcomeResult {
    match verdict {
        Verdict::Verified { .. } => OutcomeResult::Verified { stored, assurance: Assurance::Digest },
        Verdict::LengthOnly => OutcomeResult::Verified { stored, assurance: Assurance::Length },
        Verdict::NothingDeclared => OutcomeResult::Verified { stored, assurance: Assurance::None },
        Verdict::Mismatch { what } => OutcomeResult::Failed(mismatch(uri, what, stored)),
    }
}

/// A resource may have changed since it was listed, or been damaged on its way: another attempt can tell.
fn mismatch(uri: &ResourceUri, what: Mismatch, stored: StoredBitstream) -> Failure {
    let (reason, noun, expected, computed) = match what {
        Mismatch::Length { expected, computed } => (
            ProblemReason::LengthMismatch,
            "length",
            format!("{expected} bytes"),
            format!("{computed} bytes"),
        ),
        Mismatch::Digest { expected, computed } => {
            (ProblemReason::DigestMismatch, "digest", expected.to_string(), computed.to_string())
        }
    };
    Failure {
        reason,
        message: format!(
            "{uri} has another {noun} than its Source declares: declared {expected}, received {computed}. It was not \
             taken; what was held before is kept. Either it has changed since it was listed, then the next list settles \
             it, or the Source serves or lists it wrongly"
        ),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence {
            final_url: stored.final_url,
            status: None,
            expected: Some(expected),
            computed: Some(computed),
        },
    }
}

fn not_there(uri: &ResourceUri) -> Failure {
    Failure {
        reason: ProblemReason::MissingBytes,
        message: format!("the bytes fetched for {uri} are not in the store; they are fetched again"),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence::default(),
    }
}

#[cfg(test)]
mod tests {
    use bus::MemoryBus;
    use fixity::{Computed, Sha256};
    use model::{Declaration, JobId, RunId, Seq};

    use super::*;

    async fn judged(content: &'static [u8], declaration: Declaration, put: bool) -> OutcomeResult {
        let store = Store::in_memory();
        let sha256 = Sha256::of(content);
        if put {
            store.put_small_bitstream(sha256, Bytes::from_static(content)).await.unwrap();
        }
        let stored = StoredBitstream {
            location: Location::Object { sha256 },
            computed: Computed::of(content),
            media_type: None,
            validators: Default::default(),
            final_url: None,
        };
        judge_one(store, declaration, FetchedResult::Stored(stored)).await
    }

    async fn judge_one(store: Store, declaration: Declaration, result: FetchedResult) -> OutcomeResult {
        let job = VerifyJob {
            id: JobId::fresh(),
            source: "s".parse().unwrap(),
            run: RunId::fresh(),
            lane: "http://h".parse().unwrap(),
            items: vec![Fetched {
                uri: "http://h/a".parse().unwrap(),
                seq: Seq::new(1),
                declaration,
                result,
            }],
            requests: 1,
            elapsed_ms: 1,
        };
        let verifier = Verifier::new(store, Arc::new(MemoryBus::new(4)));
        verifier.judge(job).await.unwrap().items.remove(0).result
    }

    fn declares(content: &[u8]) -> Declaration {
        Declaration { digests: vec![Sha256::of(content).into()], ..Declaration::default() }
    }

    #[tokio::test]
    async fn equal_digests_are_verified() {
        let result = judged(b"abc", declares(b"abc"), true).await;
        assert!(matches!(result, OutcomeResult::Verified { assurance: Assurance::Digest, .. }), "{result:?}");
    }

    #[tokio::test]
    async fn other_bytes_than_declared_are_refused_with_both_values() {
        let OutcomeResult::Failed(failure) = judged(b"abc", declares(b"xyz"), true).await else {
            panic!("verified what differs")
        };
        assert_eq!(failure.reason, ProblemReason::DigestMismatch);
        assert_eq!(failure.evidence.expected.unwrap(), format!("sha-256:{}", Sha256::of(b"xyz")));
        assert_eq!(failure.evidence.computed.unwrap(), format!("sha-256:{}", Sha256::of(b"abc")));
    }

    #[tokio::test]
    async fn another_length_is_refused_and_the_same_one_is_little_assurance() {
        let declared = |length| Declaration { length: Some(length), ..Declaration::default() };
        let OutcomeResult::Failed(failure) = judged(b"abc", declared(4), true).await else {
            panic!("verified what differs")
        };
        assert_eq!(failure.reason, ProblemReason::LengthMismatch);
        let result = judged(b"abc", declared(3), true).await;
        assert!(matches!(result, OutcomeResult::Verified { assurance: Assurance::Length, .. }), "{result:?}");
        let result = judged(b"abc", Declaration::default(), true).await;
        assert!(matches!(result, OutcomeResult::Verified { assurance: Assurance::None, .. }), "{result:?}");
    }

    #[tokio::test]
    async fn bytes_that_are_not_in_the_store_are_never_verified() {
        let OutcomeResult::Failed(failure) = judged(b"abc", declares(b"abc"), false).await else {
            panic!("verified what is not there")
        };
        assert_eq!(failure.reason, ProblemReason::MissingBytes);
        assert_eq!(failure.disposition, Disposition::Retry { after: None });
    }

    #[tokio::test]
    async fn what_was_not_stored_passes_as_it_is() {
        let deferred = judge_one(Store::in_memory(), Declaration::default(), FetchedResult::Deferred).await;
        assert_eq!(deferred, OutcomeResult::Deferred);
        let same = judge_one(Store::in_memory(), Declaration::default(), FetchedResult::NotModified).await;
        assert_eq!(same, OutcomeResult::NotModified);
    }
}
