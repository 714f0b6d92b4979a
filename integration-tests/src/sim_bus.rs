//! The in-process bus, with lost, late and repeated messages for one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bus::{
    Bus, BusError, ConsumerSpec, Delivery, Depth, Filter, MemoryBus, MessageId, OriginPermit, OriginQueues,
    Payload, Published, Queue, Receipt,
};
use model::{Origin, SourceId};
use tokio::sync::watch;

use crate::effects::Effects;

/// The in-process bus behind a process's effects.
#[derive(Debug)]
pub(crate) struct SimBus {
    inner: MemoryBus,
    effects: Arc<Effects>,
    most_under_way: AtomicUsize,
    most_origins: AtomicUsize,
}

/// Acknowledges a delivery, or loses the acknowledgement.
#[derive(Debug)]
struct SimReceipt {
    delivery: Delivery,
    effects: Arc<Effects>,
}

impl SimBus {
    /// `inner`, behind the effects of a process.
    pub(crate) fn new(inner: MemoryBus, effects: Arc<Effects>) -> Self {
        Self { inner, effects, most_under_way: AtomicUsize::new(0), most_origins: AtomicUsize::new(0) }
    }

    /// The most messages that were under way at the same time.
    pub(crate) fn most_under_way(&self) -> usize {
        self.most_under_way.load(Ordering::SeqCst)
    }

    /// The most origins that had a queue of jobs at the same time.
    pub(crate) fn most_origins(&self) -> usize {
        self.most_origins.load(Ordering::SeqCst)
    }

    /// The dead letters of a Source that are left, whether its process lives or not.
    pub(crate) async fn dead_letters(&self, source: &SourceId) -> usize {
        let depth = self.inner.depth(&Filter::Dead(source.clone())).await;
        let depth = depth.expect("the depth of a queue in memory");
        depth.waiting + depth.in_flight
    }

    async fn late(&self, lot: u64) {
        match self.effects.rates.delay_ms {
            0 => {}
            most => tokio::time::sleep(Duration::from_millis(lot % most)).await,
        }
    }
}

fn lost(action: &str) -> BusError {
    BusError::Unavailable { action: action.to_owned(), source: "the simulation lost it".into() }
}

#[async_trait]
impl Bus for SimBus {
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        self.effects.alive().await;
        self.inner.open(spec).await?;
        self.most_origins.fetch_max(self.inner.origins().borrow().len(), Ordering::SeqCst);
        Ok(())
    }

    async fn close(&self, filter: &Filter) -> Result<bool, BusError> {
        self.effects.alive().await;
        self.inner.close(filter).await
    }

    fn origins(&self) -> watch::Receiver<OriginQueues> {
        self.inner.origins()
    }

    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError> {
        let source = queue.source().clone();
        let begun = self.effects.begin(format!("publish {id}")).await;
        if begun.is_one_of(self.effects.rates.refused, 1) {
            return Err(lost("queue a message"));
        }
        let published = self.inner.publish(queue, id, payload).await;
        self.most_under_way.fetch_max(self.inner.under_way(&source).await?, Ordering::SeqCst);
        self.effects.end(begun).await;
        self.late(begun.lot).await;
        if begun.is_one_of(self.effects.rates.unsure, 2) {
            Err(lost("hear that a message is queued"))
        } else {
            published
        }
    }

    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        self.effects.alive().await;
        let pulled = self.inner.pull(filter, max, wait).await?;
        self.effects.alive().await;
        let mut deliveries = Vec::new();
        for delivery in pulled {
            let begun =
                self.effects.begin(format!("pull {} for the {}. time", delivery.id, delivery.attempt)).await;
            // If it is dropped, it is delivered again, but never until its deliveries run out: no worker has
            // handled it.
            if delivery.attempt < 4 && begun.is_one_of(self.effects.rates.redelivered, 3) {
                continue;
            }
            self.late(begun.lot).await;
            let message = bus::Message::clone(&delivery);
            let receipt = SimReceipt { delivery, effects: Arc::clone(&self.effects) };
            deliveries.push(Delivery::new(message, Box::new(receipt)));
        }
        Ok(deliveries)
    }

    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<OriginPermit, BusError> {
        self.effects.alive().await;
        self.inner.acquire_permit(origin, limit).await
    }

    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<OriginPermit>, BusError> {
        self.effects.alive().await;
        self.inner.try_acquire_spare(origin).await
    }

    async fn caught_up(&self, filter: &Filter) -> Result<(), BusError> {
        self.effects.alive().await;
        self.inner.caught_up(filter).await
    }

    async fn purge(&self, source: &SourceId) -> Result<usize, BusError> {
        self.effects.alive().await;
        self.inner.purge(source).await
    }

    async fn depth(&self, filter: &Filter) -> Result<Depth, BusError> {
        self.effects.alive().await;
        self.inner.depth(filter).await
    }

    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError> {
        self.effects.alive().await;
        self.inner.under_way(source).await
    }
}

#[async_trait]
impl Receipt for SimReceipt {
    async fn ack(&self) -> Result<(), BusError> {
        let begun = self.effects.begin(format!("ack {}", self.delivery.id)).await;
        if begun.is_one_of(self.effects.rates.lost_acks, 4) {
            return Err(lost("acknowledge a message"));
        }
        let answered = self.delivery.ack().await;
        self.effects.end(begun).await;
        answered
    }

    async fn nak(&self, delay: Duration) -> Result<(), BusError> {
        let begun = self.effects.begin(format!("nak {}", self.delivery.id)).await;
        let answered = self.delivery.nak(delay).await;
        self.effects.end(begun).await;
        answered
    }

    async fn progress(&self) -> Result<(), BusError> {
        self.effects.alive().await;
        self.delivery.progress().await
    }

    async fn term(&self) -> Result<(), BusError> {
        let begun = self.effects.begin(format!("term {}", self.delivery.id)).await;
        let answered = self.delivery.term().await;
        self.effects.end(begun).await;
        answered
    }
}
