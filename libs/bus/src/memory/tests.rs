//! The in-process bus keeps the promises of every bus, and its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::JobId;
use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};

use super::MemoryBus;
use super::seen::WINDOW;
use crate::conformance_tests::Pace;
use crate::{Bus, ConsumerSpec, Delivery, Filter, MAX_PAYLOAD, MessageId, Queue};

const CAPACITY: usize = 16;
const ACK_WAIT: Duration = Duration::from_secs(10);

async fn setup(_test: &str) -> (Arc<dyn Bus>, Pace) {
    let pace = Pace {
        tag: "memory".to_owned(),
        soon: Duration::from_millis(100),
        quiet: Duration::from_millis(500),
        ack_wait: ACK_WAIT,
        capacity: CAPACITY,
    };
    (Arc::new(MemoryBus::new(CAPACITY)), pace)
}

crate::conformance_tests::conformance! { #[tokio::test(start_paused = true)] setup }

/// The same tests, with every message serialized.
mod by_wire {
    use super::*;

    async fn setup(test: &str) -> (Arc<dyn Bus>, Pace) {
        let (_, pace) = super::setup(test).await;
        (Arc::new(MemoryBus::new(CAPACITY).by_wire()), pace)
    }

    crate::conformance_tests::conformance! { #[tokio::test(start_paused = true)] setup }
}

/// A message that must not be serialized.
#[derive(Debug, PartialEq, Deserialize)]
struct Sealed;

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("a message that stays in its process is written")
    }
}

impl model::Message for Sealed {
    const KIND: &'static str = "sealed";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(MAX_PAYLOAD)
    }
}

#[tokio::test(start_paused = true)]
async fn what_stays_in_the_process_is_never_written_and_is_the_very_message_that_was_sent() {
    let bus = MemoryBus::new(CAPACITY);
    bus.open(spec(Filter::Verify, 10)).await.unwrap();
    let sent = Arc::new(Sealed);
    let job = JobId::fresh();
    crate::send(&bus, verify("s"), job, Arc::clone(&sent)).await.unwrap();
    crate::send_part(&bus, verify("s"), job, 1, Arc::clone(&sent)).await.unwrap();
    for delivery in 1..=2 {
        let pulled = bus.pull(&Filter::Verify, 10, Duration::ZERO).await.unwrap();
        assert_eq!(pulled.len(), 2, "delivery {delivery}");
        for message in pulled {
            assert!(Arc::ptr_eq(&message.payload.read::<Sealed>().unwrap(), &sent));
            assert!(message.payload.read::<crate::DeadLetter>().is_err());
            message.nak(Duration::ZERO).await.unwrap();
        }
    }
}

fn verify(source: &str) -> Queue {
    Queue::Verify { source: source.parse().unwrap() }
}

fn spec(filter: Filter, max_in_flight: usize) -> ConsumerSpec {
    ConsumerSpec::new(filter, max_in_flight, ACK_WAIT, 5)
}

