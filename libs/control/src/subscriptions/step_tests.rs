//! The life of a subscription, its exceptions, and invariants for any order of steps.

use proptest::prelude::*;

use super::*;
use crate::subscriptions::SubscriptionId;

const TOPIC: &str = "http://example.com/change/";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn offered(hubs: &[&str]) -> AdvertisedChannel {
    AdvertisedChannel {
        source: "example-1".parse().unwrap(),
        set: model::SetId::new("http://example.com/capabilitylist.xml"),
        topic: TOPIC.to_owned(),
        hubs: hubs.iter().map(|hub| (*hub).to_owned()).collect(),
    }
}

fn wanted() -> Subscription {
    let offered = offered(&["http://hub/", "http://hub2/"]);
    let id = SubscriptionId::of(&offered.source, TOPIC, "key");
    Subscription::wanted(id, &offered, "key", at(0))
}

fn verify(mode: AskedMode) -> SubscriptionStep {
    SubscriptionStep::Verify { mode, topic: TOPIC.to_owned(), lease_seconds: Some(3_600) }
}

fn failed(asked_at: Timestamp) -> SubscriptionStep {
    SubscriptionStep::Failed { asked_at, why: "no answer".to_owned(), refused: false, not_before: None }
}

fn deny() -> SubscriptionStep {
    SubscriptionStep::Deny { topic: None, reason: Some("full".to_owned()) }
}

/// The subscription after steps that are all accepted, none of which ends it.
fn after(subscription: &Subscription, steps: &[(i64, SubscriptionStep)]) -> Subscription {
    steps.iter().fold(subscription.clone(), |subscription, (second, step)| {
        subscription.step(step, at(*second)).unwrap().expect("it goes on")
    })
}

/// The first whole second at which its hub may be asked.
fn due(subscription: &Subscription) -> i64 {
    let next = subscription.next_at;
    next.as_second() - 1_800_000_000 + i64::from(next.subsec_nanosecond() > 0)
}

fn active() -> Subscription {
    after(&wanted(), &[(0, SubscriptionStep::Ask), (1, verify(AskedMode::Subscribe))])
}

fn ending() -> Subscription {
    after(&active(), &[(10, SubscriptionStep::Unwanted)])
}

#[test]
fn a_subscription_is_asked_for_verified_and_renewed_before_its_end() {
    let pending = after(&wanted(), &[(0, SubscriptionStep::Ask)]);
    assert_eq!((pending.state.clone(), pending.next_at), (SubscriptionState::Pending, at(300)));
    let active = active();
    assert_eq!(active.state, SubscriptionState::Active { since: at(1), until: at(3_601) });
    assert!(active.next_at > at(2_000) && active.next_at <= at(2_401), "{:?}", active.next_at);
    let due = due(&active);
    assert!(active.step(&SubscriptionStep::Ask, at(due - 1)).is_err(), "nobody is asked before it is due");
    let renewing = after(&active, &[(due, SubscriptionStep::Ask)]);
    assert!(renewing.is_active(at(due)), "what works is not given up for what may not");
    let renewed = after(&renewing, &[(due + 1, verify(AskedMode::Subscribe))]);
    assert_eq!(renewed.state, SubscriptionState::Active { since: at(1), until: at(due + 3_601) });
    assert_eq!(renewed.tells_since(at(due + 2)), Some(at(1)), "there was no moment in which none worked");
    assert_eq!((renewed.id, renewed.key), (active.id, active.key), "so it has the same secret");
}

#[test]
fn of_several_who_find_it_due_one_asks() {
    let asked = after(&wanted(), &[(0, SubscriptionStep::Ask)]);
    assert!(asked.step(&SubscriptionStep::Ask, at(0)).is_err());
    assert_eq!(after(&asked, &[(300, SubscriptionStep::Ask)]).tries, 2, "a silent hub is asked again");
}

#[test]
fn what_was_never_asked_is_not_verified() {
    let refused = |subscription: &Subscription, step| subscription.step(&step, at(20)).is_err();
    let other =
        |mode| SubscriptionStep::Verify { mode, topic: "http://other/".to_owned(), lease_seconds: None };
    for mode in [AskedMode::Subscribe, AskedMode::Unsubscribe] {
        assert!(refused(&wanted(), verify(mode)), "nothing was asked");
        assert!(refused(&active(), other(mode)) && refused(&ending(), other(mode)), "another channel");
        assert!(refused(&after(&active(), &[(10, deny())]), verify(mode)), "it has said no");
    }
    assert!(refused(&active(), verify(AskedMode::Unsubscribe)), "nobody wants that");
    assert!(refused(&ending(), verify(AskedMode::Subscribe)), "nobody wants that any more");
    assert!(refused(&ending(), verify(AskedMode::Unsubscribe)), "nobody has said so yet");
    assert!(
        wanted().step(&SubscriptionStep::Deny { topic: Some("x".to_owned()), reason: None }, at(0)).is_err()
    );
}

