//! One worker for every origin queue.

use model::Origin;

use super::*;

fn origin(n: usize) -> Origin {
    format!("http://h{n}.example.org").parse().unwrap()
}

pub(super) fn origin_spec(n: usize, max_in_flight: usize) -> ConsumerSpec {
    ConsumerSpec::new(Filter::Fetch(origin(n)), max_in_flight, ACK_WAIT, MAX_DELIVER)
}

pub(super) async fn publish_fetch(bus: &Arc<dyn Bus>, n: usize, id: &'static str) {
    let queue = Queue::Fetch { origin: origin(n), source: source() };
    bus.publish(queue, MessageId::new(id), id.into()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn origins_are_worked_as_they_come_each_with_its_own_limit() {
    let bus = bus_with(0).await;
    let stop = CancellationToken::new();
    bus.open(origin_spec(0, 1)).await.unwrap();
    let running = tokio::spawn(run_origins(Arc::clone(&bus), stop.clone(), |_| async {
        sleep(Duration::from_secs(3)).await;
        HandlerResult::Done
    }));
    for id in ["0a", "0b", "0c"] {
        publish_fetch(&bus, 0, id).await;
    }
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Fetch(origin(0))).await, (2, 1));
    // Another origin queue, while the first is busy.
    bus.open(origin_spec(1, 2)).await.unwrap();
    for id in ["1a", "1b", "1c"] {
        publish_fetch(&bus, 1, id).await;
    }
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Fetch(origin(1))).await, (1, 2));
    // Raise the limit of the first.
    bus.open(origin_spec(0, 3)).await.unwrap();
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Fetch(origin(0))).await, (0, 3));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(depth(&bus, Filter::Fetch(origin(0))).await, (0, 0));
    assert_eq!(depth(&bus, Filter::Fetch(origin(1))).await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn origin_that_is_closed_and_opened_again_is_worked_again() {
    let bus = bus_with(0).await;
    let stop = CancellationToken::new();
    let running =
        tokio::spawn(run_origins(Arc::clone(&bus), stop.clone(), |_| async { HandlerResult::Done }));
    for (id, pause) in [("a", None), ("b", Some(Duration::from_secs(30))), ("c", None)] {
        bus.open(origin_spec(0, 1)).await.unwrap();
        publish_fetch(&bus, 0, id).await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(depth(&bus, Filter::Fetch(origin(0))).await, (0, 0), "{id}");
        assert!(bus.close(&Filter::Fetch(origin(0))).await.unwrap());
        // Without a pause, the list of origin queues looks unchanged.
        if let Some(pause) = pause {
            sleep(pause).await;
        }
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn halt_in_one_origin_stops_them_all() {
    let bus = bus_with(0).await;
    for n in 0..2 {
        bus.open(origin_spec(n, 1)).await.unwrap();
    }
    publish_fetch(&bus, 0, "halts").await;
    publish_fetch(&bus, 1, "slow").await;
    let ended = run_origins(Arc::clone(&bus), CancellationToken::new(), |message| async move {
        if message.payload.to_bytes() == "halts" {
            return HandlerResult::Halt { why: "no room".to_owned() };
        }
        sleep(Duration::from_secs(3)).await;
        HandlerResult::Done
    })
    .await;
    assert!(matches!(&ended, Err(BusError::Halted { why, .. }) if why == "no room"), "{ended:?}");
    assert_eq!(depth(&bus, Filter::Fetch(origin(1))).await, (0, 0), "what ran was finished");
}
