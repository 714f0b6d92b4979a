//! An unpack job: received, processed, and answered with outcomes.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, Filter, HandlerResult, Payload, Queue};
use fixity::Verdict;
use model::{Clock, PackageOutcome, PackageResult, UnpackJob, UnpackTask};
use store::{Store, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::UnpackError;
use crate::{UnpackerConfig, UnpackerMetrics, failure, index};

/// Part number of the final failure of a job with several parts.
const FAILED: u32 = u32::MAX;
/// Part number of the outcome for a job that another unpacker had begun.
const INTERRUPTED: u32 = u32::MAX - 1;

/// Processes unpack jobs.
#[derive(Debug, Clone)]
pub struct Unpacker {
    pub(crate) store: Store,
    bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Arc<UnpackerConfig>,
    pub(crate) metrics: UnpackerMetrics,
    pub(crate) indexes: index::Remembered,
    stop: CancellationToken,
}

/// Sends the outcomes of a job, in order.
pub(crate) struct Answers<'a> {
    unpacker: &'a Unpacker,
    pub(crate) job: &'a UnpackJob,
    /// Delivery count of the job, from 1.
    attempt: u32,
    started: Instant,
    /// Whether any outcome was sent.
    begun: bool,
}

impl Unpacker {
    /// An unpacker of packages in `store` that reports on `bus`.
    pub fn new(store: Store, bus: Arc<dyn Bus>, clock: Arc<dyn Clock>, config: UnpackerConfig) -> Self {
        let (metrics, indexes, stop) = Default::default();
        Self { store, bus, clock, config: Arc::new(config), metrics, indexes, stop }
    }

    /// Adds metrics.
    #[must_use]
    pub fn counted(self, metrics: UnpackerMetrics) -> Self {
        Self { metrics, ..self }
    }

    /// Leaves long jobs to others once `stop` is cancelled: unpacking from the beginning may take hours.
    #[must_use]
    pub fn stopped_by(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Processes one message, in its `attempt`th delivery. The returned value says whether it may be acknowledged.
    pub async fn work(&self, payload: Payload, attempt: u32) -> HandlerResult {
        HandlerResult::from_result(self.try_work(&payload, attempt).await)
    }

    async fn try_work(&self, payload: &Payload, attempt: u32) -> Result<(), HandlerResult> {
        let job = payload.read::<UnpackJob>().map_err(HandlerResult::poison)?;
        tracing::debug!(package.uri = %job.uri, task = ?job.task, "an unpack job begins");
        let mut answers =
            Answers { unpacker: self, job: &job, attempt, started: Instant::now(), begun: false };
        let worked = match job.task {
            UnpackTask::Open { settled, .. } => self.open(&mut answers, settled).await,
            UnpackTask::Slice { index, number } => self.slice(&mut answers, index, number).await,
        };
        match worked {
            Ok(()) => Ok(()),
            Err(trouble) => answers.fail(trouble).await,
        }
    }
}

impl Answers<'_> {
    /// Whether another unpacker had this job before, and did not finish it.
    pub(crate) fn is_begun_already(&self) -> bool {
        self.attempt > 1
    }

    /// Checks whether to continue a long job.
    pub(crate) fn go_on(&self) -> Result<(), UnpackError> {
        if self.unpacker.stop.is_cancelled() { Err(UnpackError::Stopping) } else { Ok(()) }
    }

    /// Waits until no sent outcome could be lost if this process ended now. Then a slice may be stored.
    pub(crate) async fn caught_up(&self) -> Result<(), UnpackError> {
        let outcomes = Filter::Outcomes(self.job.source.clone());
        tokio::select! {
            caught_up = self.unpacker.bus.caught_up(&outcomes) => Ok(caught_up?),
            () = self.unpacker.stop.cancelled() => Err(UnpackError::Stopping),
        }
    }

    /// Sends the outcome of the whole job.
    pub(crate) async fn say(&mut self, result: PackageResult) -> Result<(), UnpackError> {
        self.publish(None, result).await
    }

    /// Sends the outcome of one of several parts of the job. A repetition of the job uses the same numbers.
    pub(crate) async fn say_part(&mut self, part: u32, result: PackageResult) -> Result<(), UnpackError> {
        self.publish(Some(part), result).await
    }

    /// Reports that another unpacker had begun this job.
    pub(crate) async fn say_interrupted(&mut self, settled: u32) -> Result<(), UnpackError> {
        self.publish(Some(INTERRUPTED), PackageResult::Interrupted { settled }).await
    }

    /// Turns some errors into outcomes; after others the job must be repeated.
    async fn fail(&mut self, trouble: UnpackError) -> Result<(), HandlerResult> {
        let uri = &self.job.uri;
        let failure = match trouble {
            UnpackError::Store(error @ (StoreError::NotFound { .. } | StoreError::Damaged { .. })) => {
                failure::missing(uri, &error.to_string())
            }
            UnpackError::Package(error) => failure::of_package(uri, &self.job.task, &error, self.is_proved()),
            UnpackError::Manifest(error) => failure::of_manifest(uri, &error),
            UnpackError::Refused { reason, message } => {
                failure::refused(reason, format!("the package {uri} is not read: {message}"))
            }
            UnpackError::Poison(why) => return Err(HandlerResult::poison(why)),
            UnpackError::Stopping => {
                let after = Some(Duration::ZERO);
                let why = UnpackError::Stopping.to_string();
                return Err(HandlerResult::Later { after, why });
            }
            later @ (UnpackError::Store(_) | UnpackError::Bus(_) | UnpackError::Ours(_)) => {
                return Err(HandlerResult::later(later));
            }
        };
        tracing::warn!(package.uri = %uri, reason = failure.reason.as_str(), why = failure.message, "a package is not read");
        // After parts, the failure has a name of its own too.
        let part = self.begun.then_some(FAILED);
        self.publish(part, PackageResult::Failed(failure)).await.map_err(HandlerResult::later)
    }

    /// Whether the bytes are proved to be those that the dump declares.
    fn is_proved(&self) -> bool {
        let UnpackJob { declaration, stored, .. } = self.job;
        let verdict = fixity::judge(&declaration.digests, declaration.length, &stored.computed);
        matches!(verdict, Verdict::Verified { .. })
    }

    async fn publish(&mut self, part: Option<u32>, result: PackageResult) -> Result<(), UnpackError> {
        let UnpackJob { id, source, run, origin, uri, seq, .. } = self.job.clone();
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let queue = Queue::Outcomes { source: source.clone() };
        let outcome = PackageOutcome { id, source, run, origin, uri, seq, requests: 0, elapsed_ms, result };
        let outcome = Arc::new(outcome);
        let bus = &*self.unpacker.bus;
        match part {
            None => bus::send(bus, queue, id, Arc::clone(&outcome)).await?,
            Some(part) => bus::send_part(bus, queue, id, part, Arc::clone(&outcome)).await?,
        };
        self.begun = true;
        self.unpacker.metrics.count(&outcome.result);
        Ok(())
    }
}
