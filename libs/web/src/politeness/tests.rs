use futures::poll;
use std::pin::pin;

use super::*;

const NONE: Duration = Duration::ZERO;

fn politeness(at_a_time: usize) -> Politeness {
    Politeness::new(Limits { at_a_time, per_second: None, patience: Duration::from_secs(100), host_share: 4 })
}

fn spaced(spacing: Duration) -> Asks<'static> {
    Asks { entry: None, spacing, pace: NONE, per_host: 1_000 }
}

fn origin(n: usize) -> Origin {
    format!("http://host{n}.example").parse().unwrap()
}

fn asks_for(status: u16, seconds: u64) -> Signal {
    Signal { status, retry_after: Some(Duration::from_secs(seconds)) }
}

#[tokio::test(start_paused = true)]
async fn only_throttling_answers_with_a_wait_begin_a_rest() {
    let now = Instant::now();
    let in_seconds = |seconds| CooldownUpdate { until: Some(now + Duration::from_secs(seconds)) };
    for (before, signal, after) in [
        (CooldownUpdate::default(), asks_for(429, 5), in_seconds(5)),
        (CooldownUpdate::default(), asks_for(503, 5), in_seconds(5)),
        (CooldownUpdate::default(), asks_for(500, 5), CooldownUpdate::default()),
        (CooldownUpdate::default(), asks_for(200, 5), CooldownUpdate::default()),
        (CooldownUpdate::default(), Signal { status: 503, retry_after: None }, CooldownUpdate::default()),
        (in_seconds(9), asks_for(429, 5), in_seconds(9)),
        (in_seconds(3), asks_for(429, 5), in_seconds(5)),
        (in_seconds(3), Signal { status: 200, retry_after: None }, in_seconds(3)),
    ] {
        assert_eq!(decide(before, signal, now), after, "{before:?} {signal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_budget_is_per_origin_and_given_back_when_dropped() {
    let politeness = politeness(2);
    let one = origin(1);
    let two = origin(2);
    let first = politeness.enter(&one, spaced(NONE), None).await.unwrap();
    let _second = politeness.enter(&one, spaced(NONE), None).await.unwrap();
    let mut third = pin!(politeness.enter(&one, spaced(NONE), None));
    assert!(poll!(&mut third).is_pending());
    let _other = politeness.enter(&two, spaced(NONE), None).await.unwrap();
    drop(first);
    assert!(poll!(&mut third).is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_rest_on_the_word_of_others_holds_and_never_shortens_one() {
    let politeness = politeness(1);
    let origin = origin(1);
    politeness.rest(&origin, Duration::from_secs(20));
    assert_eq!(politeness.resting(&origin), Some(Duration::from_secs(20)));
    politeness.rest(&origin, Duration::from_secs(5));
    let start = Instant::now();
    politeness.enter(&origin, spaced(NONE), None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn an_answer_tells_of_a_rest_only_when_it_makes_it_begin_or_last_longer() {
    let politeness = politeness(1);
    let permit = politeness.enter(&origin(1), spaced(NONE), None).await.unwrap();
    let told =
        [asks_for(200, 9), asks_for(503, 5), asks_for(429, 4), asks_for(429, 6)].map(|s| permit.note(s));
    assert_eq!(told, [None, Some(Duration::from_secs(5)), None, Some(Duration::from_secs(6))]);
}

#[tokio::test(start_paused = true)]
async fn others_wait_until_the_rest_is_over_without_holding_a_place() {
    let politeness = politeness(1);
    let origin = origin(1);
    politeness.enter(&origin, spaced(NONE), None).await.unwrap().note(asks_for(503, 30));
    assert_eq!(politeness.resting(&origin), Some(Duration::from_secs(30)));
    let start = Instant::now();
    let mut waiting = pin!(politeness.enter(&origin, spaced(NONE), None));
    assert!(poll!(&mut waiting).is_pending());
    assert_eq!(politeness.budget(&origin).places.available_permits(), 1);
    waiting.await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(30));
    assert_eq!(politeness.resting(&origin), None);
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_begins_while_a_request_waits_for_its_place_holds_for_it() {
    let politeness = politeness(1);
    let origin = origin(1);
    let start = Instant::now();
    let first = politeness.enter(&origin, spaced(NONE), None).await.unwrap();
    let mut waiting = pin!(politeness.enter(&origin, spaced(NONE), None));
    assert!(poll!(&mut waiting).is_pending());
    first.note(asks_for(429, 20));
    drop(first);
    waiting.await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_rest_longer_than_the_patience_is_told_at_once() {
    let politeness = politeness(1);
    let origin = origin(1);
    politeness.enter(&origin, spaced(NONE), None).await.unwrap().note(asks_for(503, 101));
    let start = Instant::now();
    assert_eq!(
        politeness.enter(&origin, spaced(NONE), None).await.unwrap_err(),
        CoolingDown { left: Duration::from_secs(101) }
    );
    assert!(start.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn the_table_forgets_origins_that_nobody_uses() {
    let politeness = politeness(1);
    politeness.enter(&origin(0), spaced(NONE), None).await.unwrap().note(asks_for(429, 50));
    let used = politeness.enter(&origin(1), spaced(NONE), None).await.unwrap();
    for n in 2..5_000 {
        politeness.enter(&origin(n), spaced(NONE), None).await.unwrap();
    }
    let kept = lock(&politeness.table).origins.len();
    assert!(kept <= SWEEP_FIRST, "{kept} origins are kept");
    assert!(politeness.resting(&origin(0)).is_some(), "a resting origin was forgotten");
    let in_use = origin(1);
    let mut waiting = pin!(politeness.enter(&in_use, spaced(NONE), None));
    assert!(poll!(&mut waiting).is_pending(), "an origin in use was forgotten");
    drop(used);
}

#[tokio::test(start_paused = true)]
async fn a_pace_is_kept_between_requests() {
    let per_second = NonZeroU32::new(2);
    let politeness =
        Politeness::new(Limits { at_a_time: 4, per_second, patience: Duration::ZERO, host_share: 4 });
    let start = Instant::now();
    let mut turns = Vec::new();
    for _ in 0..4 {
        drop(politeness.enter(&origin(1), spaced(NONE), None).await.unwrap());
        turns.push(start.elapsed().as_millis());
    }
    // The runtime's timers round up to the next millisecond.
    for (turn, expected) in turns.into_iter().zip([0, 500, 1000, 1500]) {
        assert!((expected..=expected + 5).contains(&turn), "turn at {turn} ms, expected {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_share_that_changes_holds_also_for_a_request_that_waits() {
    let per_second = NonZeroU32::new(1);
    let politeness =
        Politeness::new(Limits { at_a_time: 4, per_second, patience: Duration::ZERO, host_share: 4 });
    politeness.set_sharers(2);
    let start = Instant::now();
    drop(politeness.enter(&origin(1), spaced(NONE), None).await.unwrap());
    let second = origin(1);
    let mut waiting = pin!(politeness.enter(&second, spaced(NONE), None));
    assert!(poll!(&mut waiting).is_pending());
    politeness.set_sharers(6);
    drop(waiting.await.unwrap());
    assert_eq!(start.elapsed().as_secs(), 6);
    drop(politeness.enter(&origin(2), spaced(NONE), None).await.unwrap());
    assert_eq!(start.elapsed().as_secs(), 6, "each origin has a pace of its own");
}

#[tokio::test(start_paused = true)]
async fn the_space_that_an_origin_asks_for_is_shared_too() {
    let politeness = politeness(4);
    let space = Duration::from_secs(10);
    let start = Instant::now();
    drop(politeness.enter(&origin(1), spaced(space), None).await.unwrap());
    politeness.set_sharers(3);
    drop(politeness.enter(&origin(1), spaced(space), None).await.unwrap());
    assert_eq!(start.elapsed().as_secs(), 30);
    politeness.set_sharers(0);
    drop(politeness.enter(&origin(1), spaced(space), None).await.unwrap());
    assert_eq!(start.elapsed().as_secs(), 40, "it is always one of them itself");
}

#[tokio::test(start_paused = true)]
async fn the_space_asked_for_is_left_between_the_beginnings_of_requests() {
    let politeness = politeness(4);
    let origin = origin(1);
    let space = Duration::from_secs(10);
    let start = Instant::now();
    drop(politeness.enter(&origin, spaced(NONE), None).await.unwrap());
    assert!(start.elapsed().is_zero(), "the first one has nothing to wait for");
    let begun = futures::future::join_all((0..3).map(|_| async {
        let permit = politeness.enter(&origin, spaced(space), None).await.unwrap();
        (permit, start.elapsed().as_secs())
    }));
    let mut begun: Vec<_> = begun.await.into_iter().map(|(_, second)| second).collect();
    begun.sort_unstable();
    assert_eq!(begun, [10, 20, 30]);
    drop(politeness.enter(&self::origin(2), spaced(space), None).await.unwrap());
    assert_eq!(start.elapsed().as_secs(), 30, "another origin has a space of its own");
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_begins_while_a_request_waits_for_its_space_holds_for_it() {
    let politeness = politeness(2);
    let origin = origin(1);
    let start = Instant::now();
    let first = politeness.enter(&origin, spaced(NONE), None).await.unwrap();
    let mut waiting = pin!(politeness.enter(&origin, spaced(Duration::from_secs(10)), None));
    assert!(poll!(&mut waiting).is_pending());
    first.note(asks_for(429, 50));
    waiting.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 50);
}

#[tokio::test(start_paused = true)]
async fn the_table_does_not_forget_a_space_that_is_still_to_be_left() {
    let politeness = politeness(1);
    let minute = Duration::from_secs(60);
    politeness.enter(&origin(0), spaced(minute), None).await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    for n in 1..2_000 {
        politeness.enter(&origin(n), spaced(NONE), None).await.unwrap();
    }
    let waits = origin(0);
    let mut waiting = pin!(politeness.enter(&waits, spaced(minute), None));
    assert!(poll!(&mut waiting).is_pending());
}

fn port(n: u16) -> Origin {
    format!("http://host.example:{n}").parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_ports_of_a_host_share_a_budget_and_other_hosts_have_their_own() {
    let politeness = politeness(1);
    let asks = Asks { entry: None, spacing: NONE, pace: NONE, per_host: 2 };
    let first = politeness.enter(&port(1), asks, None).await.unwrap();
    let _second = politeness.enter(&port(2), asks, None).await.unwrap();
    let third_port = port(3);
    let fourth_port = port(4);
    let mut third = pin!(politeness.enter(&third_port, asks, None));
    assert!(poll!(&mut third).is_pending());
    let _elsewhere = politeness.enter(&origin(1), asks, None).await.unwrap();
    let entry = origin(7);
    let wider = Asks { entry: Some(&entry), ..asks };
    let _of_another_source = politeness.enter(&fourth_port, wider, None).await.unwrap();
    drop(first);
    assert!(poll!(&mut third).is_ready());
}

#[tokio::test(start_paused = true)]
async fn the_ports_of_a_host_share_a_multiple_of_the_rate() {
    let politeness = politeness(1);
    let asks = Asks { entry: None, spacing: NONE, pace: Duration::from_secs(4), per_host: 100 };
    let start = Instant::now();
    for n in 1..=9 {
        politeness.enter(&port(n), asks, None).await.unwrap();
    }
    assert_eq!(start.elapsed().as_secs(), 8, "a request a second: four times the rate of one origin");
    // The rate of a single port is its own.
    politeness.enter(&port(9), asks, None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 12);
}

#[tokio::test(start_paused = true)]
async fn the_table_forgets_hosts_that_nobody_uses() {
    let politeness = politeness(1);
    let asks = Asks { entry: None, spacing: NONE, pace: Duration::from_secs(40), per_host: 100 };
    for n in 0..2_000 {
        politeness.enter(&origin(n), asks, None).await.unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!(politeness.hosts.len() <= 512, "{}", politeness.hosts.len());
}