#[test]
fn a_hub_that_asks_back_late_is_understood_for_a_day() {
    let given_up = after(&wanted(), &[(0, SubscriptionStep::Ask), (60, failed(at(0)))]);
    assert_eq!(given_up.state, SubscriptionState::Wanted);
    assert!(after(&given_up, &[(80_000, verify(AskedMode::Subscribe))]).is_active(at(80_001)));
    assert!(given_up.step(&verify(AskedMode::Subscribe), at(86_401)).is_err());
    // The response was lost, and the hub asks once more.
    assert!(after(&active(), &[(5, verify(AskedMode::Subscribe))]).is_active(at(6)));
}

#[test]
fn what_fails_is_tried_again_ever_later_and_with_the_next_hub() {
    let mut subscription = wanted();
    let mut now = 0;
    let mut waits = Vec::new();
    let mut hubs = Vec::new();
    for _ in 0..4 {
        hubs.push(subscription.hub().unwrap().to_owned());
        subscription = after(&subscription, &[(now, SubscriptionStep::Ask), (now, failed(at(now)))]);
        let wait = subscription.next_at.as_second() - at(now).as_second();
        waits.push(wait);
        now += wait;
    }
    assert_eq!(waits, [10, 20, 40, 80]);
    assert_eq!(hubs, ["http://hub/", "http://hub2/", "http://hub/", "http://hub2/"]);
    assert_eq!(subscription.trouble.as_deref(), Some("no answer"));
    let asked = after(&wanted(), &[(0, SubscriptionStep::Ask)]);
    let told = SubscriptionStep::Failed {
        asked_at: at(0),
        why: String::new(),
        refused: true,
        not_before: Some(at(9_000)),
    };
    assert_eq!(after(&asked, &[(1, told)]).next_at, at(9_000), "a hub's own word is kept to");
}

#[test]
fn a_renewal_that_fails_leaves_what_works_and_the_hub_that_it_works_with() {
    let active = active();
    let due = due(&active);
    let failing = after(&active, &[(due, SubscriptionStep::Ask), (due + 1, failed(at(due)))]);
    assert_eq!((&failing.state, failing.hub()), (&active.state, Some("http://hub/")));
    assert_eq!(failing.next_at, at(due + 11));
    assert_eq!((failing.status(at(3_600)), failing.status(at(3_601))), ("active", "expired"));
    let run_out = after(&failing, &[(3_700, SubscriptionStep::Ask)]);
    assert_eq!(run_out.state, SubscriptionState::Pending);
}

#[test]
fn a_failure_that_was_overtaken_is_of_no_consequence() {
    let active = active();
    assert_eq!(after(&active, &[(2, failed(at(0)))]), active, "it was verified while the request was open");
    let again = after(&wanted(), &[(0, SubscriptionStep::Ask), (300, SubscriptionStep::Ask)]);
    assert_eq!(after(&again, &[(301, failed(at(0)))]), again);
}

#[test]
fn after_a_no_it_is_asked_again_ever_more_seldom() {
    let denied = after(&active(), &[(10, deny())]);
    assert_eq!((denied.next_at, denied.status(at(11))), (at(3_610), "denied"));
    assert_eq!(denied.trouble.as_deref(), Some("its hub says no: full"));
    let again = after(&denied, &[(3_610, SubscriptionStep::Ask), (3_611, deny())]);
    assert_eq!(again.next_at, at(3_611 + 7_200));
    assert!(
        after(&denied, &[(3_610, SubscriptionStep::Ask), (3_612, verify(AskedMode::Subscribe))])
            .is_active(at(3_613))
    );
}

#[test]
fn what_nobody_wants_any_more_ends_when_the_hub_has_heard_it_or_will_not() {
    let end =
        |subscription: &Subscription, step, second| subscription.step(&step, at(second)).unwrap().is_none();
    assert!(end(&wanted(), SubscriptionStep::Unwanted, 0), "no hub knows of it");
    assert!(end(&after(&active(), &[(10, deny())]), SubscriptionStep::Unwanted, 11), "its hub ended it");
    assert_eq!(ending().asks(), AskedMode::Unsubscribe);
    let told = after(&ending(), &[(10, SubscriptionStep::Ask)]);
    assert!(end(&told, verify(AskedMode::Unsubscribe), 11));
    assert!(end(&told, deny(), 11));
    let mut told = ending();
    for _ in 0..MOST_FAREWELLS {
        let now = due(&told);
        told = after(&told, &[(now, SubscriptionStep::Ask)]);
    }
    let now = due(&told);
    assert!(end(&told, SubscriptionStep::Ask, now), "a hub that hears nothing is left alone");
}

