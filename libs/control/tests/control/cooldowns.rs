use std::time::Duration;

use control::{Control, Cooldown};
use jiff::SignedDuration;
use model::Origin;
use tokio::time::Instant;

use crate::support::{config, now, soon};

fn origin() -> Origin {
    "https://example.org".parse().unwrap()
}

fn rest(seconds: i64) -> Cooldown {
    Cooldown { origin: origin(), until: now() + SignedDuration::from_secs(seconds), status: 503 }
}

#[tokio::test]
async fn a_rest_is_seen_by_every_fetcher_within_a_second_and_ends_by_itself() {
    let config = config().await;
    let one = Control::connect(&config).await.unwrap();
    let two = Control::connect(&config).await.unwrap();
    let mut view = two.cooldowns().view().await.unwrap();
    let begun = Instant::now();
    one.cooldowns().put(&rest(2), now()).await.unwrap();
    let seen = soon("it is seen", view.wait_for(|view| view.get(&origin()))).await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(seen.status, 503);
    soon("it is over", view.wait_for(|view| view.get(&origin()).is_none().then_some(()))).await;
    assert!(now() >= seen.until, "not before its time");
    one.cooldowns().put(&rest(1), now()).await.unwrap();
    soon("there is another", view.wait_for(|view| view.get(&origin()))).await;
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
