//! Several processes on one server, each with a connection of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout};

use super::super::permits::PERMIT_TTL;
use super::*;
use crate::worker::{HandlerResult, run_origins};

const SOON: Duration = Duration::from_secs(60);

async fn two(test: &str) -> (JetStreamBus, JetStreamBus) {
    let server = NatsFixture::get().await;
    (connect(&server.url, test).await, connect(&server.url, test).await)
}

#[tokio::test]
async fn two_processes_never_exceed_the_limit_of_a_origin_together() {
    const LIMIT: usize = 3;
    const MESSAGES: usize = 60;
    let (one, other) = two("fleet-limit").await;
    one.open(origin_spec(1, LIMIT)).await.unwrap();
    let now = Arc::<AtomicUsize>::default();
    let most = Arc::<AtomicUsize>::default();
    let done = Arc::<AtomicUsize>::default();
    let stop = CancellationToken::new();
    let mut workers = Vec::new();
    let mut shares = Vec::new();
    for bus in [&one, &other] {
        let now = Arc::clone(&now);
        let most = Arc::clone(&most);
        let done = Arc::clone(&done);
        let share = Arc::new(AtomicUsize::new(0));
        shares.push(Arc::clone(&share));
        workers.push(tokio::spawn(run_origins(Arc::new(bus.clone()), stop.clone(), move |_| {
            let now = Arc::clone(&now);
            let most = Arc::clone(&most);
            let done = Arc::clone(&done);
            let share = Arc::clone(&share);
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                share.fetch_add(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                HandlerResult::Done
            }
        })));
    }
    for n in 0..MESSAGES {
        publish(&one, fetch(1), &n.to_string()).await;
    }
    let all_done = async {
        while done.load(Ordering::SeqCst) < MESSAGES {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, all_done).await.expect("not all are worked on");
    stop.cancel();
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    assert_eq!(done.load(Ordering::SeqCst), MESSAGES, "some were worked on twice");
    assert!((2..=LIMIT).contains(&most.load(Ordering::SeqCst)), "{most:?} at once");
    assert!(shares.iter().all(|share| share.load(Ordering::SeqCst) > 0), "one did it all: {shares:?}");
}

#[tokio::test]
async fn new_owner_drops_the_jobs_of_the_old_one_and_held_ones_keep_their_slots() {
    let (old, new) = two("fleet-purge").await;
    old.open(origin_spec(1, 2)).await.unwrap();
    for id in ["a", "b", "c"] {
        publish(&old, fetch(1), id).await;
    }
    let filter = origin_spec(1, 2).filter().clone();
    let held = old.pull(&filter, 2, SOON).await.unwrap();
    assert_eq!(held.len(), 2);
    new.purge(&source()).await.unwrap();
    publish(&new, fetch(1), "of the new owner").await;
    assert!(new.pull(&filter, 2, Duration::from_millis(500)).await.unwrap().is_empty(), "three at once");
    for delivery in &held {
        delivery.ack().await.unwrap();
    }
    let next = new.pull(&filter, 2, SOON).await.unwrap();
    assert_eq!(next.iter().map(|next| next.id.as_str()).collect::<Vec<_>>(), ["of the new owner"]);
    next[0].ack().await.unwrap();
    assert!(new.close(&filter).await.unwrap());
}

#[tokio::test]
async fn process_that_comes_later_knows_the_open_origins_from_the_start() {
    let server = NatsFixture::get().await;
    let early = connect(&server.url, "fleet-late").await;
    for n in 1..=5 {
        early.open(origin_spec(n, n)).await.unwrap();
    }
    early.open(origin_spec(2, 7)).await.unwrap();
    assert!(early.close(origin_spec(5, 5).filter()).await.unwrap());
    let late = connect(&server.url, "fleet-late").await;
    let known: Vec<ConsumerSpec> = late.origins().borrow().values().cloned().collect();
    assert_eq!(known, [origin_spec(1, 1), origin_spec(2, 7), origin_spec(3, 3), origin_spec(4, 4)]);
}

#[tokio::test]
async fn origin_closed_by_another_process_is_opened_again_by_the_one_that_publishes() {
    let (publisher, closer) = two("fleet-close").await;
    let filter = origin_spec(1, 2).filter().clone();
    for round in 0..10 {
        publisher.open(origin_spec(1, 2)).await.unwrap();
        // Concurrently, so that all orders of their steps occur.
        let id = round.to_string();
        let ((), closed) = tokio::join!(publish(&publisher, fetch(1), &id), closer.close(&filter));
        closed.unwrap();
        let mut origins = closer.origins();
        let listed = origins.wait_for(|origins| origins.contains_key(&origin(1)));
        assert!(
            timeout(SOON, listed).await.is_ok(),
            "round {round}: the queue is closed with a message in it"
        );
        let delivery = closer.pull(&filter, 1, SOON).await.unwrap().pop().expect("the message is handed out");
        assert_eq!(delivery.id.as_str(), id);
        delivery.ack().await.unwrap();
    }
}

#[tokio::test]
async fn consumer_that_the_server_dropped_as_idle_is_made_anew_for_the_next_worker() {
    let server = NatsFixture::get().await;
    let config = JetStreamConfig { idle_consumer_seconds: 1, ..config(&server.url, "fleet-idle") };
    let bus = JetStreamBus::connect(config, &Vars::default()).await.unwrap();
    bus.open(origin_spec(1, 2)).await.unwrap();
    publish(&bus, fetch(1), "a").await;
    let filter = origin_spec(1, 2).filter().clone();
    let consumer = || async { bus.0.ask_spec(&filter).await.unwrap() };
    assert_eq!(consumer().await, Some(origin_spec(1, 2)));
    let dropped = async {
        while consumer().await.is_some() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(SOON, dropped).await.expect("the server keeps idle consumers");
    let delivery = bus.pull(&filter, 1, SOON).await.unwrap().pop().expect("the message is still there");
    delivery.ack().await.unwrap();
}

#[tokio::test]
async fn fleets_with_different_namespaces_do_not_meet() {
    let server = NatsFixture::get().await;
    let one = connect(&server.url, "fleet-a").await;
    let other = connect(&server.url, "fleet-b").await;
    one.open(origin_spec(1, 2)).await.unwrap();
    publish(&one, fetch(1), "a").await;
    assert!(!other.publish(fetch(1), MessageId::new("a"), "".into()).await.unwrap().duplicate);
    assert_eq!(other.purge(&source()).await.unwrap(), 1);
    assert!(other.origins().borrow().is_empty());
    assert_eq!(one.depth(origin_spec(1, 2).filter()).await.unwrap().waiting, 1);
}

#[tokio::test]
async fn dropped_pull_leaves_its_message_to_the_next_at_once() {
    let (bus, _) = two("fleet-dropped").await;
    bus.open(origin_spec(1, 2)).await.unwrap();
    let filter = origin_spec(1, 2).filter().clone();
    assert!(timeout(Duration::from_millis(300), bus.pull(&filter, 5, SOON)).await.is_err());
    publish(&bus, fetch(1), "a").await;
    let delivery =
        bus.pull(&filter, 5, ACK_WAIT / 2).await.unwrap().pop().expect("it went to a pull that is gone");
    delivery.ack().await.unwrap();
}

#[tokio::test]
async fn permits_of_several_processes_and_their_jobs_keep_to_the_limit_of_a_origin() {
    for limit in [1, 2] {
        let (one, other) = two(&format!("fleet-places-{limit}")).await;
        one.open(origin_spec(1, limit)).await.unwrap();
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let open = {
            let now = Arc::clone(&now);
            let most = Arc::clone(&most);
            move || {
                let now = Arc::clone(&now);
                let most = Arc::clone(&most);
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                }
            }
        };
        let stop = CancellationToken::new();
        let mut tasks = Vec::new();
        for bus in [&one, &other] {
            let open = open.clone();
            let worker = run_origins(Arc::new(bus.clone()), stop.clone(), move |_| {
                let open = open();
                async move {
                    open.await;
                    HandlerResult::Done
                }
            });
            tasks.push(tokio::spawn(async move { worker.await.unwrap() }));
        }
        let mut readers = Vec::new();
        for bus in [&one, &other, &one] {
            let bus = bus.clone();
            let open = open.clone();
            readers.push(tokio::spawn(async move {
                for _ in 0..5 {
                    let _permit = bus.acquire_permit(&origin(1), limit).await.unwrap();
                    open().await;
                }
            }));
        }
        for n in 0..30 {
            publish(&one, fetch(1), &n.to_string()).await;
        }
        for reader in readers {
            timeout(SOON, reader).await.expect("a reader waits for ever").unwrap();
        }
        let all_done = async {
            while one.depth(origin_spec(1, limit).filter()).await.unwrap() != Depth::default() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, all_done).await.expect("not all are worked on");
        stop.cancel();
        for task in tasks {
            task.await.unwrap();
        }
        let most = most.load(Ordering::SeqCst);
        assert!(most <= limit, "{most} open at once with a limit of {limit}");
    }
}

async fn ack_all(deliveries: Vec<Delivery>) {
    for delivery in deliveries {
        delivery.ack().await.unwrap();
    }
}

/// A process acquires a permit and dies: the end of its runtime closes the connection, and stops all that would renew
/// or return the permit.
async fn vanish_with_a_permit(url: &str, test: &str, limit: usize) {
    let url = url.to_owned();
    let test = test.to_owned();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let bus = connect(&url, &test).await;
            std::mem::forget(bus.acquire_permit(&origin(1), limit).await.unwrap());
        });
        runtime.shutdown_background();
    });
    tokio::task::spawn_blocking(|| process.join().unwrap()).await.unwrap();
}

