//! Many messages: routing, limits and depth.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::{Names, Pace, all, none, one, one_within, publish, publish_each};
use crate::{Bus, ConsumerSpec, Depth, Filter, Queue};

/// A message goes to the consumer of its stage and origin, and to no other.
pub(crate) async fn every_queue_reaches_its_own_consumer(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("every_queue_reaches_its_own_consumer", pace);
    let source = names.source.clone();
    let other_origin = format!("https://{}.example.org:8443", names.tag).parse().unwrap();
    let queues = [
        names.fetch.clone(),
        Queue::Fetch { origin: other_origin, source: source.clone() },
        Queue::Verify { source: source.clone() },
        Queue::Open { source: source.clone() },
        Queue::Unpack { source: source.clone() },
        Queue::Outcomes { source: source.clone() },
        Queue::Notices { source: source.clone() },
        Queue::Dead { source },
    ];
    for queue in &queues {
        bus.open(ConsumerSpec::new(queue.filter(), 10, pace.ack_wait, 10)).await.unwrap();
        publish(bus, queue, names.id(&queue.subject())).await;
    }
    for queue in &queues {
        let deliveries = all(bus, &queue.filter(), pace).await;
        // Tests share the stages, so messages of other tests may be here too.
        let ours: Vec<_> =
            deliveries.iter().filter(|delivery| delivery.queue.source() == &names.source).collect();
        assert_eq!(ours.len(), 1, "{queue}");
        assert_eq!((&ours[0].queue, &ours[0].id), (queue, &names.id(&queue.subject())));
        ours[0].ack().await.unwrap();
    }
}

