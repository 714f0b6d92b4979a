//! A message bus that counts its deliveries.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bus::{
    Bus, BusError, ConsumerSpec, Delivery, Depth, Filter, MessageId, OriginPermit, OriginQueues, Payload,
    Published, Queue,
};
use model::{Origin, SourceId};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use service::Metrics;
use tokio::sync::watch;

/// The interval of reads of a queue's depth.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Counts the deliveries of `bus`, together with those of the other services of this process.
pub(crate) fn counted(bus: Arc<dyn Bus>, metrics: &Metrics) -> Arc<dyn Bus> {
    Arc::new(CountedBus { bus, counted: Counted::of(metrics) })
}

/// Reports the depth of the queue of `filter`, for as long as it is awaited.
pub(crate) async fn tell_depth(bus: &dyn Bus, filter: &Filter, metrics: &Metrics) {
    let counted = Counted::of(metrics);
    let gauge = |state| counted.waiting.get_or_create_owned(&StateLabel { queue: queue_of(filter), state });
    let waiting = gauge("waiting");
    let in_flight = gauge("in-flight");
    let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    loop {
        // The readiness reports a bus that does not respond. Until it does, the last known depth stays.
        if let Ok(depth) = bus.depth(filter).await {
            waiting.set(whole(depth.waiting));
            in_flight.set(whole(depth.in_flight));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[derive(Debug, Clone, Default)]
struct Counted {
    deliveries: Family<DeliveryLabel, Counter>,
    dead: Counter,
    waiting: Family<StateLabel, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabel {
    queue: &'static str,
    delivery: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    queue: &'static str,
    state: &'static str,
}

impl Counted {
    fn of(metrics: &Metrics) -> Self {
        metrics.shared(|registry| {
            let counted = Self::default();
            // Export a zero before the first event, because `rate` ignores a series that begins with one.
            for queue in ["fetch", "verify", "open", "unpack", "outcomes", "notices"] {
                for delivery in ["first", "redelivery"] {
                    drop(counted.deliveries.get_or_create(&DeliveryLabel { queue, delivery }));
                }
            }
            registry.register(
                "bus_deliveries",
                "Messages handed out to this process, for the first time or again",
                counted.deliveries.clone(),
            );
            registry.register(
                "bus_dead_letters",
                "Dead letters found by the owners of their Sources",
                counted.dead.clone(),
            );
            registry.register(
                "bus_queue_messages",
                "Messages in a queue, over the whole fleet",
                counted.waiting.clone(),
            );
            counted
        })
    }

    fn count(&self, filter: &Filter, deliveries: &[Delivery]) {
        let again = deliveries.iter().filter(|delivery| delivery.attempt > 1).count() as u64;
        let first = deliveries.len() as u64 - again;
        if matches!(filter, Filter::Dead(_)) {
            self.dead.inc_by(first);
            return;
        }
        let queue = queue_of(filter);
        for (delivery, count) in [("first", first), ("redelivery", again)] {
            if count > 0 {
                self.deliveries.get_or_create(&DeliveryLabel { queue, delivery }).inc_by(count);
            }
        }
    }
}

fn queue_of(filter: &Filter) -> &'static str {
    match filter {
        Filter::Fetch(_) => "fetch",
        Filter::Verify => "verify",
        Filter::Open => "open",
        Filter::Unpack => "unpack",
        Filter::Outcomes(_) => "outcomes",
        Filter::Notices(_) => "notices",
        Filter::Dead(_) => "dead",
    }
}

#[derive(Debug)]
struct CountedBus {
    bus: Arc<dyn Bus>,
    counted: Counted,
}

#[async_trait]
impl Bus for CountedBus {
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        self.bus.open(spec).await
    }

    async fn close(&self, filter: &Filter) -> Result<bool, BusError> {
        self.bus.close(filter).await
    }

    fn origins(&self) -> watch::Receiver<OriginQueues> {
        self.bus.origins()
    }

    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<OriginPermit, BusError> {
        self.bus.acquire_permit(origin, limit).await
    }

    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<OriginPermit>, BusError> {
        self.bus.try_acquire_spare(origin).await
    }

    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError> {
        self.bus.publish(queue, id, payload).await
    }

    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        let pulled = self.bus.pull(filter, max, wait).await?;
        self.counted.count(filter, &pulled);
        Ok(pulled)
    }

    async fn caught_up(&self, filter: &Filter) -> Result<(), BusError> {
        self.bus.caught_up(filter).await
    }

    async fn purge(&self, source: &SourceId) -> Result<usize, BusError> {
        self.bus.purge(source).await
    }

    async fn depth(&self, filter: &Filter) -> Result<Depth, BusError> {
        self.bus.depth(filter).await
    }

    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError> {
        self.bus.under_way(source).await
    }
}

#[cfg(test)]
mod tests {
    use bus::{DeadLetter, MemoryBus};
    use model::JobId;
    use service::ServiceInfo;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_handed_out_again_and_what_was_given_up_is_counted_by_itself() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let bus = counted(Arc::new(MemoryBus::new(16)), &metrics);
        let source: SourceId = "s".parse().unwrap();
        for filter in [Filter::Verify, Filter::Dead(source.clone())] {
            bus.open(ConsumerSpec::new(filter, 4, Duration::from_secs(5), 5)).await.unwrap();
        }
        let queue = Queue::Verify { source: source.clone() };
        let id = queue.message_of(JobId::fresh());
        bus.publish(queue, id, "x".into()).await.unwrap();
        let pull =
            async |filter: Filter| bus.pull(&filter, 1, Duration::from_secs(1)).await.unwrap().remove(0);
        pull(Filter::Verify).await.nak(Duration::ZERO).await.unwrap();
        let told = tokio::time::timeout(Duration::from_secs(1), tell_depth(&*bus, &Filter::Verify, &metrics));
        told.await.unwrap_err();
        let delivery = pull(Filter::Verify).await;
        DeadLetter::bury(&*bus, &delivery, "it is no job").await.unwrap();
        delivery.term().await.unwrap();
        pull(Filter::Dead(source)).await.ack().await.unwrap();
        let text = metrics.encode();
        for line in [
            "thresher_bus_deliveries_total{queue=\"verify\",delivery=\"first\"} 1",
            "thresher_bus_deliveries_total{queue=\"verify\",delivery=\"redelivery\"} 1",
            "thresher_bus_deliveries_total{queue=\"fetch\",delivery=\"first\"} 0",
            "thresher_bus_dead_letters_total 1",
            "thresher_bus_queue_messages{queue=\"verify\",state=\"waiting\"}",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
