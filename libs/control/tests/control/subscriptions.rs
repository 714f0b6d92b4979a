use control::{
    AdvertisedChannel, AskedMode, ControlError, DeliveryStats, SubscriptionId, SubscriptionState,
    SubscriptionStep,
};
use jiff::SignedDuration;
use model::SetId;

use crate::support::{control, now, soon, source};

fn offered() -> AdvertisedChannel {
    AdvertisedChannel {
        source: source(1),
        set: SetId::new("https://example.org/1"),
        topic: "https://example.org/change".to_owned(),
        hubs: vec!["https://hub.example/".to_owned()],
    }
}

fn verify(mode: AskedMode) -> SubscriptionStep {
    SubscriptionStep::Verify { mode, topic: offered().topic, lease_seconds: Some(600) }
}

#[tokio::test]
async fn two_who_want_the_same_channel_want_one_subscription_and_one_of_them_asks() {
    let one = control().await;
    let now = now();
    let subscriptions = one.subscriptions();
    let wants =
        (0..8).map(|_| async { subscriptions.want(&offered(), "key", now).await.unwrap().id.clone() });
    let ids = futures::future::join_all(wants).await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let asks = (0..8).map(|_| subscriptions.step(&ids[0], &SubscriptionStep::Ask, now));
    let asked = futures::future::join_all(asks).await;
    let refused = |asked: &&Result<_, ControlError>| matches!(asked, Err(ControlError::NotRequested(_)));
    assert_eq!(asked.iter().filter(|asked| asked.is_ok()).count(), 1);
    assert_eq!(asked.iter().filter(refused).count(), 7);
}

#[tokio::test]
async fn a_subscription_is_seen_by_all_through_its_life_and_gone_at_its_end() {
    let control = control().await;
    let now = now();
    let subscriptions = control.subscriptions();
    let mut view = subscriptions.view().await.unwrap();
    let id = subscriptions.want(&offered(), "key", now).await.unwrap().id.clone();
    assert!(matches!(
        subscriptions.step(&id, &verify(AskedMode::Subscribe), now).await,
        Err(ControlError::NotRequested(_))
    ));
    subscriptions.step(&id, &SubscriptionStep::Ask, now).await.unwrap();
    subscriptions.step(&id, &verify(AskedMode::Subscribe), now).await.unwrap();
    let count =
        SubscriptionStep::Count(DeliveryStats { queued: 2, last_at: Some(now), ..DeliveryStats::default() });
    subscriptions.step(&id, &count, now).await.unwrap();
    let seen = soon(
        "it is active in the view",
        view.wait_for(|view| view.get(&id).filter(|seen| seen.is_active(now) && seen.received.queued == 2)),
    );
    assert!(matches!(seen.await.state, SubscriptionState::Active { .. }));
    assert_eq!(subscriptions.of(&source(1)).await.unwrap().len(), 1);
    assert_eq!(subscriptions.of(&source(2)).await.unwrap().len(), 0);

    subscriptions.step(&id, &SubscriptionStep::Unwanted, now).await.unwrap();
    subscriptions.step(&id, &SubscriptionStep::Ask, now).await.unwrap();
    assert!(subscriptions.step(&id, &verify(AskedMode::Unsubscribe), now).await.unwrap().is_none());
    soon("it is gone from the view", view.wait_for(|view| view.get(&id).is_none().then_some(()))).await;
    let gone = subscriptions.step(&id, &SubscriptionStep::Ask, now + SignedDuration::from_hours(1)).await;
    assert!(matches!(gone, Err(ControlError::Absent { .. })));
    // A subscription that ended can be requested again.
    assert_eq!(subscriptions.want(&offered(), "key", now).await.unwrap().state, SubscriptionState::Wanted);
    let other = SubscriptionId::of(&source(1), &offered().topic, "other key");
    assert_ne!(id, other, "under another key it is another one");
}
