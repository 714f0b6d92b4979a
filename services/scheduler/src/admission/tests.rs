//! Who gets a place, and who leaves one.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

fn candidate(name: &str, priority: Priority, host: &str, bytes: u64) -> Candidate {
    Candidate { source: name.parse().unwrap(), priority, host: host.to_owned(), owner: None, bytes }
}

/// A run of an owner, at a host of its own.
fn owned(name: &str, owner: &str) -> Candidate {
    Candidate { owner: Some(owner.into()), ..candidate(name, Priority::Scheduled, name, 1) }
}

fn granted(admission: &mut Admission) -> Vec<String> {
    std::iter::from_fn(|| admission.grant()).map(|given| given.source.to_string()).collect()
}

#[test]
fn operators_come_first_and_scheduled_runs_have_every_eighth_place() {
    let mut admission = Admission::new(1_000, 100);
    for n in 0..10 {
        admission.wait(candidate(&format!("s{n}"), Priority::Scheduled, &format!("a{n}"), 1));
        admission.wait(candidate(&format!("u{n}"), Priority::Urgent, &format!("b{n}"), 1));
    }
    let order = granted(&mut admission);
    assert_eq!(order[..8].join(" "), "u0 u1 u2 u3 u4 u5 u6 s0");
    assert_eq!(order[8..11].join(" "), "u7 u8 u9");
    assert_eq!((order.len(), admission.waiting(), admission.used()), (20, 0, 20));
}

#[test]
fn hosts_take_turns_and_none_has_more_than_half_while_others_wait() {
    let mut admission = Admission::new(8, 100);
    for n in 0..10 {
        admission.wait(candidate(&format!("big-{n}"), Priority::Scheduled, "big", 1));
    }
    admission.wait(candidate("small-1", Priority::Scheduled, "small", 1));
    admission.wait(candidate("small-2", Priority::Scheduled, "small", 1));
    let order = granted(&mut admission);
    assert_eq!(order.join(" "), "big-0 small-1 big-1 small-2 big-2 big-3");
    assert_eq!(admission.waiting(), 6, "the rest of a host waits although there is memory");
}

#[test]
fn long_runs_are_sure_of_a_quarter_and_take_half_at_most() {
    let mut admission = Admission::new(8, 100);
    for n in 0..8 {
        admission.wait(candidate(&format!("long-{n}"), Priority::Long, &format!("a{n}"), 1));
        admission.wait(candidate(&format!("short-{n}"), Priority::Scheduled, &format!("b{n}"), 1));
    }
    let order = granted(&mut admission);
    let long = order.iter().filter(|name| name.starts_with("long")).count();
    assert_eq!((order.len(), long), (8, 2), "{order:?}");
    let mut alone = Admission::new(8, 100);
    (0..9).for_each(|n| alone.wait(candidate(&format!("l{n}"), Priority::Long, &format!("a{n}"), 1)));
    assert_eq!(granted(&mut alone).len(), 8, "nobody else waits");
}

#[test]
fn a_large_run_gets_its_place_before_smaller_ones_that_came_later() {
    let mut admission = Admission::new(10, 100);
    let first = candidate("a", Priority::Scheduled, "a", 8);
    admission.wait(first.clone());
    admission.wait(candidate("large", Priority::Scheduled, "b", 9));
    admission.wait(candidate("small", Priority::Scheduled, "c", 1));
    assert_eq!(granted(&mut admission), ["a"]);
    assert!(admission.should_yield(&first), "others wait for its memory");
    admission.release(&first);
    assert_eq!(granted(&mut admission), ["large", "small"]);
}

#[test]
fn a_run_that_needs_more_than_there_is_runs_alone() {
    let mut admission = Admission::new(10, 100);
    admission.wait(candidate("a", Priority::Urgent, "a", 50));
    admission.wait(candidate("b", Priority::Urgent, "b", 1));
    assert_eq!(granted(&mut admission), ["a"]);
}

#[test]
fn who_keeps_nobody_waiting_stays() {
    let mut admission = Admission::new(4, 100);
    let place = candidate("a", Priority::Long, "a", 1);
    admission.wait(place.clone());
    assert_eq!(granted(&mut admission), ["a"]);
    assert!(!admission.should_yield(&place));
    for n in 0..9 {
        admission.wait(candidate(&format!("s{n}"), Priority::Scheduled, &format!("h{n}"), 1));
    }
    granted(&mut admission);
    assert!(!admission.should_yield(&place), "long runs are sure of a quarter");
    admission.wait(candidate("b", Priority::Long, "b", 1));
    assert!(admission.should_yield(&place), "another long run waits");
}

#[test]
fn no_more_runs_have_places_than_the_processors_can_serve() {
    let mut admission = Admission::new(1_000, 2);
    ["a", "b", "c"].iter().for_each(|name| admission.wait(candidate(name, Priority::Urgent, name, 1)));
    let first = admission.grant().unwrap();
    assert_eq!(granted(&mut admission), ["b"]);
    assert!(admission.should_yield(&first));
    admission.release(&first);
    assert_eq!(granted(&mut admission), ["c"]);
}

