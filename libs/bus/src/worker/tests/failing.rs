//! The work loop on a bus that fails.

use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use model::Origin;
use tokio::sync::watch;

use super::*;
use crate::{OriginPermit, OriginQueues, Payload, Published, Receipt};

/// A bus that fails on request, like an unreachable server.
#[derive(Debug)]
struct Failing {
    bus: Arc<dyn Bus>,
    /// How many pulls fail, and with which error.
    pulls: (AtomicUsize, fn() -> BusError),
    /// How many acks fail.
    acks: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FailingReceipt {
    delivery: Delivery,
    acks: Arc<AtomicUsize>,
}

fn fails(left: &AtomicUsize, error: fn() -> BusError) -> Result<(), BusError> {
    match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
        Ok(_) => Err(error()),
        Err(_) => Ok(()),
    }
}

fn unavailable() -> BusError {
    BusError::Unavailable { action: "answer".to_owned(), source: "connection refused".into() }
}

#[async_trait]
impl Receipt for FailingReceipt {
    async fn ack(&self) -> Result<(), BusError> {
        fails(&self.acks, unavailable)?;
        self.delivery.ack().await
    }
    async fn nak(&self, delay: Duration) -> Result<(), BusError> {
        self.delivery.nak(delay).await
    }
    async fn progress(&self) -> Result<(), BusError> {
        self.delivery.progress().await
    }
    async fn term(&self) -> Result<(), BusError> {
        self.delivery.term().await
    }
}

#[async_trait]
impl Bus for Failing {
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        self.bus.open(spec).await
    }
    async fn close(&self, filter: &Filter) -> Result<bool, BusError> {
        self.bus.close(filter).await
    }
    fn origins(&self) -> watch::Receiver<OriginQueues> {
        self.bus.origins()
    }
    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError> {
        self.bus.publish(queue, id, payload).await
    }
    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        fails(&self.pulls.0, self.pulls.1)?;
        let pulled = self.bus.pull(filter, max, wait).await?;
        let wrap = |delivery: Delivery| {
            let receipt = FailingReceipt { acks: Arc::clone(&self.acks), delivery };
            Delivery::new(Message::clone(&receipt.delivery), Box::new(receipt))
        };
        Ok(pulled.into_iter().map(wrap).collect())
    }
    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<OriginPermit, BusError> {
        self.bus.acquire_permit(origin, limit).await
    }
    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<OriginPermit>, BusError> {
        self.bus.try_acquire_spare(origin).await
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

#[tokio::test(start_paused = true)]
async fn failing_bus_is_asked_again_and_an_ack_that_failed_costs_another_delivery() {
    let bus = bus_with(1).await;
    let failing: Arc<dyn Bus> = Arc::new(Failing {
        bus: Arc::clone(&bus),
        pulls: (AtomicUsize::new(3), unavailable),
        acks: Arc::new(AtomicUsize::new(1)),
    });
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let begin = Instant::now();
    let (stop, worker) = start(&failing, spec(2), move |message| {
        noted.lock().unwrap().push((message.attempt, begin.elapsed().as_secs()));
        async { HandlerResult::Done }
    });
    sleep(Duration::from_secs(30)).await;
    // Three pulls fail; the waits behind them are at least 1, 2 and 4 s, and at most twice as long.
    let times = times.lock().unwrap().clone();
    let at = times[0].1;
    assert!((7..=14).contains(&at), "{at} s");
    assert_eq!(times, [(1, at), (2, at)]);
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 0));
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn origin_whose_worker_found_it_closed_gets_another_worker_while_it_is_listed() {
    let bus = bus_with(0).await;
    let filter = origins::origin_spec(0, 1).filter().clone();
    bus.open(origins::origin_spec(0, 1)).await.unwrap();
    origins::publish_fetch(&bus, 0, "a").await;
    // Closed and reopened between two reads of the list: only the pull notices.
    let not_open = || BusError::NotOpen { filter: origins::origin_spec(0, 1).filter().clone() };
    let failing: Arc<dyn Bus> = Arc::new(Failing {
        bus: Arc::clone(&bus),
        pulls: (AtomicUsize::new(2), not_open),
        acks: Arc::default(),
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn(run_origins(failing, stop.clone(), |_| async { HandlerResult::Done }));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(depth(&bus, filter).await, (0, 0));
    stop.cancel();
    running.await.unwrap().unwrap();
}
