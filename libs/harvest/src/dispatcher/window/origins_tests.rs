//! Many origins: each has its turn, and few have a queue at a time.

use std::num::NonZeroUsize;

use model::{FetchedResult, Seq};
use planning::WindowLimits;

use super::trouble::UNREACHABLE_IS_DOWN;
use super::*;
use crate::dispatcher::window::Window;

fn origin_at(number: usize) -> Origin {
    format!("http://h{number}").parse().unwrap()
}

fn uri(origin: usize, n: usize) -> ResourceUri {
    format!("http://h{origin}/{n}").parse().unwrap()
}

fn plan() -> Box<PendingRecord> {
    let listing = r#"{"document":"http://h/l.xml","set":"http://h/c.xml"}"#;
    let text = format!(r#"{{"seq":1,"action":"fetch","lane":"http://h:80","listing":{listing}}}"#);
    serde_json::from_str(&text).unwrap()
}

fn add(window: &mut Window, origin: usize, n: usize) {
    let item = FetchItem {
        uri: uri(origin, n),
        seq: Seq::new(1),
        declaration: Default::default(),
        listed_until: None,
        held: Default::default(),
        repair: false,
        held_type: None,
        from: None,
        patch: None,
    };
    window.add(origin_at(origin), item, plan());
}

fn limits(resources: usize, origins: usize) -> WindowLimits {
    let positive = |number| NonZeroUsize::new(number).unwrap();
    WindowLimits { resources: positive(resources), origins: positive(origins) }
}

/// Works off `each` resources of each of `origins` origins, in the order of their URIs, as a pass does: outcomes are
/// taken only when no other step is possible. Returns the sizes of the jobs, and the maximum number of origins that
/// had a queue at a time.
fn worked_off(limits: WindowLimits, origins: usize, each: usize) -> (Vec<usize>, usize) {
    let mut window = Window::within(limits, 4, (origins * each) as u64);
    let mut listed = (0..origins).flat_map(|origin| (0..each).map(move |n| (origin, n))).peekable();
    let mut sizes = Vec::new();
    let mut most = 0;
    let mut out = std::collections::VecDeque::new();
    let mut open = HashSet::new();
    loop {
        while window.has_room()
            && let Some((origin, n)) = listed.next()
        {
            add(&mut window, origin, n);
        }
        let last = listed.peek().is_none();
        loop {
            while let Some((id, origin, items)) = window.next_job(last) {
                sizes.push(items.len());
                open.insert(origin);
                out.push_back((id, items.len()));
            }
            most = most.max(open.len());
            let idle = window.take_idle_origins();
            if idle.is_empty() {
                break;
            }
            open.retain(|origin| !idle.contains(origin));
        }
        if !last && window.has_room() {
            continue;
        }
        match out.pop_front() {
            Some((id, size)) => window.job_done(id, 10, size),
            None => break,
        }
    }
    assert!(window.is_idle() && window.origins.len() <= open.len(), "{} are kept", window.origins.len());
    (sizes, most)
}

#[test]
fn resources_of_many_origins_go_out_although_none_has_enough_for_a_job() {
    let (sizes, most) = worked_off(WindowLimits::default(), 5_000, 1);
    assert_eq!(sizes.iter().sum::<usize>(), 5_000);
    assert_eq!(most, 1_000, "no more have a queue at a time");
}

#[test]
fn an_origin_with_fewer_resources_than_a_job_holds_gets_them_all_at_once() {
    let (sizes, most) = worked_off(WindowLimits::default(), 200, 100);
    assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (200, 20_000));
    assert_eq!(most, 200, "side by side");
}

#[test]
fn a_small_window_and_one_queue_do_for_any_number_of_origins() {
    for (resources, origins) in [(1, 1), (8, 1), (8, 3), (64, 50)] {
        let (sizes, most) = worked_off(limits(resources, origins), 120, 7);
        assert_eq!(sizes.iter().sum::<usize>(), 840, "{resources} resources, {origins} origins");
        assert!(most <= origins, "{most} of {origins}");
    }
}

