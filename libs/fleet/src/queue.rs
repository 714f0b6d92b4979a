//! A stage with a single job queue for the whole fleet.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bus::worker::Worker;
use bus::{Bus, ConsumerSpec, Filter, HandlerResult, Message};
use service::Context;

use crate::bus::open_consumer;
use crate::counted_bus::tell_depth;

/// How long a job may be without progress reports before it counts as lost. A worker sends three of them in this time.
const ACK_WAIT: Duration = Duration::from_secs(15);
/// Deliveries of a message before it is given up as poison.
const MAX_DELIVER: u32 = 20;
/// Jobs in flight over the whole fleet.
const MAX_IN_FLIGHT: usize = 1024;

/// Lets `handler` work on the messages of `filter`, at most `max_concurrent_jobs` in this process, until the service is
/// to stop. Then it completes the current jobs.
///
/// # Errors
/// When the bus refuses the consumer, or a handler says that nothing works until an operator acts.
pub async fn work_queue<C, H, F>(
    context: &Context<C>,
    bus: Arc<dyn Bus>,
    filter: Filter,
    max_concurrent_jobs: usize,
    handler: H,
) -> anyhow::Result<()>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    let Context { readiness, stop, metrics, .. } = context;
    let spec = ConsumerSpec::new(filter, MAX_IN_FLIGHT, ACK_WAIT, MAX_DELIVER);
    open_consumer(&bus, &spec, readiness, stop).await?;
    let filter = spec.filter().clone();
    let worker = Worker::new(Arc::clone(&bus), handler).at_most(max_concurrent_jobs);
    tokio::select! {
        worked = worker.run(spec, stop.clone()) => worked?,
        () = tell_depth(&*bus, &filter, metrics) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bus::{MemoryBus, Queue};
    use model::JobId;
    use secrets::Vars;
    use service::{Metrics, Readiness, ServiceInfo};
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_jobs_than_told_are_worked_on_at_a_time_and_those_in_hand_are_finished_at_a_stop() {
        let context = Context {
            config: (),
            vars: Vars::default(),
            readiness: Readiness::default(),
            metrics: Metrics::new(ServiceInfo { name: "test", version: "0" }),
            stop: CancellationToken::new(),
        };
        let bus: Arc<dyn Bus> = Arc::new(MemoryBus::new(16));
        for _ in 0..12 {
            let queue = Queue::Verify { source: "s".parse().unwrap() };
            let id = queue.message_of(JobId::fresh());
            bus.publish(queue, id, "a job".into()).await.unwrap();
        }
        let at_a_time = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let counts = Arc::new((at_a_time, most, done));
        let seen = Arc::clone(&counts);
        let stop = context.stop.clone();
        let handler = move |_| {
            let seen = Arc::clone(&seen);
            let stop = stop.clone();
            async move {
                let now = seen.0.fetch_add(1, Ordering::SeqCst) + 1;
                seen.1.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                seen.0.fetch_sub(1, Ordering::SeqCst);
                if seen.2.fetch_add(1, Ordering::SeqCst) == 2 {
                    stop.cancel();
                }
                HandlerResult::Done
            }
        };
        work_queue(&context, Arc::clone(&bus), Filter::Verify, 2, handler).await.unwrap();
        assert_eq!(counts.1.load(Ordering::SeqCst), 2);
        let done = counts.2.load(Ordering::SeqCst);
        let left = bus.depth(&Filter::Verify).await.unwrap();
        assert_eq!((counts.0.load(Ordering::SeqCst), left.waiting + done, left.in_flight), (0, 12, 0));
        assert!(done >= 3, "stopped with {done} done");
    }
}
