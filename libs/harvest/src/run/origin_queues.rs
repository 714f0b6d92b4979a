//! The queues of a run: opened when needed, closed when nothing is left for them.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, ConsumerSpec, Filter, Queue};
use futures::StreamExt;
use model::{FetchJob, JobId, Origin};

use crate::error::HarvestError;
use crate::run::RunContext;

/// How long a job may be silent before it counts as lost. A killed fetcher keeps its permits at the origin for this
/// time.
const JOB_WAIT: Duration = Duration::from_secs(15);
/// How long outcomes and dead letters may be silent. The scheduler sends no sign of life while it settles them, and a
/// store may be slow.
const OUTCOMES_WAIT: Duration = Duration::from_secs(60);
/// Deliveries of one message before it counts as poison.
const MAX_DELIVER: u32 = 20;
/// Outcome messages, and dead letters, in flight.
const OUTCOMES_IN_FLIGHT: usize = 64;
/// Origin queues closed concurrently.
const SIDE_BY_SIDE: usize = 16;

impl RunContext {
    /// Opens the outcome queues, and drops the jobs that an earlier owner left. Their pending records are scanned
    /// again, so the jobs would run twice.
    pub(crate) async fn open_queues(&self) -> Result<(), HarvestError> {
        let outcomes = Filter::Outcomes(self.source.clone());
        let letters = Filter::Dead(self.source.clone());
        for filter in [outcomes, letters] {
            self.bus.open(ConsumerSpec::new(filter, OUTCOMES_IN_FLIGHT, OUTCOMES_WAIT, MAX_DELIVER)).await?;
        }
        self.bus.purge(&self.source).await?;
        Ok(())
    }

    /// Queues a job.
    pub(crate) async fn queue_job(&self, job: FetchJob) -> Result<(), HarvestError> {
        let origin = job.origin.clone();
        let id = job.id;
        self.queue_fetch(&origin, id, job).await
    }

    /// Queues a job of any kind for the fetchers, in an open origin queue.
    pub(crate) async fn queue_fetch<M: model::Message>(
        &self,
        origin: &Origin,
        id: JobId,
        job: M,
    ) -> Result<(), HarvestError> {
        self.open_origin(origin).await?;
        let queue = Queue::Fetch { origin: origin.clone(), source: self.source.clone() };
        bus::send(&*self.bus, queue, id, Arc::new(job)).await?;
        let listed = self.bus.origins().borrow().contains_key(origin);
        if !listed {
            // Another Source that used this origin has closed the queue meanwhile.
            self.open_origin(origin).await?;
        }
        Ok(())
    }

    /// Closes queues that are no longer needed. Queues that other Sources still use stay open.
    pub(crate) async fn close_queues(&self, origins: impl IntoIterator<Item = Origin>) {
        let ways_back = [Filter::Outcomes(self.source.clone()), Filter::Dead(self.source.clone())];
        close(self.bus.as_ref(), origins.into_iter().map(Filter::Fetch).chain(ways_back)).await;
    }

    /// Closes origin queues within the run. Returns those that stay open: other Sources use them, or a job of this
    /// run is not acknowledged yet.
    pub(crate) async fn close_origins(&self, origins: impl IntoIterator<Item = Origin>) -> Vec<Origin> {
        let open = close(self.bus.as_ref(), origins.into_iter().map(Filter::Fetch)).await;
        let origin_of = |filter| if let Filter::Fetch(origin) = filter { Some(origin) } else { None };
        open.into_iter().filter_map(origin_of).collect()
    }

    /// Opens an origin queue. An open queue never gets a higher limit: another Source may have a stricter limit for
    /// the origin, and have work there.
    pub(crate) async fn open_origin(&self, origin: &Origin) -> Result<(), HarvestError> {
        let open = self.bus.origins().borrow().get(origin).map(ConsumerSpec::max_in_flight);
        let limit = self.options.jobs_per_origin.get().min(open.unwrap_or(usize::MAX));
        let spec = ConsumerSpec::new(Filter::Fetch(origin.clone()), limit, JOB_WAIT, MAX_DELIVER);
        Ok(self.bus.open(spec).await?)
    }
}

/// Closes consumers without messages. An idle origin queue would keep a worker of every fetcher waiting. Returns
/// those that stay open.
async fn close(bus: &dyn Bus, filters: impl Iterator<Item = Filter>) -> Vec<Filter> {
    let close = |filter: Filter| async move {
        match bus.close(&filter).await {
            Ok(closed) => {
                tracing::debug!(%filter, closed, "closed a queue of the run, unless others use it");
                (!closed).then_some(filter)
            }
            Err(error) => {
                // It is empty, and costs little until another run closes it.
                tracing::warn!(%error, %filter, "cannot close a queue that is not needed any more");
                Some(filter)
            }
        }
    };
    let closed = futures::stream::iter(filters).map(close).buffer_unordered(SIDE_BY_SIDE);
    closed.filter_map(std::future::ready).collect().await
}

#[cfg(test)]
mod tests {
    use bus::{BusError, MemoryBus, MessageId};

    use super::*;

    #[tokio::test]
    async fn origins_of_a_run_are_closed_but_those_that_others_use() {
        let bus = MemoryBus::new(10);
        let [idle, busy]: [Origin; 2] = ["http://a", "http://b"].map(|origin| origin.parse().unwrap());
        for origin in [&idle, &busy] {
            bus.open(ConsumerSpec::new(Filter::Fetch(origin.clone()), 1, JOB_WAIT, MAX_DELIVER))
                .await
                .unwrap();
        }
        let queue = Queue::Fetch { origin: busy.clone(), source: "other".parse().unwrap() };
        bus.publish(queue, MessageId::new("a"), "".into()).await.unwrap();
        let open = close(&bus, [&idle, &busy].into_iter().cloned().map(Filter::Fetch)).await;
        assert_eq!(open, [Filter::Fetch(busy.clone())]);
        assert_eq!(bus.origins().borrow().keys().collect::<Vec<_>>(), [&busy]);
        let pulled = bus.pull(&Filter::Fetch(idle), 1, Duration::ZERO).await;
        assert!(matches!(pulled, Err(BusError::NotOpen { .. })), "{pulled:?}");
    }
}
