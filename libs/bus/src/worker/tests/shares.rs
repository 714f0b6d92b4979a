//! A slow Source leaves capacity to the others.

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// Queues so many messages of a Source.
async fn queue(bus: &Arc<dyn Bus>, source: &str, messages: usize) {
    let queue = Queue::Verify { source: source.parse().unwrap() };
    for n in 0..messages {
        let id = MessageId::new(format!("{source}-{n}"));
        let payload = source.to_owned().into();
        bus.publish(queue.clone(), id, payload).await.unwrap();
    }
}

/// Works with four slots, of which a Source may have two. Messages of `slow` last for ever. Returns what was done, and
/// what was given back.
fn start_sharing(bus: &Arc<dyn Bus>) -> (CancellationToken, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let done = Arc::clone(&told);
    let back = Arc::clone(&told);
    let shares = Shares::new(2, PATIENCE, move |message: Message| {
        back.lock().unwrap().push(format!("{} is given back", message.id));
        async { HandlerResult::Done }
    });
    let worker = Worker::new(Arc::clone(bus), move |message: Message| {
        let done = Arc::clone(&done);
        async move {
            if message.id.as_str().starts_with("slow") {
                std::future::pending::<()>().await;
            }
            done.lock().unwrap().push(message.id.to_string());
            HandlerResult::Done
        }
    });
    let worker = worker.within(Arc::new(Semaphore::new(4))).sharing(shares);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move { worker.run(spec(100), stopped).await });
    (stop, told)
}

#[tokio::test(start_paused = true)]
async fn source_holds_no_more_than_its_share_and_others_go_on() {
    let bus = bus_with(0).await;
    queue(&bus, "slow", 2).await;
    let (_stop, told) = start_sharing(&bus);
    settle_down().await;
    queue(&bus, "slow", 10).await;
    settle_down().await;
    queue(&bus, "honest", 3).await;
    settle_down().await;
    assert_eq!(*told.lock().unwrap(), ["honest-0", "honest-1", "honest-2"], "without any wait");
    assert_eq!(bus.depth(&Filter::Verify).await.unwrap().in_flight, 10);
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_in_its_share_is_given_back_after_a_while() {
    let bus = bus_with(0).await;
    queue(&bus, "slow", 3).await;
    let (_stop, told) = start_sharing(&bus);
    sleep(PATIENCE - Duration::from_millis(1)).await;
    assert!(told.lock().unwrap().is_empty());
    sleep(Duration::from_millis(2)).await;
    assert_eq!(*told.lock().unwrap(), ["slow-2 is given back"]);
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 2));
}