/// The limit holds for any number of pullers, and all messages are worked on in the end.
pub(crate) async fn limit_holds_over_several_pullers(bus: &dyn Bus, pace: &Pace) {
    const MESSAGES: usize = 24;
    const LIMIT: usize = 3;
    let names = Names::opened("limit_holds_over_several_pullers", LIMIT, bus, pace).await;
    // Two Sources, so that neither needs room for all.
    let (_, other) = names.other_source();
    let out = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let feed = async {
        for n in 0..MESSAGES {
            let queue = if n % 2 == 0 { &names.fetch } else { &other };
            publish(bus, queue, names.id(&n.to_string())).await;
        }
    };
    let pullers = (0..4).map(|_| async {
        while done.load(Ordering::SeqCst) < MESSAGES {
            for delivery in bus.pull(&names.filter, 2, pace.quiet).await.unwrap() {
                let now = out.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                sleep(pace.ack_wait / 20).await;
                out.fetch_sub(1, Ordering::SeqCst);
                delivery.ack().await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    // A puller here works on one message at a time, so the bus must report how many are in flight.
    let watch = async {
        let mut most_in_flight = 0;
        while done.load(Ordering::SeqCst) < MESSAGES {
            most_in_flight = most_in_flight.max(bus.depth(&names.filter).await.unwrap().in_flight);
            sleep(pace.ack_wait / 50).await;
        }
        most_in_flight
    };
    let ended =
        timeout((pace.soon + pace.ack_wait) * 10, async { tokio::join!(feed, join_all(pullers), watch) })
            .await;
    let ((), _, most_in_flight) = ended.unwrap_or_else(|_| panic!("{done:?} of {MESSAGES} are worked on"));
    assert_eq!(done.load(Ordering::SeqCst), MESSAGES, "some were worked on twice");
    assert!((2..=LIMIT).contains(&most.load(Ordering::SeqCst)), "{most:?} at once");
    assert!(most_in_flight <= LIMIT, "{most_in_flight} in flight");
}

/// A message in the delay of a nak counts as in flight. So while an origin only fails, not all of its jobs use up their
/// attempts.
pub(crate) async fn delayed_message_keeps_its_slot(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("delayed_message_keeps_its_slot", 1, bus, pace).await;
    publish_each(bus, &names, ["a", "b"]).await;
    let delay = pace.quiet * 2;
    one(bus, &names.filter, pace).await.nak(delay).await.unwrap();
    none(bus, &names.filter, pace).await;
    let again = one_within(bus, &names.filter, delay + pace.soon).await;
    assert_eq!((&again.id, again.attempt), (&names.id("a"), 2));
    again.ack().await.unwrap();
    let next = one(bus, &names.filter, pace).await;
    assert_eq!(next.id, names.id("b"));
    next.ack().await.unwrap();
}

/// A consumer that is reopened with a higher limit delivers more, even to a pull that already waits.
pub(crate) async fn raised_limit_takes_effect(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("raised_limit_takes_effect", 1, bus, pace).await;
    publish_each(bus, &names, ["a", "b"]).await;
    let first = one(bus, &names.filter, pace).await;
    none(bus, &names.filter, pace).await;
    let raise = async {
        sleep(pace.quiet / 2).await;
        bus.open(names.spec(2, pace)).await.unwrap();
    };
    let (second, ()) = tokio::join!(bus.pull(&names.filter, 1, pace.quiet + pace.soon), raise);
    let second = second.unwrap().pop().expect("the new limit has room for it");
    assert_eq!(second.id, names.id("b"));
    first.ack().await.unwrap();
    second.ack().await.unwrap();
}

/// A full queue blocks its publisher until a message in it is acknowledged. Other queues of the origin have room.
pub(crate) async fn full_queue_makes_its_publisher_wait_and_no_other(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("full_queue_makes_its_publisher_wait_and_no_other", pace);
    let (_, other) = names.other_source();
    bus.open(names.spec(pace.capacity + 2, pace)).await.unwrap();
    for n in 0..pace.capacity {
        publish(bus, &names.fetch, names.id(&n.to_string())).await;
    }
    // A duplicate ID needs no room.
    let known = bus.publish(names.fetch.clone(), names.id("0"), "".into());
    assert!(timeout(pace.soon, known).await.expect("a duplicate does not wait").unwrap().duplicate);
    timeout(pace.soon, publish(bus, &other, names.id("other"))).await.expect("another queue has room");
    let over = timeout(pace.quiet, publish(bus, &names.fetch, names.id("over"))).await;
    assert!(over.is_err(), "a full queue took one more");

    let mut out = all(bus, &names.filter, pace).await;
    assert_eq!(out.len(), pace.capacity + 1);
    let at = out.iter().position(|delivery| delivery.queue == names.fetch).unwrap();
    let ack = async {
        sleep(pace.quiet / 2).await;
        out.remove(at).ack().await.unwrap();
    };
    let publish = bus.publish(names.fetch.clone(), names.id("over"), "".into());
    // A delivery is not enough: only the ack makes room.
    let (published, ()) = tokio::join!(timeout(pace.quiet / 2 + pace.soon, publish), ack);
    assert!(!published.expect("there is room after an ack").unwrap().duplicate);
    for delivery in out.into_iter().chain(all(bus, &names.filter, pace).await) {
        delivery.ack().await.unwrap();
    }
}

/// A take-over drops the jobs of one Source at all origins, and nothing else.
pub(crate) async fn purge_drops_the_jobs_of_one_source_in_all_origins(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("purge_drops_the_jobs_of_one_source_in_all_lanes", pace);
    let (_, other) = names.other_source();
    let origin = format!("https://{}.example.org:8443", names.tag).parse().unwrap();
    let second = Queue::Fetch { origin, source: names.source.clone() };
    let outcomes = Queue::Outcomes { source: names.source.clone() };
    for queue in [&names.fetch, &second, &outcomes] {
        bus.open(ConsumerSpec::new(queue.filter(), 10, pace.ack_wait, 10)).await.unwrap();
    }
    for (n, queue) in [&names.fetch, &names.fetch, &second, &outcomes, &other].into_iter().enumerate() {
        publish(bus, queue, names.id(&n.to_string())).await;
    }
    assert_eq!(bus.purge(&names.source).await.unwrap(), 3);
    none(bus, &second.filter(), pace).await;
    let left = all(bus, &names.filter, pace).await;
    assert_eq!(left.iter().map(|delivery| &delivery.queue).collect::<Vec<_>>(), [&other]);
    left[0].ack().await.unwrap();
    one(bus, &outcomes.filter(), pace).await.ack().await.unwrap();
}

/// A job in flight during a take-over may be acknowledged. It is never redelivered, whatever its worker does.
pub(crate) async fn job_held_during_a_purge_is_not_handed_out_again(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("job_held_during_a_purge_is_not_handed_out_again", 4, bus, pace).await;
    publish_each(bus, &names, ["acknowledged", "refused", "dropped"]).await;
    let [acknowledged, refused, dropped] = <[_; 3]>::try_from(all(bus, &names.filter, pace).await).unwrap();
    bus.purge(&names.source).await.unwrap();
    acknowledged.ack().await.unwrap();
    refused.nak(Duration::ZERO).await.unwrap();
    drop(dropped);
    sleep(pace.ack_wait).await;
    none(bus, &names.filter, pace).await;
}

/// Depth counts queued messages, and messages in flight until they are settled.
pub(crate) async fn depth_tells_waiting_and_in_flight(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("depth_tells_waiting_and_in_flight", pace);
    let unused = Filter::Outcomes(names.source.clone());
    assert_eq!(bus.depth(&unused).await.unwrap(), Depth::default());
    bus.open(names.spec(2, pace)).await.unwrap();
    publish_each(bus, &names, 0..3).await;
    assert_eq!(bus.depth(&names.filter).await.unwrap(), Depth { waiting: 3, in_flight: 0 });
    let out = all(bus, &names.filter, pace).await;
    assert_eq!(bus.depth(&names.filter).await.unwrap(), Depth { waiting: 1, in_flight: 2 });
    for delivery in &out {
        delivery.ack().await.unwrap();
    }
    one(bus, &names.filter, pace).await.ack().await.unwrap();
    assert_eq!(bus.depth(&names.filter).await.unwrap(), Depth::default());
    let ids: HashSet<_> = out.iter().map(|delivery| &delivery.id).collect();
    assert_eq!(ids.len(), 2);
}

/// Counts messages of a Source in every stage, queued or in flight. It leaves out messages of other Sources, Change
/// Notifications and dead letters.
pub(crate) async fn under_way_counts_the_messages_of_one_source_in_all_stages(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("under_way_counts_the_messages_of_one_source_in_all_stages", pace);
    let source = names.source.clone();
    assert_eq!(bus.under_way(&source).await.unwrap(), 0);
    bus.open(names.spec(2, pace)).await.unwrap();
    let (_, other) = names.other_source();
    let outcomes = Queue::Outcomes { source: source.clone() };
    let dead = Queue::Dead { source: source.clone() };
    let notices = Queue::Notices { source: source.clone() };
    for queue in [&names.fetch, &outcomes, &notices, &dead, &other] {
        publish(bus, queue, names.id(&queue.subject())).await;
    }
    assert_eq!(bus.under_way(&source).await.unwrap(), 2);
    let out = all(bus, &names.filter, pace).await;
    assert_eq!(out.len(), 2);
    assert_eq!(bus.under_way(&source).await.unwrap(), 2, "what is handed out is under way");
    for delivery in &out {
        delivery.ack().await.unwrap();
    }
    assert_eq!(bus.under_way(&source).await.unwrap(), 1);
}