async fn publish(bus: &MemoryBus, queue: Queue, id: &str) {
    bus.publish(queue, MessageId::new(id), "".into()).await.unwrap();
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.id.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn sources_take_turns() {
    let bus = MemoryBus::new(CAPACITY);
    bus.open(spec(Filter::Verify, 10)).await.unwrap();
    for (source, id) in [("large", "l1"), ("large", "l2"), ("large", "l3"), ("small", "s1")] {
        publish(&bus, verify(source), id).await;
    }
    let pulled = bus.pull(&Filter::Verify, 10, Duration::ZERO).await.unwrap();
    assert_eq!(ids(&pulled), ["l1", "s1", "l2", "l3"]);
}

#[tokio::test(start_paused = true)]
async fn dropped_message_is_there_again_at_once() {
    let bus = MemoryBus::new(CAPACITY);
    bus.open(spec(Filter::Verify, 10)).await.unwrap();
    publish(&bus, verify("s"), "a").await;
    drop(bus.pull(&Filter::Verify, 1, Duration::ZERO).await.unwrap());
    assert_eq!(bus.pull(&Filter::Verify, 1, Duration::ZERO).await.unwrap()[0].attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn name_is_free_again_after_the_window() {
    let bus = MemoryBus::new(CAPACITY);
    let publish = || bus.publish(verify("s"), MessageId::new("a"), "".into());
    assert!(!publish().await.unwrap().duplicate);
    assert!(publish().await.unwrap().duplicate);
    tokio::time::sleep(WINDOW).await;
    assert!(!publish().await.unwrap().duplicate);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_never_block_and_the_oldest_makes_room() {
    let bus = MemoryBus::new(2);
    let dead = Filter::Dead("s".parse().unwrap());
    bus.open(spec(dead.clone(), 10)).await.unwrap();
    for id in ["a", "b", "c"] {
        publish(&bus, Queue::Dead { source: "s".parse().unwrap() }, id).await;
    }
    assert_eq!(ids(&bus.pull(&dead, 10, Duration::ZERO).await.unwrap()), ["b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn lowered_limit_holds_back_also_what_was_out_before() {
    let bus = MemoryBus::new(CAPACITY);
    bus.open(spec(Filter::Verify, 4)).await.unwrap();
    for id in ["a", "b", "c", "d"] {
        publish(&bus, verify("s"), id).await;
    }
    drop(bus.pull(&Filter::Verify, 4, Duration::ZERO).await.unwrap());
    bus.open(spec(Filter::Verify, 1)).await.unwrap();
    let first = bus.pull(&Filter::Verify, 4, Duration::ZERO).await.unwrap();
    assert_eq!(ids(&first), ["a"]);
    // No time passes and no poll is in vain: the pull sleeps until the slot is free.
    let (next, ()) = tokio::join!(bus.pull(&Filter::Verify, 4, ACK_WAIT / 2), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        first[0].ack().await.unwrap();
    });
    assert_eq!(ids(&next.unwrap()), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_an_empty_queue_waits_for_the_last_acknowledgement() {
    let bus = MemoryBus::new(CAPACITY);
    bus.caught_up(&Filter::Verify).await.unwrap();
    bus.open(spec(Filter::Verify, 10)).await.unwrap();
    publish(&bus, verify("s"), "a").await;
    let began = tokio::time::Instant::now();
    let (waited, ()) = tokio::join!(
        async {
            bus.caught_up(&Filter::Verify).await.unwrap();
            began.elapsed()
        },
        async {
            let pulled = bus.pull(&Filter::Verify, 1, Duration::ZERO).await.unwrap();
            tokio::time::sleep(Duration::from_secs(3)).await;
            pulled[0].ack().await.unwrap();
        }
    );
    assert_eq!(waited, Duration::from_secs(3));
}

/// A step that may happen to a bus.
#[derive(Debug, Clone)]
enum Step {
    Publish { source: usize },
    Pull { max: usize },
    Ack(usize),
    Nak(usize, u64),
    Drop(usize),
    Progress(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3usize).prop_map(|source| Step::Publish { source }),
        3 => (1..4usize).prop_map(|max| Step::Pull { max }),
        2 => any::<usize>().prop_map(Step::Ack),
        1 => (any::<usize>(), 0..8u64).prop_map(|(n, delay)| Step::Nak(n, delay)),
        1 => any::<usize>().prop_map(Step::Drop),
        1 => any::<usize>().prop_map(Step::Progress),
        1 => (0..15u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..80)
}

/// At any time, every message is acknowledged, or will be delivered; never both, never neither.
async fn nothing_is_lost_or_done_twice(steps: Vec<Step>) {
    const LIMIT: usize = 3;
    let bus = MemoryBus::new(1_000);
    bus.open(ConsumerSpec::new(Filter::Verify, LIMIT, ACK_WAIT, u32::MAX)).await.unwrap();
    let mut held: Vec<Delivery> = Vec::new();
    let mut acknowledged: BTreeMap<String, bool> = BTreeMap::new();
    for step in steps {
        let at = |n: usize, held: &Vec<Delivery>| (!held.is_empty()).then(|| n % held.len());
        match step {
            Step::Publish { source } => {
                let id = acknowledged.len().to_string();
                publish(&bus, verify(&format!("s{source}")), &id).await;
                acknowledged.insert(id, false);
            }
            Step::Pull { max } => {
                let pulled = bus.pull(&Filter::Verify, max, Duration::ZERO).await.unwrap();
                assert!(pulled.len() <= max);
                for delivery in &pulled {
                    assert!(!acknowledged[delivery.id.as_str()], "{} after its ack", delivery.id);
                }
                held.extend(pulled);
            }
            Step::Ack(n) => {
                if let Some(n) = at(n, &held) {
                    let delivery = held.swap_remove(n);
                    delivery.ack().await.unwrap();
                    acknowledged.insert(delivery.id.as_str().to_owned(), true);
                }
            }
            Step::Nak(n, delay) => {
                if let Some(n) = at(n, &held) {
                    held.swap_remove(n).nak(Duration::from_secs(delay)).await.unwrap();
                }
            }
            Step::Drop(n) => {
                if let Some(n) = at(n, &held) {
                    drop(held.swap_remove(n));
                }
            }
            Step::Progress(n) => {
                if let Some(n) = at(n, &held) {
                    held[n].progress().await.unwrap();
                }
            }
            Step::Wait(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        }
        assert!(bus.depth(&Filter::Verify).await.unwrap().in_flight <= LIMIT);
    }
    held.clear();
    loop {
        let pulled = bus.pull(&Filter::Verify, 10, ACK_WAIT * 2).await.unwrap();
        if pulled.is_empty() {
            break;
        }
        for delivery in pulled {
            assert!(!acknowledged[delivery.id.as_str()], "{} after its ack", delivery.id);
            delivery.ack().await.unwrap();
            acknowledged.insert(delivery.id.as_str().to_owned(), true);
        }
    }
    assert!(acknowledged.values().all(|done| *done), "lost: {acknowledged:?}");
    assert!(bus.close(&Filter::Verify).await.unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_workers_do_nothing_is_lost_or_done_twice(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(nothing_is_lost_or_done_twice(steps));
    }
}
