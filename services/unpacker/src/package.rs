//! A package: found where it lies, and answered for.

use std::sync::Arc;

use bus::{Bus, Queue, Work};
use bytes::Bytes;
use model::{Disposition, Failure, Outcome, OutcomeResult, Outcomes, ProblemReason, UnpackJob};
use store::{Store, StoreError};

use crate::UnpackerMetrics;

/// Works unpack jobs.
#[derive(Debug, Clone)]
pub struct Unpacker {
    store: Store,
    bus: Arc<dyn Bus>,
    metrics: UnpackerMetrics,
}

impl Unpacker {
    /// An unpacker of what lies in `store`, which reports on `bus`.
    pub fn new(store: Store, bus: Arc<dyn Bus>) -> Self {
        Self { store, bus, metrics: UnpackerMetrics::default() }
    }

    /// Counts what it does.
    #[must_use]
    pub fn counted(self, metrics: UnpackerMetrics) -> Self {
        Self { metrics, ..self }
    }

    /// Works one message. It may be acknowledged when this says so.
    pub async fn work(&self, payload: Bytes) -> Work {
        Work::from_result(self.try_work(&payload).await)
    }

    async fn try_work(&self, payload: &[u8]) -> Result<(), Work> {
        let job: UnpackJob = model::decode(payload).map_err(Work::poison)?;
        let outcomes = self.look(job).await.map_err(Work::later)?;
        let queue = Queue::Outcomes { source: outcomes.source.clone() };
        bus::send(&*self.bus, queue, outcomes.id, &outcomes).await.map_err(Work::later)?;
        self.metrics.refused.inc();
        Ok(())
    }

    /// Looks whether the package is there, and says that it is not read.
    ///
    /// # Errors
    /// Only when the store cannot be asked: then the job is to be done again.
    pub async fn look(&self, job: UnpackJob) -> Result<Outcomes, StoreError> {
        let UnpackJob { id, source, run, lane, uri, seq, stored, .. } = job;
        let failure = if self.store.exists(&stored.location, stored.computed.length()).await? {
            Failure {
                reason: ProblemReason::WrongKind,
                message: format!(
                    "{uri} is a package, and packages are not read by this version; it stays stored"
                ),
                disposition: Disposition::Refuse,
                evidence: Default::default(),
            }
        } else {
            Failure {
                reason: ProblemReason::MissingBytes,
                message: format!("the package {uri} is not where it was stored; it is fetched again"),
                disposition: Disposition::Retry { after: None },
                evidence: Default::default(),
            }
        };
        let items = vec![Outcome { uri, seq, result: OutcomeResult::Failed(failure) }];
        Ok(Outcomes { id, source, run, lane, items, requests: 0, elapsed_ms: 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bus::{ConsumerSpec, Filter, MemoryBus};
    use fixity::Computed;
    use model::{JobId, RunId, Seq, SourceId, StoredBitstream};

    use super::*;

    async fn outcome_of(is_there: bool) -> Failure {
        let store = Store::in_memory();
        let source: SourceId = "s".parse().unwrap();
        let bytes = Bytes::from_static(b"a package");
        let computed = Computed::of(&bytes);
        let location = match is_there {
            true => store.put_small_bitstream(computed.sha256(), bytes).await.unwrap(),
            false => model::Location::Object { sha256: computed.sha256() },
        };
        let stored = StoredBitstream {
            location,
            computed,
            media_type: None,
            validators: Default::default(),
            final_url: None,
            modified: None,
        };
        let job = UnpackJob {
            id: JobId::fresh(),
            source: source.clone(),
            run: RunId::fresh(),
            lane: "http://h".parse().unwrap(),
            uri: "http://h/dump.zip".parse().unwrap(),
            seq: Seq::new(1),
            stored,
            declaration: Default::default(),
            task: Default::default(),
        };
        let bus = Arc::new(MemoryBus::new(4));
        let filter = Filter::Outcomes(source);
        bus.open(ConsumerSpec::new(filter.clone(), 4, Duration::from_secs(60), 2)).await.unwrap();
        let unpacker = Unpacker::new(store, Arc::clone(&bus) as Arc<dyn Bus>);
        assert_eq!(unpacker.work(model::encode(&job).into()).await, Work::Done);
        let delivery = bus.pull(&filter, 1, Duration::ZERO).await.unwrap().remove(0);
        let outcomes: Outcomes = model::decode(&delivery.payload).unwrap();
        match &outcomes.items[0].result {
            OutcomeResult::Failed(failure) => failure.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_package_is_answered_for_and_stays_stored() {
        let failure = outcome_of(true).await;
        assert_eq!((failure.reason, failure.disposition), (ProblemReason::WrongKind, Disposition::Refuse));
    }

    #[tokio::test]
    async fn a_package_that_is_gone_is_to_be_fetched_again() {
        let failure = outcome_of(false).await;
        assert_eq!(failure.disposition, Disposition::Retry { after: None });
    }

    #[tokio::test]
    async fn what_is_no_unpack_job_is_poison() {
        let unpacker = Unpacker::new(Store::in_memory(), Arc::new(MemoryBus::new(1)));
        assert!(matches!(unpacker.work(Bytes::from_static(b"{}")).await, Work::Poison { .. }));
    }
}