#[test]
fn the_fullest_origin_is_next_when_the_window_is_full() {
    let mut window = Window::within(limits(6, 100), 4, 10_000_000);
    for (origin, n) in [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)] {
        add(&mut window, origin, n);
    }
    assert!(window.next_job(false).is_none(), "there is room: more may come for any of them");
    add(&mut window, 2, 1);
    let (_, first, items) = window.next_job(false).unwrap();
    assert_eq!((first, items.len()), (origin_at(1), 3));
    assert!(window.next_job(false).is_none(), "there is room again");
}

#[test]
fn an_origin_waits_until_a_queue_is_closed_that_is_needed_no_more() {
    let mut window = Window::within(limits(100, 2), 1, 10);
    for origin in 0..4 {
        add(&mut window, origin, 0);
    }
    let (id, one, _) = window.next_job(true).unwrap();
    let (_, other, _) = window.next_job(true).unwrap();
    assert!(window.next_job(true).is_none() && window.take_idle_origins().is_empty(), "both are at work");
    window.job_done(id, 10, 1);
    assert!(window.next_job(true).is_none());
    assert_eq!(window.take_idle_origins(), std::slice::from_ref(&one));
    // It could not be closed: its last job was not acknowledged yet.
    window.keep_open(vec![one.clone()]);
    let (id, third, _) = window.next_job(true).unwrap();
    assert!(window.next_job(true).is_none());
    window.job_done(id, 10, 1);
    assert_eq!(window.take_idle_origins(), [third, one], "it is tried again");
    assert!(window.next_job(true).is_some() && window.into_origins().contains(&other));
}

#[test]
fn queues_stay_open_while_no_origin_waits_for_one() {
    let mut window = Window::within(limits(100, 2), 1, 10);
    for origin in 0..2 {
        add(&mut window, origin, 0);
        let (id, ..) = window.next_job(true).unwrap();
        window.job_done(id, 10, 1);
    }
    assert!(window.take_idle_origins().is_empty());
    assert_eq!(window.into_origins(), HashSet::from([origin_at(0), origin_at(1)]));
}

#[test]
fn an_origin_that_does_not_answer_is_known_after_its_queue_was_closed() {
    let mut window = Window::within(limits(100, 1), 1, 100);
    for n in 0..UNREACHABLE_IS_DOWN as usize {
        for origin in 0..2 {
            add(&mut window, origin, n);
            window.take_idle_origins();
            let (id, at, _) = window.next_job(true).unwrap();
            assert!(origin == 1 || !window.is_down(&origin_at(0)));
            window.reached(&at, origin == 1);
            window.job_done(id, 10, 1);
        }
    }
    assert!(window.is_down(&origin_at(0)) && !window.is_down(&origin_at(1)));
    assert_eq!(window.take_down(), HashMap::from([(origin_at(0), Down::Silent)]));
}

#[test]
fn candidates_of_many_origins_go_out_a_bounded_number_of_jobs_at_a_time() {
    let mut window = Window::within(limits(200, 10), 1, 100);
    for origin in 0..200 {
        let candidate = Fetched {
            uri: uri(origin, 0),
            seq: Seq::new(1),
            declaration: Default::default(),
            listed_until: None,
            result: FetchedResult::Deferred,
            patch: None,
        };
        window.add_candidate(origin_at(origin), candidate, plan());
    }
    let (id, ..) = window.next_candidates(false).expect("the window is full");
    let mut out = vec![id];
    out.extend(std::iter::from_fn(|| window.next_candidates(true)).map(|(id, ..)| id));
    assert_eq!(out.len(), 64);
    let mut sent = 0;
    while let Some(id) = out.pop() {
        sent += 1;
        window.job_done(id, 0, 1);
        out.extend(window.next_candidates(true).map(|(id, ..)| id));
    }
    assert_eq!((sent, window.origins.len(), window.in_flight()), (200, 0, 0));
}
