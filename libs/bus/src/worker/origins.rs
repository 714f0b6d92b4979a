//! One worker for every open origin queue.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use model::Origin;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{HandlerResult, Worker};
use crate::{BusError, ConsumerSpec, Message, OriginQueues};

/// The wait after a worker found its origin queue closed, before a new worker checks whether it is open again.
const CLOSED_WAIT: Duration = Duration::from_secs(1);

/// The running workers.
#[derive(Debug, Default)]
struct Running {
    origins: BTreeMap<Origin, OriginWorker>,
    tasks: JoinSet<Result<(), BusError>>,
}

/// The worker of an origin queue, and the consumer it was started for.
#[derive(Debug)]
struct OriginWorker {
    spec: ConsumerSpec,
    stop: CancellationToken,
    task: Id,
}

impl<H, F> Worker<H>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    /// Handles the fetch jobs of every open origin queue, each with its own limit. Workers start and stop as origin
    /// queues open and close. When `stop` is cancelled, it pulls no more, completes the running jobs and returns.
    ///
    /// # Errors
    /// [`BusError::Halted`] when a handler said so, after the running jobs of all origins were finished.
    pub async fn run_origins(&self, stop: CancellationToken) -> Result<(), BusError> {
        let mut origins = self.bus.origins();
        // Cancelled when this function ends, so that a halt at one origin stops all workers.
        let stop = stop.child_token();
        let mut running = Running::default();
        let mut ended = Ok(());
        while ended.is_ok() {
            let now = OriginQueues::clone(&origins.borrow_and_update());
            self.follow(&now, &mut running, &stop);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = running.tasks.join_next_with_id() => ended = running.ended(done),
                changed = origins.changed() => if changed.is_err() { break },
            }
        }
        stop.cancel();
        while let Some(done) = running.tasks.join_next_with_id().await {
            ended = ended.and(running.ended(done));
        }
        ended
    }

    /// Starts a worker for each origin queue without one, stops those of closed queues, and replaces those of changed
    /// ones. A replaced worker finishes its jobs; the bus enforces the limit over both.
    fn follow(&self, now: &OriginQueues, running: &mut Running, stop: &CancellationToken) {
        running.origins.retain(|origin, worker| {
            let stays = now.get(origin) == Some(&worker.spec);
            if !stays {
                worker.stop.cancel();
            }
            stays
        });
        for (origin, spec) in now.iter() {
            if !running.origins.contains_key(origin) {
                let worker = self.clone();
                let spec = spec.clone();
                let stop = stop.child_token();
                let task = running.tasks.spawn(work_origin(worker, spec.clone(), stop.clone())).id();
                running.origins.insert(origin.clone(), OriginWorker { spec, stop, task });
            }
        }
    }
}

impl Running {
    /// Records the end of a worker, so that its origin queue gets another one if it is open.
    fn ended(&mut self, done: Result<(Id, Result<(), BusError>), JoinError>) -> Result<(), BusError> {
        let (task, ended) = done.unwrap_or_else(|error| {
            tracing::error!(%error, "the worker of an origin queue died");
            (error.id(), Ok(()))
        });
        self.origins.retain(|_, worker| worker.task != task);
        ended
    }
}

async fn work_origin<H, F>(
    worker: Worker<H>,
    spec: ConsumerSpec,
    stop: CancellationToken,
) -> Result<(), BusError>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    match worker.run(spec, stop.clone()).await {
        Err(BusError::NotOpen { .. }) => {
            // The list of origin queues is about to report the end of this one, or has reported it.
            let _ = tokio::time::timeout(CLOSED_WAIT, stop.cancelled()).await;
            Ok(())
        }
        ended => ended,
    }
}