#[test]
fn what_is_offered_again_is_wanted_again_and_another_hub_is_asked_at_once() {
    let again = ending().offered(&offered(&["http://hub/", "http://hub2/"]), at(20));
    assert_eq!((&again.state, again.next_at), (&SubscriptionState::Wanted, at(20)));
    assert!(again.step(&verify(AskedMode::Unsubscribe), at(21)).is_err(), "the farewell was taken back");
    let rotated = after(&wanted(), &[(0, SubscriptionStep::Ask), (1, failed(at(0)))]);
    assert_eq!(rotated.offered(&offered(&["http://hub/", "http://hub2/"]), at(2)), rotated, "the same hubs");
    let moved = active().offered(&offered(&["http://new/"]), at(20));
    assert_eq!((moved.hub(), moved.next_at), (Some("http://new/"), at(20)));
    assert!(moved.is_active(at(20)), "what the old hub delivers is taken meanwhile");
}

#[test]
fn missed_changes_have_the_hub_asked_anew_unless_it_is_being_asked() {
    let missed = SubscriptionStep::Missed { changes: 3 };
    let told = after(&active(), &[(100, missed.clone())]);
    assert_eq!((told.next_at, told.received.missed, told.is_active(at(100))), (at(100), 3, true));
    let asking = after(&told, &[(100, SubscriptionStep::Ask), (101, missed)]);
    assert_eq!((asking.next_at, asking.received.missed), (at(400), 6));
    let verified = after(&asking, &[(102, verify(AskedMode::Subscribe))]);
    let soon = after(&verified, &[(200, SubscriptionStep::Missed { changes: 1 })]);
    assert_eq!((soon.next_at, soon.received.missed), (verified.next_at, 7), "not all the time");
    let renewed = after(&soon, &[(2_600, SubscriptionStep::Ask), (2_601, verify(AskedMode::Subscribe))]);
    let later = after(&renewed, &[(3_800, SubscriptionStep::Missed { changes: 1 })]);
    assert_eq!(later.next_at, at(3_800));
}

#[test]
fn counts_add_up() {
    let count = |queued, second| {
        SubscriptionStep::Count(DeliveryStats { queued, dropped: 1, last_at: Some(at(second)), missed: 0 })
    };
    let counted = after(&active(), &[(20, count(2, 19)), (30, count(3, 15))]);
    assert_eq!(counted.received, DeliveryStats { queued: 5, dropped: 2, last_at: Some(at(19)), missed: 0 });
}

fn any_step() -> impl Strategy<Value = SubscriptionStep> {
    let mode = prop_oneof![Just(AskedMode::Subscribe), Just(AskedMode::Unsubscribe)];
    prop_oneof![
        4 => Just(SubscriptionStep::Ask),
        2 => (0_i64..40_000).prop_map(|second| failed(at(second))),
        4 => mode.prop_map(verify),
        1 => Just(deny()),
        1 => Just(SubscriptionStep::Unwanted),
        1 => (0_u64..9).prop_map(|changes| SubscriptionStep::Missed { changes }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_happens_what_is_active_was_asked_for_and_nothing_is_due_at_once_for_ever(
        steps in prop::collection::vec((0_i64..2_000, any_step()), 1..40),
    ) {
        let mut subscription = wanted();
        let mut now = 0;
        let mut asked_at = None;
        for (wait, step) in steps {
            now += wait;
            let before = subscription.clone();
            match before.step(&step, at(now)) {
                Err(_) => continue,
                Ok(None) => {
                    let may_end = matches!(
                        step,
                        SubscriptionStep::Unwanted
                            | SubscriptionStep::Deny { .. }
                            | SubscriptionStep::Ask
                            | SubscriptionStep::Verify { mode: AskedMode::Unsubscribe, .. }
                    );
                    prop_assert!(may_end);
                    return Ok(());
                }
                Ok(Some(next)) => subscription = next,
            }
            if step == SubscriptionStep::Ask {
                prop_assert!(subscription.next_at >= at(now + 10));
                asked_at = Some(at(now));
            }
            if subscription.is_active(at(now)) && !before.is_active(at(now)) {
                let is_verified = matches!(step, SubscriptionStep::Verify { mode: AskedMode::Subscribe, .. });
                prop_assert!(is_verified);
                prop_assert!(asked_at.is_some());
            }
            prop_assert_eq!(&subscription.id, &before.id);
            prop_assert!(subscription.hub().is_some());
        }
    }
}