#[test]
fn slow_sources_of_little_memory_leave_half_of_the_places_to_others() {
    let mut admission = Admission::new(1_000, 8);
    for n in 0..20 {
        admission.wait(candidate(&format!("long-{n}"), Priority::Long, &format!("a{n}"), 1));
        admission.wait(candidate(&format!("short-{n}"), Priority::Scheduled, &format!("b{n}"), 1));
    }
    let mut placed: Vec<_> = std::iter::from_fn(|| admission.grant()).collect();
    let long = |placed: &[Candidate]| placed.iter().filter(|run| run.priority == Priority::Long).count();
    assert_eq!((placed.len(), long(&placed)), (8, 2));
    // Short runs come to their end, and long ones stay.
    while admission.waiting() > 18 {
        let at = placed.iter().position(|run| run.priority != Priority::Long).expect("a short run");
        admission.release(&placed.remove(at));
        placed.extend(std::iter::from_fn(|| admission.grant()));
        assert!(long(&placed) <= 4, "{placed:?}");
    }
}

#[test]
fn a_run_grows_in_its_place_while_memory_is_free() {
    let mut admission = Admission::new(10, 100);
    admission.wait(candidate("a", Priority::Urgent, "a", 2));
    let mut place = admission.grant().unwrap();
    assert!(!admission.grow(&mut place, 9));
    assert!(admission.grow(&mut place, 8));
    assert_eq!((place.bytes, admission.used()), (10, 10));
    admission.release(&place);
    assert_eq!(admission.used(), 0);
}

#[test]
fn no_owner_has_more_than_half_of_the_places_while_others_wait() {
    let mut admission = Admission::new(1_000, 8);
    (0..20).for_each(|n| admission.wait(owned(&format!("ada-{n}"), "ada")));
    let mut placed: Vec<_> = std::iter::from_fn(|| admission.grant()).collect();
    assert_eq!(placed.len(), 8, "nobody else waits");
    (0..20).for_each(|n| admission.wait(owned(&format!("bob-{n}"), "bob")));
    admission.wait(candidate("unlabelled", Priority::Scheduled, "unlabelled", 1));
    assert!(admission.should_yield(&placed[0]));
    let of = |placed: &[Candidate], owner: &str| {
        placed.iter().filter(|place| place.owner.as_deref() == Some(owner)).count()
    };
    // Each place that is given back goes to others, until both have their shares.
    for gone in 1..=8 {
        admission.release(&placed.remove(0));
        placed.extend(admission.grant());
        assert_eq!(placed.len(), 8);
        assert!(of(&placed, "ada") <= 8 - gone.min(4) && of(&placed, "bob") <= 4, "{placed:?}");
    }
    // What waits of one owner alone may have all again.
    while admission.waiting() > 0 {
        admission.release(&placed.remove(0));
        placed.extend(std::iter::from_fn(|| admission.grant()));
    }
    assert_eq!(placed.len(), 8);
}

#[test]
fn an_owner_whose_runs_end_or_are_withdrawn_keeps_nobody_waiting() {
    let mut admission = Admission::new(1_000, 4);
    admission.wait(owned("bob", "bob"));
    admission.withdraw(&"bob".parse().unwrap());
    (0..4).for_each(|n| admission.wait(owned(&format!("ada-{n}"), "ada")));
    let placed: Vec<_> = std::iter::from_fn(|| admission.grant()).collect();
    assert_eq!(placed.len(), 4);
    placed.iter().for_each(|place| admission.release(place));
    assert_eq!((admission.used_by_owner.len(), admission.waiting_of.len(), admission.used()), (0, 0, 0));
}

#[test]
fn a_run_that_is_withdrawn_gets_no_place() {
    let mut admission = Admission::new(4, 100);
    admission.wait(candidate("a", Priority::Urgent, "h", 1));
    admission.wait(candidate("b", Priority::Urgent, "h", 1));
    admission.withdraw(&"a".parse().unwrap());
    assert_eq!(granted(&mut admission), ["b"]);
}

proptest! {
    /// Whatever comes: the memory is never exceeded but by a run alone, and every run gets its place in the end.
    #[test]
    fn all_get_a_place_within_the_memory(
        runs in prop::collection::vec((0..3u8, 0..4u8, 1..6u64, 0..3u8), 1..60)
    ) {
        let mut admission = Admission::new(10, 100);
        for (n, (priority, host, bytes, owner)) in runs.iter().enumerate() {
            let priority = [Priority::Urgent, Priority::Scheduled, Priority::Long][usize::from(*priority)];
            let owner = (*owner > 0).then(|| format!("o{owner}").into());
            let waits = candidate(&format!("s{n}"), priority, &format!("h{host}"), *bytes);
            admission.wait(Candidate { owner, ..waits });
        }
        let mut placed = VecDeque::new();
        let mut done = 0;
        while done < runs.len() {
            while let Some(given) = admission.grant() {
                placed.push_back(given);
            }
            prop_assert!(admission.used() <= 10, "{}", admission.used());
            let ended = placed.pop_front().expect("a run has a place while some wait");
            admission.release(&ended);
            done += 1;
        }
        prop_assert_eq!((admission.used(), admission.waiting()), (0, 0));
    }
}
