//! One worker for every open origin queue.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use model::Lane;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::{HandlerResult, Worker};
use crate::{BusError, ConsumerSpec, Message, OriginQueues};

/// The wait after a worker found its origin queue closed, before a new worker checks whether it is open again.
const CLOSED_WAIT: Duration = Duration::from_secs(1);

/// The running workers.
#[derive(Debug, Default)]
struct Running {
    lanes: BTreeMap<Lane, OriginWorker>,
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
    pub async fn run_lanes(&self, stop: CancellationToken) -> Result<(), BusError> {
        let mut lanes = self.bus.lanes();
        // Cancelled when this function ends, so that a halt at one origin stops all workers.
        let stop = stop.child_token();
        let mut running = Running::default();
        let mut ended = Ok(());
        while ended.is_ok() {
            let now = OriginQueues::clone(&lanes.borrow_and_update());
            self.follow(&now, &mut running, &stop);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = running.tasks.join_next_with_id() => ended = running.ended(done),
                changed = lanes.changed() => if changed.is_err() { break },
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
        running.lanes.retain(|lane, worker| {
            let stays = now.get(lane) == Some(&worker.spec);
            if !stays {
                worker.stop.cancel();
            }
            stays
        });
        for (lane, spec) in now.iter() {
            if !running.lanes.contains_key(lane) {
                let worker = self.clone();
                let spec = spec.clone();
                let stop = stop.child_token();
                let task = running.tasks.spawn(work_lane(worker, spec.clone(), stop.clone())).id();
                running.lanes.insert(lane.clone(), OriginWorker { spec, stop, task });
            }
        }
    }
}

impl Running {
    /// Records the end of a worker, so that its origin queue gets another one if it is open.
    fn ended(&mut self, done: Result<(Id, Result<(), BusError>), JoinError>) -> Result<(), BusError> {
        let (task, ended) = done.unwrap_or_else(|error| {
            tracing::error!(%error, "the worker of a lane died");
            (error.id(), Ok(()))
        });
        self.lanes.retain(|_, worker| worker.task != task);
        ended
    }
}

async fn work_lane<H, F>(
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