#[tokio::test]
async fn permit_of_a_process_that_vanished_is_free_in_the_end() {
    let server = NatsFixture::get().await;
    for limit in [1, 2] {
        let test = format!("fleet-gone-{limit}");
        let bus = connect(&server.url, &test).await;
        let begun = Instant::now();
        vanish_with_a_permit(&server.url, &test, limit).await;
        let origin = origin(1);
        let soon = Duration::from_millis(300);
        let early = timeout(soon, bus.acquire_permit(&origin, limit)).await;
        assert!(early.is_err() || begun.elapsed() > PERMIT_TTL, "its place is not free at once");
        drop(early);
        let _permit = timeout(SOON, bus.acquire_permit(&origin, limit))
            .await
            .expect("its place is free again")
            .unwrap();
    }
}

#[tokio::test]
async fn jobs_have_the_slot_again_of_a_process_that_vanished_with_a_permit() {
    let server = NatsFixture::get().await;
    for limit in [1, 2] {
        let test = format!("fleet-back-{limit}");
        let bus = connect(&server.url, &test).await;
        bus.open(origin_spec(1, limit)).await.unwrap();
        let begun = Instant::now();
        vanish_with_a_permit(&server.url, &test, limit).await;
        for n in 0..limit {
            publish(&bus, fetch(1), &n.to_string()).await;
        }
        let filter = origin_spec(1, limit).filter().clone();
        let wait = if limit > 1 { SOON } else { Duration::from_millis(300) };
        let mut out = bus.pull(&filter, limit, wait).await.unwrap();
        if out.len() == limit {
            assert!(begun.elapsed() > PERMIT_TTL, "its slot is not free at once");
            ack_all(out).await;
            continue;
        }
        assert_eq!(out.len(), limit - 1);
        let holding = async {
            loop {
                tokio::time::sleep(ACK_WAIT / 4).await;
                for delivery in &out {
                    delivery.progress().await.unwrap();
                }
            }
        };
        let last = tokio::select! {
            last = bus.pull(&filter, 1, SOON) => last.unwrap(),
            () = holding => unreachable!("it goes on for ever"),
        };
        assert_eq!(last.len(), 1, "its slot is lost");
        out.extend(last);
        assert!(out.iter().all(|delivery| delivery.attempt == 1), "held all the time");
        ack_all(out).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_out_while_a_pull_ends_lies_with_nobody() {
    const LIMIT: usize = 4;
    const MESSAGES: usize = 2_000;
    let server = NatsFixture::get().await;
    let config = JetStreamConfig { messages_per_queue: MESSAGES, ..config(&server.url, "fleet-ends") };
    let bus = JetStreamBus::connect(config, &Vars::default()).await.unwrap();
    let filter = Filter::Fetch(origin(1));
    // A lost message is redelivered only after the test has given up.
    let spec = ConsumerSpec::new(filter.clone(), LIMIT, 10 * SOON, 5);
    bus.open(spec).await.unwrap();
    let all_there = async {
        for n in 0..MESSAGES {
            publish(&bus, fetch(1), &n.to_string()).await;
        }
    };
    timeout(SOON, all_there).await.expect("not all are taken");
    // The worker has room for more than the limit allows, so the server holds back messages until an ack. That ack may
    // come when the pull is about to end.
    let mut work = JoinSet::new();
    let all_done = async {
        while work.len() < MESSAGES {
            for (n, delivery) in bus.pull(&filter, 2 * LIMIT, SOON).await.unwrap().into_iter().enumerate() {
                let done =
                    Instant::now() + Duration::from_micros(5_000 + 97 * ((work.len() + 3 * n) as u64 % 31));
                work.spawn(async move {
                    // Spin, because no timer is precise enough.
                    while Instant::now() < done {
                        yield_now().await;
                    }
                    delivery.ack().await.unwrap();
                    delivery.attempt
                });
            }
        }
    };
    let ended = timeout(SOON, all_done).await;
    assert!(ended.is_ok(), "{} of {MESSAGES} came", work.len());
    assert!(work.join_all().await.into_iter().all(|attempt| attempt == 1));
}
