use std::time::Duration;

use control::{Claim, Config, Control, Lease, LeaseRecord, MemberId, WatchCache};
use futures::future::join_all;
use testkit::servers::NatsServer;
use tokio::time::Instant;

use crate::support::{Line, config, config_at, now, soon, source};

fn member(name: &str) -> MemberId {
    name.parse().unwrap()
}

async fn take(control: &Control, holder: &str) -> Lease {
    match control.leases().acquire(&source(1), &member(holder), now()).await.unwrap() {
        Claim::Taken(lease) => lease,
        Claim::Held(by) => panic!("{} has it", by.holder),
    }
}

/// Acquires the lease as soon as it is free.
async fn take_when_free(control: &Control, leases: &mut WatchCache<LeaseRecord>, holder: &str) -> Lease {
    soon("the lease is free", leases.wait_for(|leases| leases.get(&source(1)).is_none().then_some(()))).await;
    take(control, holder).await
}

/// Waits until the lease was renewed so many times.
async fn renewed(leases: &mut WatchCache<LeaseRecord>, times: usize) {
    let mut seen = Vec::new();
    let look = |leases: &WatchCache<LeaseRecord>| {
        let revision = leases.get(&source(1)).expect("it was never gone").revision;
        if seen.last() != Some(&revision) {
            seen.push(revision);
        }
        (seen.len() > times).then_some(())
    };
    soon("it is renewed", leases.wait_for(look)).await;
}

#[tokio::test]
async fn of_many_who_ask_one_has_it_and_the_others_know_who() {
    let config = config().await;
    let controls = join_all((0..4).map(|_| Control::connect(&config))).await;
    let asking = controls.iter().enumerate().map(|(n, control)| async move {
        let holder = member(&format!("member-{n}"));
        control.as_ref().unwrap().leases().acquire(&source(1), &holder, now()).await.unwrap()
    });
    let claims = join_all(asking).await;
    let taken = claims.iter().filter_map(|claim| match claim {
        Claim::Taken(lease) => Some(lease.term()),
        Claim::Held(_) => None,
    });
    let taken: Vec<_> = taken.collect();
    assert_eq!(taken.len(), 1);
    for claim in &claims {
        if let Claim::Held(by) = claim {
            assert_eq!(by.term(), taken[0]);
        }
    }
}

#[tokio::test]
async fn a_lease_outlives_its_time_by_renewal() {
    let config = Config { lease_seconds: 1, ..config().await };
    let control = Control::connect(&config).await.unwrap();
    let mut leases = control.leases().view().await.unwrap();
    let lease = take(&control, "me").await;
    soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;
    let begun = Instant::now();
    renewed(&mut leases, 12).await;
    assert!(begun.elapsed() > Duration::from_secs(2), "that was longer than it lasts by itself");
    assert!(lease.is_held() && !lease.lost().is_cancelled());
    assert_eq!(leases.get(&source(1)).unwrap().term(), lease.term());
}

#[tokio::test]
async fn a_lease_that_is_given_back_or_dropped_is_free_at_once_and_epochs_grow() {
    let config = Config { lease_seconds: 60, ..config().await };
    let control = Control::connect(&config).await.unwrap();
    let mut leases = control.leases().view().await.unwrap();
    let first = take(&control, "a").await;
    let epoch = first.term().epoch;
    let lost = first.lost().clone();
    first.release().await;
    assert!(lost.is_cancelled(), "who still works with it is told");
    let second = take(&control, "b").await;
    assert!(second.term().epoch > epoch);
    soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;
    drop(second);
    // A minute before it would expire.
    take_when_free(&control, &mut leases, "c").await;
}

