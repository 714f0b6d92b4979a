//! Origin queues: how fetchers learn of them.

use tokio::time::timeout;

use super::{Names, Pace, none, one, publish};
use crate::{Bus, OriginQueues};

/// Every watcher of the list learns of an origin queue that is opened, changed or closed.
pub(crate) async fn origins_are_announced_changed_and_withdrawn(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("lanes_are_announced_changed_and_withdrawn", pace);
    let mut early = bus.origins();
    assert!(!early.borrow().contains_key(&names.origin));

    bus.open(names.spec(2, pace)).await.unwrap();
    let mut late = bus.origins();
    for origins in [&mut early, &mut late] {
        let open = |origins: &OriginQueues| origins.get(&names.origin) == Some(&names.spec(2, pace));
        let seen = timeout(pace.soon, origins.wait_for(open)).await;
        assert!(seen.is_ok_and(|seen| seen.is_ok()), "a new queue is not announced");
    }
    bus.open(names.spec(5, pace)).await.unwrap();
    let changed = |origins: &OriginQueues| origins.get(&names.origin) == Some(&names.spec(5, pace));
    assert!(timeout(pace.soon, early.wait_for(changed)).await.is_ok(), "a new limit is not announced");

    assert!(bus.close(&names.filter).await.unwrap());
    let gone = |origins: &OriginQueues| !origins.contains_key(&names.origin);
    assert!(timeout(pace.soon, late.wait_for(gone)).await.is_ok(), "a closed queue is still announced");
    assert!(bus.pull(&names.filter, 1, pace.quiet).await.is_err(), "a closed consumer hands out messages");
    assert!(bus.close(&names.filter).await.unwrap(), "closing twice is no error");
}

/// An origin queue closes only when it has no message, neither queued nor in flight.
pub(crate) async fn origin_with_messages_stays_open(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("lane_with_messages_stays_open", 2, bus, pace).await;
    publish(bus, &names.fetch, names.id("a")).await;
    assert!(!bus.close(&names.filter).await.unwrap(), "closed although a message waits");
    let delivery = one(bus, &names.filter, pace).await;
    assert!(!bus.close(&names.filter).await.unwrap(), "closed although a message is out");
    delivery.ack().await.unwrap();
    assert!(bus.close(&names.filter).await.unwrap());
}

/// A reopened origin queue behaves like a new one: it delivers the messages that were published meanwhile, and those
/// that follow.
pub(crate) async fn closed_origin_is_opened_and_used_again(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("closed_lane_is_opened_and_used_again", pace);
    for turn in 0..3 {
        bus.open(names.spec(1 + turn, pace)).await.unwrap();
        publish(bus, &names.fetch, names.id(&format!("open {turn}"))).await;
        one(bus, &names.filter, pace).await.ack().await.unwrap();
        assert!(bus.close(&names.filter).await.unwrap(), "turn {turn}");
        assert!(
            !bus.origins().borrow().contains_key(&names.origin),
            "turn {turn}: a closed queue is announced"
        );
    }
    publish(bus, &names.fetch, names.id("while it is closed")).await;
    bus.open(names.spec(2, pace)).await.unwrap();
    assert_eq!(bus.origins().borrow().get(&names.origin), Some(&names.spec(2, pace)));
    one(bus, &names.filter, pace).await.ack().await.unwrap();
    none(bus, &names.filter, pace).await;
    assert!(bus.close(&names.filter).await.unwrap());
}
