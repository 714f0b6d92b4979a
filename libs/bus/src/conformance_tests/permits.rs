//! Permits: requests outside of jobs, within the limit of the jobs.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::time::{sleep, timeout};

use super::{Names, Pace, ack_all, all, none, one, publish, publish_each};
use crate::Bus;

/// The open requests at an origin, and their maximum so far.
#[derive(Debug, Default)]
struct Open {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Open {
    async fn one(&self, pace: &Pace) {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        sleep(pace.ack_wait / 40).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Jobs and permits together never exceed the limit, for any number of workers, and all of them end.
pub(crate) async fn permits_and_jobs_together_keep_to_the_limit(bus: &dyn Bus, pace: &Pace) {
    for limit in [1, 2, 4] {
        mixed(bus, pace, limit).await;
    }
}

async fn mixed(bus: &dyn Bus, pace: &Pace, limit: usize) {
    const JOBS: usize = 10;
    const READERS: usize = 3;
    const REQUESTS: usize = 3;
    let names = Names::opened("permits_and_jobs_together_keep_to_the_limit", limit, bus, pace).await;
    for n in 0..JOBS {
        publish(bus, &names.fetch, names.id(&format!("{limit}-{n}"))).await;
    }
    let open = Open::default();
    let done = AtomicUsize::new(0);
    let open = &open;
    let done = &done;
    let work = (0..limit + 1).map(|_| async {
        while done.load(Ordering::SeqCst) < JOBS {
            for delivery in bus.pull(&names.filter, 1, pace.quiet).await.unwrap() {
                open.one(pace).await;
                delivery.ack().await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let read = (0..READERS).map(|_| async {
        for _ in 0..REQUESTS {
            let _permit = bus.acquire_permit(&names.origin, limit).await.unwrap();
            open.one(pace).await;
        }
    });
    tokio::join!(join_all(work), join_all(read));
    let most = open.most.load(Ordering::SeqCst);
    assert!(most <= limit, "{most} open at once with a limit of {limit}");
    assert_eq!(done.load(Ordering::SeqCst), JOBS, "some were worked on twice");
    assert!(bus.close(&names.filter).await.unwrap());
}

/// With a limit of one, a permit waits for the job in flight, the next job waits for the permit, and both get their
/// turn.
pub(crate) async fn permit_and_job_take_turns_where_one_is_the_limit(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("permit_and_job_take_turns_where_one_is_the_limit", 1, bus, pace).await;
    publish_each(bus, &names, ["a", "b"]).await;
    let first = one(bus, &names.filter, pace).await;
    let permit = {
        let mut waiting = std::pin::pin!(bus.acquire_permit(&names.origin, 1));
        assert!(timeout(pace.quiet, &mut waiting).await.is_err(), "a place beside the only job");
        first.ack().await.unwrap();
        timeout(pace.soon, waiting).await.expect("the job is done").unwrap()
    };
    // While it is held, for longer than any silence that counts as death.
    for _ in 0..8 {
        none(bus, &names.filter, pace).await;
    }
    let give_back = async {
        sleep(pace.quiet / 2).await;
        drop(permit);
    };
    let (second, ()) = tokio::join!(bus.pull(&names.filter, 1, pace.quiet + pace.soon), give_back);
    let second = second.unwrap().pop().expect("the place is free");
    assert_eq!(second.id, names.id("b"));
    second.ack().await.unwrap();
}

/// A permit takes one slot from the jobs, and frees it when it is returned.
pub(crate) async fn permit_takes_one_slot_and_no_more(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("permit_takes_one_slot_and_no_more", 3, bus, pace).await;
    let permit = bus.acquire_permit(&names.origin, 3).await.unwrap();
    publish_each(bus, &names, 0..5).await;
    let mut out = all(bus, &names.filter, pace).await;
    assert_eq!(out.len(), 2);
    drop(permit);
    out.push(one(bus, &names.filter, pace).await);
    none(bus, &names.filter, pace).await;
    ack_all(out).await;
}

/// A permit of an origin queue that is not open counts as soon as the queue opens.
pub(crate) async fn permit_taken_before_the_origin_opens_counts(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("permit_taken_before_the_lane_opens_counts", pace);
    let permit = timeout(pace.soon, bus.acquire_permit(&names.origin, 2))
        .await
        .expect("no other one is waiting")
        .unwrap();
    let another = timeout(pace.quiet, bus.acquire_permit(&names.origin, 2)).await;
    assert!(another.is_err(), "of two slots one is for jobs");
    bus.open(names.spec(2, pace)).await.unwrap();
    publish_each(bus, &names, ["a", "b"]).await;
    let first = one(bus, &names.filter, pace).await;
    none(bus, &names.filter, pace).await;
    // Workers do not see the permit: the list shows the full limit.
    assert_eq!(bus.origins().borrow().get(&names.origin), Some(&names.spec(2, pace)));
    drop(permit);
    let second = one(bus, &names.filter, pace).await;
    ack_all([first, second]).await;
}

/// A caller that stops waiting for a permit leaves nothing behind.
pub(crate) async fn permit_without_a_waiting_caller_is_free(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("permit_without_a_waiting_caller_is_free", 1, bus, pace).await;
    publish_each(bus, &names, ["a", "b"]).await;
    let job = one(bus, &names.filter, pace).await;
    assert!(timeout(pace.quiet, bus.acquire_permit(&names.origin, 1)).await.is_err());
    job.ack().await.unwrap();
    one(bus, &names.filter, pace).await.ack().await.unwrap();
}

/// A limit that changes while a permit is held changes the slots of the jobs.
pub(crate) async fn limit_changed_beside_a_permit_is_the_limit_of_both(bus: &dyn Bus, pace: &Pace) {
    let names = Names::opened("limit_changed_beside_a_permit_is_the_limit_of_both", 2, bus, pace).await;
    let permit = bus.acquire_permit(&names.origin, 2).await.unwrap();
    bus.open(names.spec(4, pace)).await.unwrap();
    publish_each(bus, &names, 0..6).await;
    let mut out = all(bus, &names.filter, pace).await;
    assert_eq!(out.len(), 3);
    drop(permit);
    out.push(one(bus, &names.filter, pace).await);
    none(bus, &names.filter, pace).await;
    ack_all(out).await;
}

/// A spare permit is given at once or not at all. It is not given where the origin queue is closed or full, and it
/// leaves one permit and one slot free.
pub(crate) async fn spare_permit_is_given_only_where_no_other_waits(bus: &dyn Bus, pace: &Pace) {
    let names = Names::of("spare_permit_is_given_only_where_no_other_waits", pace);
    let spare = || async { bus.try_acquire_spare(&names.origin).await.unwrap() };
    assert!(spare().await.is_none(), "the queue is closed");
    bus.open(names.spec(2, pace)).await.unwrap();
    assert!(spare().await.is_none(), "of two slots one is for the job, the other for everybody else");
    bus.open(names.spec(4, pace)).await.unwrap();
    publish(bus, &names.fetch, names.id("a")).await;
    let job = one(bus, &names.filter, pace).await;
    let first = spare().await.expect("three are free");
    let second = spare().await.expect("two are free");
    assert!(spare().await.is_none(), "the last place is for who waits for it");
    // The next caller finds a slot, for a job or for a document.
    publish(bus, &names.fetch, names.id("b")).await;
    let other = one(bus, &names.filter, pace).await;
    other.ack().await.unwrap();
    let permit =
        timeout(pace.soon, bus.acquire_permit(&names.origin, 4)).await.expect("one is left").unwrap();
    drop(first);
    drop(permit);

    // Where jobs wait, there is no spare permit.
    publish_each(bus, &names, 0..3).await;
    assert!(spare().await.is_none());
    drop(second);
    let mut out = vec![job];
    while out.len() < 4 {
        out.push(one(bus, &names.filter, pace).await);
    }
    assert!(spare().await.is_none(), "all slots are taken");
    ack_all(out).await;
    assert!(bus.close(&names.filter).await.unwrap());
}

/// Workers with jobs and spare permits keep to the limit, and every job gets its turn.
pub(crate) async fn spare_permits_and_jobs_together_keep_to_the_limit(bus: &dyn Bus, pace: &Pace) {
    const JOBS: usize = 12;
    const LIMIT: usize = 4;
    let names = Names::opened("spare_permits_and_jobs_together_keep_to_the_limit", LIMIT, bus, pace).await;
    publish_each(bus, &names, 0..JOBS).await;
    let open = Open::default();
    let done = AtomicUsize::new(0);
    let spared = AtomicUsize::new(0);
    let open = &open;
    let done = &done;
    let spared = &spared;
    let names = &names;
    // Too few for all slots, so that some are free when no job waits any more.
    let work = (0..LIMIT / 2).map(|_| async move {
        while done.load(Ordering::SeqCst) < JOBS {
            for delivery in bus.pull(&names.filter, 1, pace.quiet).await.unwrap() {
                let beside = async {
                    let Some(_permit) = bus.try_acquire_spare(&names.origin).await.unwrap() else { return };
                    spared.fetch_add(1, Ordering::SeqCst);
                    open.one(pace).await;
                };
                tokio::join!(open.one(pace), beside);
                delivery.ack().await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    join_all(work).await;
    let most = open.most.load(Ordering::SeqCst);
    assert!(most <= LIMIT, "{most} open at once with a limit of {LIMIT}");
    assert!(spared.load(Ordering::SeqCst) > 0, "nothing was spared");
    assert_eq!(done.load(Ordering::SeqCst), JOBS, "some were worked on twice");
    assert!(bus.close(&names.filter).await.unwrap());
}