#[tokio::test]
async fn a_holder_that_is_cut_off_knows_before_anybody_else_can_have_it() {
    let config = config().await;
    let others = Control::connect(&config).await.unwrap();
    let mut leases = others.leases().view().await.unwrap();
    let line = Line::to(&config.servers[0]).await;
    let ours = Control::connect(&Config { servers: vec![line.url()], ..config }).await.unwrap();
    let lease = take(&ours, "ours").await;
    soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;

    line.cut();
    soon("it is lost", lease.lost().cancelled()).await;
    let claim = others.leases().acquire(&source(1), &member("other"), now()).await.unwrap();
    assert!(matches!(claim, Claim::Held(_)), "at that moment it still is nobody else's");
    assert!(!lease.is_held());

    let taken = take_when_free(&others, &mut leases, "other").await;
    assert!(taken.term().epoch > lease.term().epoch);
    // Late writes of the first holder change nothing.
    line.repair();
    soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;
    renewed(&mut leases, 4).await;
    drop(lease);
    renewed(&mut leases, 4).await;
    assert!(taken.is_held());
    assert_eq!(leases.get(&source(1)).unwrap().term(), taken.term());
}

#[tokio::test]
async fn a_lease_taken_after_another_expired_expires_as_well() {
    let config = Config { lease_seconds: 1, ..config().await };
    let others = Control::connect(&config).await.unwrap();
    let mut leases = others.leases().view().await.unwrap();
    let mut epochs = Vec::new();
    // When it is acquired again, the key has the marker of an expiry, of a deletion, or none.
    for holder in ["a", "b", "c"] {
        let line = Line::to(&config.servers[0]).await;
        let ours = Control::connect(&Config { servers: vec![line.url()], ..config.clone() }).await.unwrap();
        let lease = take_when_free(&ours, &mut leases, holder).await;
        soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;
        epochs.push(lease.term().epoch);
        line.cut();
        soon("it is lost", lease.lost().cancelled()).await;
    }
    let last = take_when_free(&others, &mut leases, "d").await;
    epochs.push(last.term().epoch);
    assert!(epochs.is_sorted(), "{epochs:?}");
}

#[tokio::test]
async fn a_short_cut_of_the_line_costs_no_lease() {
    let config = Config { lease_seconds: 5, ..config().await };
    let others = Control::connect(&config).await.unwrap();
    let mut leases = others.leases().view().await.unwrap();
    let line = Line::to(&config.servers[0]).await;
    let ours = Control::connect(&Config { servers: vec![line.url()], ..config }).await.unwrap();
    let lease = take(&ours, "ours").await;
    soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;
    let mut own = ours.leases().view().await.unwrap();
    line.cut();
    soon("it notices", own.wait_for(|own| (!own.is_live()).then_some(()))).await;
    line.repair();
    renewed(&mut leases, 4).await;
    assert!(lease.is_held());
}

#[tokio::test]
async fn a_server_that_is_killed_and_is_back_in_time_costs_no_lease() {
    let mut server = NatsServer::start().await.unwrap();
    let config = Config { lease_seconds: 20, ..config_at(server.url()) };
    let control = Control::connect(&config).await.unwrap();
    let mut leases = control.leases().view().await.unwrap();
    let lease = take(&control, "me").await;
    soon("it is seen", leases.wait_for(|leases| leases.get(&source(1)))).await;
    server.kill();
    soon("the view notices", leases.wait_for(|leases| (!leases.is_live()).then_some(()))).await;
    server.start_again().await.unwrap();
    soon("the view is live again", leases.wait_for(|leases| leases.is_live().then_some(()))).await;
    renewed(&mut leases, 1).await;
    assert!(lease.is_held());
    assert_eq!(leases.get(&source(1)).unwrap().term(), lease.term());
}

#[tokio::test]
async fn a_server_that_stays_away_costs_every_lease_in_time() {
    let mut server = NatsServer::start().await.unwrap();
    let control = Control::connect(&config_at(server.url())).await.unwrap();
    let lease = take(&control, "me").await;
    server.kill();
    // Its last renewal was at the latest when the server was killed.
    let killed = Instant::now();
    // The beginning of the last look that saw it held: one that comes late sees that it is over.
    let mut last = killed;
    soon("it is held no more", async {
        loop {
            let look = Instant::now();
            if !lease.is_held() {
                break;
            }
            last = look;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(last - killed < Duration::from_secs(2), "{:?}", last - killed);
    soon("it is lost", lease.lost().cancelled()).await;
    server.start_again().await.unwrap();
    let mut leases = soon("the server is back", async {
        loop {
            if let Ok(view) = control.leases().view().await {
                break view;
            }
        }
    })
    .await;
    take_when_free(&control, &mut leases, "again").await;
}
