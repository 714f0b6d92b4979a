use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use control::{Config, Control, Lease, LeaseRecord, MemberId, Membership, Owner, Role, Turn, View, assign};
use model::{SourceId, SystemClock};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::{Line, config, now, soon, source};

/// A scheduler that works on whatever it owns, and gives up at once what moves.
struct Scheduler {
    line: Line,
    id: MemberId,
    membership: Membership,
    working: JoinHandle<()>,
}

async fn scheduler(config: &Config, name: &str, work: &watch::Sender<BTreeSet<SourceId>>) -> Scheduler {
    let (line, control, membership, mut owner) = joined(config, name, work).await;
    let id = membership.member().id.clone();
    let working = tokio::spawn(async move {
        let _control = control;
        let mut leases = BTreeMap::<SourceId, Lease>::new();
        loop {
            match owner.next().await {
                Turn::Take(lease) => {
                    leases.insert(lease.source().clone(), lease);
                }
                Turn::GiveUp(source) => {
                    leases.remove(&source).expect("only what is held is given up").release().await;
                    owner.let_go(&source);
                }
            }
        }
    });
    Scheduler { line, id, membership, working }
}

async fn joined(
    config: &Config,
    name: &str,
    work: &watch::Sender<BTreeSet<SourceId>>,
) -> (Line, Control, Membership, Owner) {
    let line = Line::to(&config.servers[0]).await;
    let config = Config { servers: vec![line.url()], ..config.clone() };
    let control = Control::connect(&config).await.unwrap();
    let membership = control.members().join(name.parse().unwrap(), Role::Scheduler, now()).await.unwrap();
    let me = membership.member().id.clone();
    let owner = Owner::new(&control, me, Arc::new(SystemClock), work.subscribe()).await.unwrap();
    (line, control, membership, owner)
}

/// Waits until every Source with work is held by whom it belongs to.
async fn settled(leases: &mut View<LeaseRecord>, work: &BTreeSet<SourceId>, members: &[MemberId]) {
    let is_right = |leases: &View<LeaseRecord>| {
        let held = |source| leases.get(source).map(|lease| lease.holder.clone());
        work.iter().all(|source| held(source).as_ref() == assign(members, source)).then_some(())
    };
    soon("every source is where it belongs", leases.wait_for(is_right)).await;
}

#[tokio::test]
async fn the_sources_of_a_dead_scheduler_are_owned_again_within_fifteen_seconds() {
    // The times that a fleet has by default.
    let config = Config { lease_seconds: 5, member_seconds: 5, ..config().await };
    let watcher = Control::connect(&config).await.unwrap();
    let mut leases = watcher.leases().view().await.unwrap();
    let sources: BTreeSet<_> = (0..30).map(source).collect();
    let (work, _) = watch::channel(sources.clone());
    let mut fleet = Vec::new();
    for name in ["a", "b", "c"] {
        fleet.push(scheduler(&config, name, &work).await);
    }
    let all: Vec<_> = fleet.iter().map(|scheduler| scheduler.id.clone()).collect();
    settled(&mut leases, &sources, &all).await;
    let before: BTreeMap<_, _> =
        sources.iter().map(|source| (source, leases.get(source).unwrap().tenure())).collect();

    let dead = fleet.remove(1);
    let died = Instant::now();
    // Cut off first, so that it takes leave of nobody.
    dead.line.cut();
    dead.working.abort();
    drop(dead.membership);
    let left: Vec<_> = fleet.iter().map(|scheduler| scheduler.id.clone()).collect();
    settled(&mut leases, &sources, &left).await;
    assert!(died.elapsed() < Duration::from_secs(15), "{:?}", died.elapsed());
    for source in &sources {
        let (was, is) = (&before[source], leases.get(source).unwrap().tenure());
        assert!(was.owner == dead.id || *was == is, "{source} moved without need");
    }
}

#[tokio::test]
async fn a_scheduler_that_comes_gets_its_part_when_the_batch_is_done() {
    let config = Config { lease_seconds: 60, member_seconds: 60, ..config().await };
    let watcher = Control::connect(&config).await.unwrap();
    let mut leases = watcher.leases().view().await.unwrap();
    let sources: BTreeSet<_> = (0..8).map(source).collect();
    let (work, _) = watch::channel(sources.clone());
    let (_line, _control, _membership, mut first) = joined(&config, "a", &work).await;
    let mut held = BTreeMap::new();
    while held.len() < sources.len() {
        match soon("all are taken", first.next()).await {
            Turn::Take(lease) => held.insert(lease.source().clone(), lease),
            Turn::GiveUp(source) => panic!("{source} belongs to nobody else"),
        };
    }
    settled(&mut leases, &sources, &["a".parse().unwrap()]).await;
    let second = scheduler(&config, "b", &work).await;
    let all = ["a".parse().unwrap(), second.id.clone()];
    let moving: BTreeSet<_> =
        sources.iter().filter(|source| assign(&all, source) == Some(&second.id)).cloned().collect();
    assert!(!moving.is_empty());
    for n in 0..moving.len() {
        let Turn::GiveUp(source) = soon("one is to be given up", first.next()).await else {
            panic!("nothing is free to be taken");
        };
        assert!(moving.contains(&source));
        // Its batch is not done: it still is the first one's, whatever the other would like.
        assert_eq!(leases.get(&source).unwrap().holder, all[0], "number {n}");
        assert!(held[&source].is_held());
        held.remove(&source).unwrap().release().await;
        first.let_go(&source);
    }
    settled(&mut leases, &sources, &all).await;
    // Work that is new goes to its owner alone, and what is done is not asked for again.
    let more: BTreeSet<_> = (0..12).map(source).collect();
    work.send_replace(more.clone());
    let mine: BTreeSet<_> =
        more.difference(&sources).filter(|source| assign(&all, source) == Some(&all[0])).cloned().collect();
    for _ in 0..mine.len() {
        match soon("new work", first.next()).await {
            Turn::Take(lease) => assert!(mine.contains(lease.source())),
            Turn::GiveUp(source) => panic!("{source} has not moved"),
        }
    }
    second.working.abort();
}
