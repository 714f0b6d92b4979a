//! Deliveries to subscribers that are behind, of which some are at a slow origin.

use std::sync::atomic::Ordering;
use std::time::Duration;

use testkit::callbacks::{Callbacks, Manner};
use testkit::waiting::until;

use crate::hub::testing::{Case, subscriber};

#[tokio::test]
async fn those_who_are_behind_at_a_slow_origin_hold_up_none_at_another_one() {
    let case = Case::new().await;
    let (slow, good) = (Callbacks::start().unwrap(), Callbacks::start().unwrap());
    for number in 0..80 {
        let path = format!("/{number}");
        slow.behave(&path, Manner { delay: Duration::from_secs(3_600), ..Manner::default() });
        case.hub.take(subscriber(&slow.url(&path), case.told));
    }
    case.hub.take(subscriber(&good.url("/good"), case.told));
    until("the other one is told", || good.taken("/good").len() == 1).await;
    // Four of the slow origin are under way.
    let free = || case.room.bodies().available_permits();
    until("the bodies are made", || free() == 60 && case.room.catching_up().available_permits() == 16).await;
    let counted = case.room.payload_bytes().load(Ordering::Relaxed);
    assert_eq!(counted, 0, "they leave the room of new payloads to these");
    case.stop();
}
