//! Judges bitstreams: compares them with their declarations.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use bus::{Bus, HandlerResult, MAX_PAYLOAD, Payload, Queue};
use fixity::Verdict;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{
    Assurance, Bitstream, Fetched, FetchedResult, Location, Outcome, OutcomeResult, Outcomes, ResourceUri,
    StoredBitstream, Validators, VerifyJob,
};
use store::{Store, StoreError};

use crate::VerifierMetrics;
use crate::failure::{changed_again, mismatch, not_there};
use crate::pack_lengths::PackLengthCache;

/// Bytes that the outcomes of a job may take. Ids and names are around them.
const OUTCOMES_BYTES: usize = MAX_PAYLOAD - 16 * 1024;

/// Processes verify jobs.
#[derive(Debug, Clone)]
pub struct Verifier {
    store: Store,
    bus: Arc<dyn Bus>,
    metrics: VerifierMetrics,
    seen: PackLengthCache,
}

impl Verifier {
    /// A verifier of bitstreams in `store` that reports on `bus`.
    pub fn new(store: Store, bus: Arc<dyn Bus>) -> Self {
        Self { store, bus, metrics: VerifierMetrics::default(), seen: PackLengthCache::default() }
    }

    /// Adds metrics.
    #[must_use]
    pub fn counted(self, metrics: VerifierMetrics) -> Self {
        Self { metrics, ..self }
    }

    /// Processes one message. The returned value says whether it may be acknowledged.
    pub async fn work(&self, payload: Payload) -> HandlerResult {
        HandlerResult::from_result(self.try_work(&payload).await)
    }

    async fn try_work(&self, payload: &Payload) -> Result<(), HandlerResult> {
        let job = payload.read::<VerifyJob>().map_err(HandlerResult::poison)?;
        let outcomes = Arc::new(self.judge(&job).await.map_err(HandlerResult::later)?);
        let queue = Queue::Outcomes { source: outcomes.source.clone() };
        bus::send(&*self.bus, queue, outcomes.id, Arc::clone(&outcomes))
            .await
            .map_err(HandlerResult::later)?;
        self.metrics.count(&outcomes);
        Ok(())
    }

    /// Judges the bitstreams of a job.
    ///
    /// # Errors
    /// Only when the store fails: then no bitstream is judged, and the job must be repeated.
    pub async fn judge(&self, job: &VerifyJob) -> Result<Outcomes, StoreError> {
        let VerifyJob { id, source, run, origin, items, requests, elapsed_ms, put } = job;
        let mut judged = Vec::with_capacity(items.len());
        let mut missing = HashSet::new();
        for (n, fetched) in items.iter().enumerate() {
            let is_there = match &fetched.result {
                FetchedResult::Stored(stored) => {
                    let length = stored.computed.length();
                    match acknowledged(put, &stored.location, length) {
                        Some(is_there) => is_there,
                        None => self.seen.have(&self.store, &stored.location, length).await?,
                    }
                }
                FetchedResult::Kept(stored) => self.is_whole(stored).await?,
                FetchedResult::NotModified | FetchedResult::Deferred | FetchedResult::Failed(_) => continue,
            };
            if !is_there {
                missing.insert(n);
            }
        }
        for (n, fetched) in items.iter().enumerate() {
            let Fetched { uri, seq, declaration, listed_until, result, patch } = fetched;
            let result = match result {
                FetchedResult::Stored(_) | FetchedResult::Kept(_) if missing.contains(&n) => {
                    OutcomeResult::Failed(not_there(uri))
                }
                FetchedResult::Stored(stored) | FetchedResult::Kept(stored) => {
                    let verdict = fixity::judge(&declaration.digests, declaration.length, &stored.computed);
                    outcome_of(uri, verdict, Arc::clone(stored), *listed_until)
                }
                FetchedResult::NotModified => OutcomeResult::NotModified,
                FetchedResult::Deferred => OutcomeResult::Deferred,
                FetchedResult::Failed(failure) => OutcomeResult::Failed(failure.clone()),
            };
            judged.push(Outcome { uri: uri.clone(), seq: *seq, result, patch: patch.clone() });
        }
        defer_what_does_not_fit(&mut judged);
        let source = source.clone();
        let origin = origin.clone();
        let requests = *requests;
        let elapsed_ms = *elapsed_ms;
        Ok(Outcomes { id: *id, source, run: *run, origin, items: judged, requests, elapsed_ms })
    }

    /// Whether a candidate's stored bytes are still those that were received. It was stored by an earlier run, and
    /// the digests of that time do not exclude later damage. So it is read to its end.
    async fn is_whole(&self, stored: &StoredBitstream) -> Result<bool, StoreError> {
        let read = async {
            let mut bytes = self.store.open_verified(&as_received(stored)).await?;
            while bytes.try_next().await?.is_some() {}
            Ok(())
        };
        match read.await {
            Ok(()) => Ok(true),
            Err(StoreError::NotFound { .. } | StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Defers failures that do not fit into one message, the last ones first: their resources go out again in another job.
/// What a Source sends decides how long a failure is. The first outcome stays, so each job settles at least one.
fn defer_what_does_not_fit(outcomes: &mut [Outcome]) {
    let mut bytes: usize = outcomes.iter().map(Outcome::bytes).sum();
    for outcome in outcomes.iter_mut().skip(1).rev() {
        if bytes <= OUTCOMES_BYTES {
            break;
        }
        if matches!(outcome.result, OutcomeResult::Failed(_)) {
            let before = outcome.bytes();
            outcome.result = OutcomeResult::Deferred;
            // What became of its patches counts when it is told.
            outcome.patch = None;
            bytes -= before - outcome.bytes();
        }
    }
}

/// Whether a bitstream of this length lies within an object that its job has put, as far as the store acknowledged it.
/// None if it is in none of them. The store has received as many bytes as it acknowledged, and of none that it refused
/// is there a location. So a request to it could tell nothing else (ADR 0094).
fn acknowledged(put: &[Location], location: &Location, length: u64) -> Option<bool> {
    let whole = put.iter().find(|whole| whole.shares_object_with(location))?;
    let object = whole.span().map_or(length, |span| span.stored_length);
    Some(store::lies_within(location, length, object))
}

/// The bitstream as the store reads it for a check against its own digest, before it is judged.
fn as_received(stored: &StoredBitstream) -> Bitstream {
    Bitstream {
        location: stored.location.clone(),
        computed: stored.computed.clone(),
        assurance: Assurance::None,
        media_type: None,
        encoding: None,
        validators: Validators::default(),
        stored_at: Timestamp::UNIX_EPOCH,
        final_url: None,
    }
}

fn outcome_of(
    uri: &ResourceUri,
    verdict: Verdict,
    stored: Arc<StoredBitstream>,
    listed_until: Option<Timestamp>,
) -> OutcomeResult {
    match verdict {
        Verdict::Verified { .. } => OutcomeResult::Verified { stored, assurance: Assurance::Digest },
        Verdict::LengthOnly => OutcomeResult::Verified { stored, assurance: Assurance::Length },
        Verdict::NothingDeclared => OutcomeResult::Verified { stored, assurance: Assurance::None },
        Verdict::Mismatch { what } if stored.is_newer_than(listed_until) => {
            OutcomeResult::Failed(changed_again(uri, &what, Arc::unwrap_or_clone(stored)))
        }
        Verdict::Mismatch { what } => {
            OutcomeResult::Failed(mismatch(uri, &what, Arc::unwrap_or_clone(stored)))
        }
    }
}
