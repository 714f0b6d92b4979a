//! The work loop on the in-process bus.

mod failing;
mod origin_shares;
mod origins;
mod shares;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use model::SourceId;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{DeadLetter, Depth, MemoryBus, Queue};

const ACK_WAIT: Duration = Duration::from_secs(10);
const MAX_DELIVER: u32 = 3;

fn source() -> SourceId {
    "s".parse().unwrap()
}

fn verify() -> Queue {
    Queue::Verify { source: source() }
}

fn dead() -> Filter {
    Filter::Dead(source())
}

fn spec(max_in_flight: usize) -> ConsumerSpec {
    ConsumerSpec::new(Filter::Verify, max_in_flight, ACK_WAIT, MAX_DELIVER)
}

async fn bus_with(messages: usize) -> Arc<dyn Bus> {
    let bus = MemoryBus::new(100);
    bus.open(spec(100)).await.unwrap();
    for n in 0..messages {
        bus.publish(verify(), MessageId::new(n.to_string()), n.to_string().into()).await.unwrap();
    }
    Arc::new(bus)
}

async fn depth(bus: &Arc<dyn Bus>, filter: Filter) -> (usize, usize) {
    let Depth { waiting, in_flight } = bus.depth(&filter).await.unwrap();
    (waiting, in_flight)
}

/// Runs a worker concurrently with the test. Paused time stands still while any task can run, so a sleep of the test
/// lets all of them come to rest.
fn start<H, F>(
    bus: &Arc<dyn Bus>,
    spec: ConsumerSpec,
    handler: H,
) -> (CancellationToken, JoinHandle<Result<(), BusError>>)
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    let stop = CancellationToken::new();
    (stop.clone(), tokio::spawn(run(Arc::clone(bus), spec, stop, handler)))
}

async fn settle_down() {
    sleep(Duration::from_millis(1)).await;
}

async fn dead_letters(bus: &Arc<dyn Bus>) -> Vec<DeadLetter> {
    bus.open(ConsumerSpec::new(dead(), 100, ACK_WAIT, 1)).await.unwrap();
    let pulled = bus.pull(&dead(), 100, Duration::ZERO).await.unwrap();
    pulled.iter().map(|delivery| Arc::unwrap_or_clone(delivery.payload.read().unwrap())).collect()
}

fn later(after: Option<Duration>) -> HandlerResult {
    HandlerResult::Later { after, why: "the disk is full".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn message_is_acknowledged_only_after_the_handler_is_done() {
    let bus = bus_with(1).await;
    let next = Arc::clone(&bus);
    let (stop, worker) = start(&bus, spec(4), move |message| {
        let bus = Arc::clone(&next);
        async move {
            assert_eq!(depth(&bus, Filter::Verify).await, (0, 1));
            let queue = Queue::Outcomes { source: source() };
            bus.publish(queue, MessageId::new("outcomes"), message.payload).await.unwrap();
            sleep(Duration::from_secs(1)).await;
            HandlerResult::Done
        }
    });
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 1));
    assert_eq!(depth(&bus, Filter::Outcomes(source())).await, (1, 0));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 0));
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_more_is_pulled_than_can_be_started() {
    let bus = bus_with(5).await;
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    // The bus would deliver a hundred.
    let (stop, worker) = start(&bus, spec(2), move |_| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            HandlerResult::Done
        }
    });
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Verify).await, (3, 2));
    go.notify_one();
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Verify).await, (2, 2));
    stop.cancel();
    go.notify_waiters();
    worker.await.unwrap().unwrap();
    assert_eq!(depth(&bus, Filter::Verify).await, (2, 0));
}

