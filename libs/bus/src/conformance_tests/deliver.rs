//! The life of one message: delivered, settled, redelivered.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use model::WireError;

use super::{Names, Pace, Parcel, none, one, one_within, publish, publish_each};
use crate::{Bus, BusError, ConsumerSpec, DeadLetter, DeadPayload, Filter, MAX_PAYLOAD, Queue};

/// Clocks of client and server may differ by this much within one delay.
const CLOCK: Duration = Duration::from_millis(10);

/// A published message is delivered unchanged, once, and never again after its ack.
pub(crate) async fn published_message_is_pulled_once_and_gone_after_its_ack(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("published_message_is_pulled_once_and_gone_after_its_ack", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    let delivery = one(bus, &names.filter, pace).await;
    assert_eq!(delivery.payload.to_bytes(), format!("payload of {}", names.id("a")));
    assert_eq!((&delivery.id, &delivery.queue, delivery.attempt), (&names.id("a"), &names.fetch, 1));
    none(bus, &names.filter, pace).await;
    delivery.ack().await.unwrap();
    drop(delivery);
    sleep(pace.ack_wait).await;
    none(bus, &names.filter, pace).await;
}

/// A queue keeps messages from before its consumer opens. Opening the consumer twice changes nothing.
pub(crate) async fn message_published_before_the_consumer_opens_is_not_lost(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("message_published_before_the_consumer_opens_is_not_lost", pace);
    publish(bus, &names.fetch, names.id("a")).await;
    bus.open(names.spec(4, pace)).await.unwrap();
    let delivery = one(bus, &names.filter, pace).await;
    bus.open(names.spec(4, pace)).await.unwrap();
    none(bus, &names.filter, pace).await;
    delivery.ack().await.unwrap();
}

/// A pull on an empty queue returns when a message comes, not when its wait is over.
pub(crate) async fn pull_waits_for_a_message_to_come(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("pull_waits_for_a_message_to_come", 4, bus, pace).await;
    let late = async {
        sleep(pace.quiet).await;
        publish(bus, &names.fetch, names.id("a")).await;
    };
    let start = Instant::now();
    let wait = pace.quiet + pace.soon * 10;
    let (pulled, ()) = tokio::join!(bus.pull(&names.filter, 5, wait), late);
    let pulled = pulled.unwrap();
    assert_eq!(pulled.len(), 1);
    assert!(start.elapsed() < wait, "waited to the end although a message came");
    pulled[0].ack().await.unwrap();
}

/// A pull without an open consumer is an error, not an empty result.
pub(crate) async fn pull_without_a_consumer_is_refused(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("pull_without_a_consumer_is_refused", pace);
    let refused = bus.pull(&names.filter, 1, pace.quiet).await;
    assert!(matches!(&refused, Err(BusError::NotOpen { filter }) if *filter == names.filter), "{refused:?}");
}

/// Every reader at every delivery reads what was sent, and cannot read it as another kind of message.
pub(crate) async fn message_is_read_as_it_was_sent_at_every_delivery(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("message_is_read_as_it_was_sent_at_every_delivery", 4, bus, pace).await;
    let sent = Parcel { filling: "ä \"quoted\" \u{1}".to_owned() };
    bus.publish(names.fetch.clone(), names.id("a"), sent.clone().payload()).await.unwrap();
    for attempt in 1..=3 {
        let wait = pace.ack_wait + pace.soon;
        let delivery = one_within(bus, &names.filter, wait).await;
        assert_eq!(delivery.attempt, attempt);
        assert_eq!(*delivery.payload.read::<Parcel>().unwrap(), sent);
        assert_eq!(delivery.payload.to_bytes(), model::encode(&sent));
        let refused = delivery.payload.read::<DeadLetter>();
        assert!(
            matches!(&refused, Err(WireError::Unexpected { found, .. }) if found == "parcel"),
            "{refused:?}"
        );
        match attempt {
            1 => delivery.nak(Duration::ZERO).await.unwrap(),
            2 => drop(delivery),
            _ => delivery.ack().await.unwrap(),
        }
    }
    none(bus, &names.filter, pace).await;
}

/// Message IDs make publishing idempotent, even after the first message was settled.
pub(crate) async fn second_message_of_one_name_is_left_out(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("second_message_of_one_name_is_left_out", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    let again = || bus.publish(names.fetch.clone(), names.id("a"), "again".into());
    assert!(again().await.unwrap().duplicate);
    let delivery = one(bus, &names.filter, pace).await;
    assert_ne!(delivery.payload.to_bytes(), "again");
    delivery.ack().await.unwrap();
    assert!(again().await.unwrap().duplicate);
    let parcel = Parcel { filling: "again".to_owned() }.payload();
    assert!(bus.publish(names.fetch.clone(), names.id("a"), parcel).await.unwrap().duplicate);
    none(bus, &names.filter, pace).await;
}

/// A nak redelivers the message after its delay as the next attempt; without a delay, at once.
pub(crate) async fn refused_message_comes_back_after_its_delay_and_not_before(bus: &dyn Bus, pace: &Pace) {
    let names =
        Names::opened("refused_message_comes_back_after_its_delay_and_not_before", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    one(bus, &names.filter, pace).await.nak(Duration::ZERO).await.unwrap();
    let second = one(bus, &names.filter, pace).await;
    assert_eq!(second.attempt, 2);
    // Longer than `ack_wait`, because the delay of a nak does not count as silence.
    let start = Instant::now();
    let delay = pace.ack_wait + pace.quiet;
    second.nak(delay).await.unwrap();
    let third = one_within(bus, &names.filter, delay + pace.soon).await;
    assert!(start.elapsed() + CLOCK >= delay, "back after {:?} instead of {delay:?}", start.elapsed());
    assert_eq!((third.attempt, &third.id), (3, &names.id("a")));
    third.ack().await.unwrap();
}

/// The message of a dead worker is redelivered.
pub(crate) async fn dropped_message_comes_back_as_the_next_attempt(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("dropped_message_comes_back_as_the_next_attempt", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    drop(one(bus, &names.filter, pace).await);
    let again = one_within(bus, &names.filter, pace.ack_wait + pace.soon).await;
    assert_eq!((again.attempt, &again.id), (2, &names.id("a")));
    again.ack().await.unwrap();
}

/// Silence for longer than `ack_wait` counts as death, and shorter silence does not.
pub(crate) async fn message_of_a_silent_worker_goes_to_another(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("message_of_a_silent_worker_goes_to_another", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    let start = Instant::now();
    let silent = one(bus, &names.filter, pace).await;
    let again = one_within(bus, &names.filter, pace.ack_wait + pace.soon).await;
    assert!(start.elapsed() + CLOCK >= pace.ack_wait, "taken away after {:?}", start.elapsed());
    assert_eq!(again.attempt, 2);
    again.ack().await.unwrap();
    // Whatever the first worker does now, the message is settled.
    drop(silent);
    none(bus, &names.filter, pace).await;
}

/// A late ack counts: the work is done, so there is no third delivery.
pub(crate) async fn late_ack_is_honoured(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("late_ack_is_honoured", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    let first = one(bus, &names.filter, pace).await;
    let second = one_within(bus, &names.filter, pace.ack_wait + pace.soon).await;
    first.ack().await.unwrap();
    drop(second);
    sleep(pace.ack_wait).await;
    none(bus, &names.filter, pace).await;
}

/// A worker that sends progress keeps its message for longer than `ack_wait`.
pub(crate) async fn progress_keeps_the_message(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("progress_keeps_the_message", 4, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    let delivery = one(bus, &names.filter, pace).await;
    let alive = async {
        for _ in 0..6 {
            sleep(pace.ack_wait / 2).await;
            delivery.progress().await.unwrap();
        }
    };
    let (pulled, ()) = tokio::join!(bus.pull(&names.filter, 1, pace.ack_wait * 3), alive);
    assert!(pulled.unwrap().is_empty(), "handed out again although its worker lives");
    delivery.ack().await.unwrap();
}

/// A terminated message is gone without an ack.
pub(crate) async fn terminated_message_never_comes_back(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("terminated_message_never_comes_back", 1, bus, pace).await;
    publish_each(bus, &names, ["a", "b"]).await;
    one(bus, &names.filter, pace).await.term().await.unwrap();
    let next = one(bus, &names.filter, pace).await;
    assert_eq!(next.id, names.id("b"), "a terminated message leaves its place to the next");
    next.ack().await.unwrap();
    sleep(pace.ack_wait).await;
    none(bus, &names.filter, pace).await;
}

/// A message that fails `max_deliver` times becomes a dead letter of its Source, with all that is known of it.
pub(crate) async fn message_handed_out_too_often_becomes_a_dead_letter(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("message_handed_out_too_often_becomes_a_dead_letter", pace);
    bus.open(ConsumerSpec::new(names.filter.clone(), 4, pace.ack_wait, 2)).await.unwrap();
    let dead = Filter::Dead(names.source.clone());
    bus.open(ConsumerSpec::new(dead.clone(), 4, pace.ack_wait, 10)).await.unwrap();
    let sent = Parcel { filling: "of no use".to_owned() };
    bus.publish(names.fetch.clone(), names.id("a"), sent.clone().payload()).await.unwrap();
    for attempt in 1..=2 {
        let delivery = one(bus, &names.filter, pace).await;
        assert_eq!(delivery.attempt, attempt);
        delivery.nak(Duration::ZERO).await.unwrap();
    }
    none(bus, &names.filter, pace).await;
    let delivery = one(bus, &dead, pace).await;
    assert_eq!(delivery.queue, Queue::Dead { source: names.source.clone() });
    let letter = delivery.payload.read::<DeadLetter>().unwrap();
    assert_eq!((&letter.id, &letter.subject, letter.attempts), (&names.id("a"), &names.fetch.subject(), 2));
    assert!(letter.why.contains("2 times"), "{}", letter.why);
    // Whether it was serialized or not, the dead letter has a readable form.
    let written = String::from_utf8(model::encode(&sent)).unwrap();
    assert_eq!((letter.length, &letter.payload), (written.len(), &DeadPayload::Text(written)));
    delivery.ack().await.unwrap();
    none(bus, &names.filter, pace).await;
}

/// A payload at the limit is accepted. One over the limit is refused before it is sent, serialized or not.
pub(crate) async fn too_large_a_message_is_refused(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("too_large_a_message_is_refused", 4, bus, pace).await;
    let of_size = |bytes: usize| bus.publish(names.fetch.clone(), names.id("a"), vec![b'x'; bytes].into());
    let refused = of_size(MAX_PAYLOAD + 1).await;
    assert!(matches!(refused, Err(BusError::TooLarge { .. })), "{refused:?}");
    // A refused message does not use up its ID.
    assert!(!of_size(MAX_PAYLOAD).await.unwrap().duplicate);
    let delivery = one(bus, &names.filter, pace).await;
    assert_eq!(delivery.payload.to_bytes().len(), MAX_PAYLOAD);
    delivery.ack().await.unwrap();
    let parcel = |bytes: usize| {
        bus.publish(names.fetch.clone(), names.id("parcel"), Parcel::of_length(bytes).payload())
    };
    let refused = parcel(MAX_PAYLOAD + 1).await;
    assert!(
        matches!(refused, Err(BusError::TooLarge { bytes, .. }) if bytes == MAX_PAYLOAD + 1),
        "{refused:?}"
    );
    assert!(!parcel(MAX_PAYLOAD).await.unwrap().duplicate);
    let delivery = one(bus, &names.filter, pace).await;
    assert_eq!(*delivery.payload.read::<Parcel>().unwrap(), Parcel::of_length(MAX_PAYLOAD));
    delivery.ack().await.unwrap();
}
