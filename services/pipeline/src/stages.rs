//! The stages that run beside the scheduler, in this process, over the in-process bus. They are the code of the
//! services.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bus::worker::{HandlerError, HandlerResult, Worker};
use bus::{Bus, BusError, ConsumerSpec, Filter, Message};
use fetcher::{Fetcher, FetcherConfig};
use model::Clock;
use store::Store;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use unpacker::{Unpacker, UnpackerConfig};
use verifier::Verifier;
use web::Client;

/// Verify jobs processed concurrently.
const VERIFIERS: usize = 2;
/// Packages opened concurrently.
const OPENERS: usize = 2;
/// Slices of packages processed concurrently.
const UNPACKERS: usize = 2;
/// How long a verify or unpack job may be silent before it counts as lost.
const ACK_WAIT: Duration = Duration::from_secs(60);
/// Deliveries of one message before it counts as poison.
const MAX_DELIVER: u32 = 20;
/// Failed deliveries of one message before the run stops: on a laptop the operator can look at the failure. A poison
/// message is no such failure: the run goes on, and records it as a problem.
const PATIENCE: u32 = 4;

/// The running stages. Dropping them ends them where they are, as when the process is killed.
#[derive(Debug)]
pub struct Pipeline {
    /// The bus that they take their jobs from.
    pub bus: Arc<dyn Bus>,
    stages: JoinSet<Result<(), BusError>>,
    stop: CancellationToken,
    trouble: watch::Receiver<Option<String>>,
}

impl Pipeline {
    /// Starts fetcher, verifier and unpacker on `bus`.
    ///
    /// # Errors
    /// When the bus cannot open their queues.
    pub async fn start(
        bus: Arc<dyn Bus>,
        client: &Client,
        store: &Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BusError> {
        let stop = CancellationToken::new();
        let (report, trouble) = watch::channel(None);
        let mut stages = JoinSet::new();

        let fetcher = Fetcher::new(
            client.clone(),
            store.clone(),
            Arc::clone(&bus),
            Arc::clone(&clock),
            FetcherConfig::default(),
        )
        .stopped_by(stop.clone());
        let fetchers = worker(&bus, report.clone(), move |message| {
            let fetcher = fetcher.clone();
            async move { fetcher.work(message.payload).await }
        });
        let stopped = stop.clone();
        stages.spawn(async move { fetchers.run_origins(stopped).await });

        let spec = ConsumerSpec::new(Filter::Verify, VERIFIERS, ACK_WAIT, MAX_DELIVER);
        bus.open(spec.clone()).await?;
        let verifier = Verifier::new(store.clone(), Arc::clone(&bus));
        let verifiers = worker(&bus, report.clone(), move |message| {
            let verifier = verifier.clone();
            async move { verifier.work(message.payload).await }
        });
        let stopped = stop.clone();
        stages.spawn(async move { verifiers.run(spec, stopped).await });

        let config = UnpackerConfig::default();
        let unpacker = Unpacker::new(store.clone(), Arc::clone(&bus), clock, config).stopped_by(stop.clone());
        let unpackers = worker(&bus, report, move |message| {
            let unpacker = unpacker.clone();
            async move { unpacker.work(message.payload, message.attempt).await }
        });
        for (filter, at_a_time) in [(Filter::Open, OPENERS), (Filter::Unpack, UNPACKERS)] {
            let spec = ConsumerSpec::new(filter, at_a_time, ACK_WAIT, MAX_DELIVER);
            bus.open(spec.clone()).await?;
            let unpackers = unpackers.clone();
            let stopped = stop.clone();
            stages.spawn(async move { unpackers.run(spec, stopped).await });
        }
        Ok(Self { bus, stages, stop, trouble })
    }

    /// Returns the error when a stage fails repeatedly. Otherwise never returns.
    pub async fn trouble(&self) -> String {
        let mut trouble = self.trouble.clone();
        match trouble.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Stops pulling jobs, and waits for those in progress.
    pub async fn finish(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.stages.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "a stage ended with an error"),
                Err(error) => tracing::error!(%error, "a stage panicked"),
            }
        }
    }
}

/// A worker that sends its lasting failure to `report`.
fn worker<H, F>(bus: &Arc<dyn Bus>, report: watch::Sender<Option<String>>, handler: H) -> Worker<H>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    Worker::new(Arc::clone(bus), handler).observed(move |trouble: HandlerError| {
        tracing::warn!(message.id = %trouble.id, attempt = trouble.attempt, why = trouble.why, "a job has to wait");
        if !trouble.given_up && trouble.attempt >= PATIENCE {
            report.send_replace(Some(trouble.why));
        }
    })
}