#[tokio::test(start_paused = true)]
async fn long_work_is_done_once_although_it_lasts_longer_than_the_ack_wait() {
    let bus = bus_with(1).await;
    let started = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&started);
    let (stop, worker) = start(&bus, spec(4), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async {
            sleep(ACK_WAIT * 5).await;
            HandlerResult::Done
        }
    });
    sleep(ACK_WAIT * 6).await;
    assert_eq!((started.load(Ordering::SeqCst), depth(&bus, Filter::Verify).await), (1, (0, 0)));
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn later_waits_as_told_or_twice_as_long_each_time_and_then_gives_up() {
    let bus = bus_with(1).await;
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let begin = Instant::now();
    let (stop, worker) = start(&bus, spec(4), move |message| {
        noted.lock().unwrap().push((message.attempt, begin.elapsed().as_secs()));
        let told = (message.attempt == 1).then_some(Duration::from_secs(7));
        async move { later(told) }
    });
    sleep(Duration::from_secs(60)).await;
    // 7 s as requested; then 2 s for the second failure; the third attempt is the last.
    assert_eq!(*times.lock().unwrap(), [(1, 0), (2, 7), (3, 9)]);
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 0));
    let letters = dead_letters(&bus).await;
    assert_eq!((letters.len(), letters[0].attempts), (1, 3));
    assert_eq!(letters[0].why, "the disk is full (the last of 3 attempts)");
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[test]
fn waits_double_up_to_the_longest() {
    let waits: Vec<u64> =
        [0, 1, 2, 5, 6, 7, 1000].map(redelivery_wait).iter().map(Duration::as_secs).collect();
    assert_eq!(waits, [1, 2, 4, 32, 60, 60, 60]);
}

#[tokio::test(start_paused = true)]
async fn poison_lies_with_the_dead_letters_at_once() {
    let bus = bus_with(1).await;
    let poison = |_| async { HandlerResult::Poison { why: "not a verify-job".to_owned() } };
    let (stop, worker) = start(&bus, spec(4), poison);
    settle_down().await;
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 0));
    let letters = dead_letters(&bus).await;
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].why.as_str(), letters[0].attempts), ("not a verify-job", 1));
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn panic_costs_an_attempt_and_at_last_the_message_but_no_other() {
    let bus = bus_with(3).await;
    let (stop, worker) = start(&bus, spec(1), |message| async move {
        assert_ne!(message.payload.to_bytes(), "1", "cannot work on this");
        HandlerResult::Done
    });
    sleep(Duration::from_secs(60)).await;
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 0));
    let letters = dead_letters(&bus).await;
    assert_eq!((letters.len(), letters[0].attempts, letters[0].id.as_str()), (1, MAX_DELIVER, "1"));
    assert!(letters[0].why.contains("cannot work on this"), "{}", letters[0].why);
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn third_panic_makes_a_message_poison_however_often_it_might_be_handed_out() {
    let bus = bus_with(1).await;
    let patient = ConsumerSpec::new(Filter::Verify, 1, Duration::from_secs(60), 20);
    let (stop, worker) = start(&bus, patient, |_| async { panic!("cannot work on this") });
    sleep(Duration::from_secs(10)).await;
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 0));
    let letters = dead_letters(&bus).await;
    assert_eq!((letters.len(), letters[0].attempts), (1, 3));
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn stop_finishes_what_runs_and_takes_nothing_new() {
    let bus = bus_with(5).await;
    let (stop, worker) = start(&bus, spec(2), |_| async {
        sleep(Duration::from_secs(3)).await;
        HandlerResult::Done
    });
    settle_down().await;
    let begin = Instant::now();
    stop.cancel();
    worker.await.unwrap().unwrap();
    assert_eq!(begin.elapsed().as_secs(), 2, "the rest of three seconds");
    assert_eq!(depth(&bus, Filter::Verify).await, (3, 0));
}

