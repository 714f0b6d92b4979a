use std::sync::Arc;
use std::time::Duration;

use control::{Control, Cooldown, WatchCache};
use jiff::SignedDuration;
use model::Origin;
use tokio::time::timeout;

use crate::support::{config, now, soon};

fn origin() -> Origin {
    "https://example.org".parse().unwrap()
}

fn rest(seconds: i64) -> Cooldown {
    Cooldown { origin: origin(), until: now() + SignedDuration::from_secs(seconds), status: 503 }
}

/// Sets a short rest, and waits until it is seen. One that is over before is set again.
async fn seen(by: &Control, view: &mut WatchCache<Cooldown>, seconds: i64) -> Arc<Cooldown> {
    for _ in 0..20 {
        by.cooldowns().put(&rest(seconds), now()).await.unwrap();
        let seen = view.wait_for(|view| view.get(&origin()));
        if let Ok(seen) = timeout(Duration::from_secs(2), seen).await {
            return seen.value;
        }
    }
    panic!("a rest of {seconds} s is never seen");
}

#[tokio::test]
async fn a_rest_is_seen_by_every_fetcher_and_ends_by_itself() {
    let config = config().await;
    let one = Control::connect(&config).await.unwrap();
    let two = Control::connect(&config).await.unwrap();
    let mut view = two.cooldowns().view().await.unwrap();
    let first = seen(&one, &mut view, 2).await;
    assert_eq!(first.status, 503);
    soon("it is over", view.wait_for(|view| view.get(&origin()).is_none().then_some(()))).await;
    assert!(now() >= first.until, "not before its time");
    seen(&one, &mut view, 1).await;
    soon("and it ends too", view.wait_for(|view| view.get(&origin()).is_none().then_some(()))).await;
}

#[tokio::test]
async fn a_rest_is_made_longer_and_never_shorter() {
    let control = Control::connect(&config().await).await.unwrap();
    let mut view = control.cooldowns().view().await.unwrap();
    let short = rest(60);
    let long = rest(120);
    control.cooldowns().put(&short, now()).await.unwrap();
    control.cooldowns().put(&long, now()).await.unwrap();
    control.cooldowns().put(&short, now()).await.unwrap();
    control.cooldowns().put(&rest(-5), now()).await.unwrap();
    let seen = view.wait_for(|view| view.get(&origin()).filter(|rest| rest.until > short.until));
    assert_eq!(soon("the longer one", seen).await.until, long.until);
    let fresh = control.cooldowns().view().await.unwrap();
    assert_eq!(fresh.get(&origin()).unwrap().until, long.until);
}

#[tokio::test]
async fn no_word_puts_a_origin_to_rest_for_longer_than_a_day() {
    let control = Control::connect(&config().await).await.unwrap();
    control.cooldowns().put(&rest(10_000_000), now()).await.unwrap();
    let view = control.cooldowns().view().await.unwrap();
    let until = view.get(&origin()).unwrap().until;
    assert!(until <= now() + SignedDuration::from_hours(24));
}