#[tokio::test(start_paused = true)]
async fn idle_worker_stops_at_once() {
    let bus = bus_with(0).await;
    let (stop, worker) = start(&bus, spec(2), |_| async { HandlerResult::Done });
    settle_down().await;
    let begin = Instant::now();
    stop.cancel();
    worker.await.unwrap().unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn dropped_worker_gives_its_messages_back_at_once() {
    let bus = bus_with(2).await;
    let (_stop, worker) = start(&bus, spec(2), |_| std::future::pending());
    settle_down().await;
    worker.abort();
    settle_down().await;
    let again = bus.pull(&Filter::Verify, 10, Duration::ZERO).await.unwrap();
    assert_eq!(again.iter().map(|delivery| delivery.attempt).collect::<Vec<_>>(), [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn halt_stops_the_worker_after_the_others_are_done_and_keeps_the_message() {
    let bus = bus_with(4).await;
    let (_stop, worker) = start(&bus, spec(2), |message| async move {
        if message.payload.to_bytes() == "0" {
            return HandlerResult::Halt { why: "no key for the store: set AWS_ACCESS_KEY_ID".to_owned() };
        }
        sleep(Duration::from_secs(3)).await;
        HandlerResult::Done
    });
    let halted = worker.await.unwrap().unwrap_err();
    assert_eq!(
        halted.to_string(),
        "the worker of verify.* stopped: no key for the store: set AWS_ACCESS_KEY_ID"
    );
    // One was handled concurrently, two were never taken, and the halted one is ready for delivery.
    let left = bus.pull(&Filter::Verify, 10, Duration::ZERO).await.unwrap();
    assert_eq!(
        left.iter().map(|delivery| (delivery.payload.to_bytes(), delivery.attempt)).collect::<Vec<_>>(),
        [("0".into(), 2), ("2".into(), 1), ("3".into(), 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn observer_hears_of_trouble_and_can_stop_the_run() {
    let bus = bus_with(1).await;
    let stop = CancellationToken::new();
    let troubles = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&troubles);
    let enough = stop.clone();
    let worker = Worker::new(Arc::clone(&bus), |_| async { later(None) }).observed(move |trouble| {
        if trouble.attempt == 2 {
            enough.cancel();
        }
        noted.lock().unwrap().push(trouble);
    });
    worker.run(spec(1), stop).await.unwrap();
    assert_eq!(depth(&bus, Filter::Verify).await, (0, 1), "it rests in the queue");
    let troubles = troubles.lock().unwrap();
    assert_eq!(troubles.len(), 2);
    assert_eq!((troubles[0].why.as_str(), troubles[0].given_up), ("the disk is full", false));
}

#[tokio::test(start_paused = true)]
async fn worker_of_a_closed_consumer_ends_and_says_so() {
    let bus = bus_with(0).await;
    let (_stop, worker) = start(&bus, spec(2), |_| async { HandlerResult::Done });
    settle_down().await;
    assert!(bus.close(&Filter::Verify).await.unwrap());
    let ended = worker.await.unwrap();
    assert!(matches!(ended, Err(BusError::NotOpen { filter: Filter::Verify })), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn workers_that_share_a_capacity_work_on_no_more_than_that_together() {
    let bus = bus_with(6).await;
    let outcomes = ConsumerSpec::new(Filter::Outcomes(source()), 100, ACK_WAIT, MAX_DELIVER);
    bus.open(outcomes.clone()).await.unwrap();
    for n in 0..6 {
        let queue = Queue::Outcomes { source: source() };
        bus.publish(queue, MessageId::new(format!("o{n}")), "o".into()).await.unwrap();
    }
    let running = Arc::new(AtomicU32::new(0));
    let most = Arc::new(AtomicU32::new(0));
    let done = Arc::new(AtomicU32::new(0));
    let now = Arc::clone(&running);
    let peak = Arc::clone(&most);
    let finished = Arc::clone(&done);
    let worker = Worker::new(Arc::clone(&bus), move |_| {
        let now = Arc::clone(&now);
        let peak = Arc::clone(&peak);
        let finished = Arc::clone(&finished);
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            finished.fetch_add(1, Ordering::Relaxed);
            HandlerResult::Done
        }
    })
    .within(Arc::new(Semaphore::new(2)));
    let stop = CancellationToken::new();
    let both = [spec(4), outcomes].map(|spec| {
        let worker = worker.clone();
        let stop = stop.clone();
        tokio::spawn(async move { worker.run(spec, stop).await })
    });
    sleep(Duration::from_secs(60)).await;
    assert_eq!((done.load(Ordering::Relaxed), most.load(Ordering::Relaxed)), (12, 2));
    stop.cancel();
    for worker in both {
        worker.await.unwrap().unwrap();
    }
}
