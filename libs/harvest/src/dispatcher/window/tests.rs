use model::{FetchedResult, Seq};
use planning::READ_AHEAD;

use super::origin::{HEAVIEST_JOB, LARGEST_JOB};
use super::trouble::UNREACHABLE_IS_DOWN;
use super::*;
use crate::dispatcher::window::Window;

fn origin() -> Origin {
    "http://h".parse().unwrap()
}

fn item(uri: ResourceUri) -> FetchItem {
    FetchItem {
        uri,
        seq: Seq::new(1),
        declaration: Default::default(),
        listed_until: None,
        held: Default::default(),
        repair: false,
        held_type: None,
        from: None,
        patch: None,
    }
}

fn plan() -> Box<PendingRecord> {
    let listing = r#"{"document":"http://h/l.xml","set":"http://h/c.xml"}"#;
    let text = format!(r#"{{"seq":1,"action":"fetch","lane":"http://h:80","listing":{listing}}}"#);
    serde_json::from_str(&text).unwrap()
}

fn add(window: &mut Window, uri: ResourceUri) {
    window.add(origin(), item(uri), plan());
}

fn filled(jobs_per_origin: usize, planned: u64, resources: usize) -> Window {
    let mut window = Window::within(WindowLimits::default(), jobs_per_origin, planned);
    for n in 0..resources {
        let uri = format!("http://h/{n}").parse().unwrap();
        add(&mut window, uri);
    }
    window
}

#[test]
fn what_is_out_stays_a_small_share_of_the_run() {
    let mut window = filled(4, 20_000, 4_096);
    while window.next_job(false).is_some() {}
    assert!(window.in_flight() > 0);
    assert!(window.in_flight() <= 20_000 / 25, "{}", window.in_flight());
}

#[test]
fn the_plans_of_all_that_is_out_for_an_origin_are_kept() {
    for jobs_per_origin in [1, 4, 16, 64, 256] {
        let mut window = filled(jobs_per_origin, 100_000_000, 0);
        let mut numbers = 0..;
        loop {
            while window.has_room() {
                let uri = format!("http://h/{}", numbers.next().unwrap()).parse().unwrap();
                add(&mut window, uri);
            }
            if window.next_job(false).is_none() {
                break;
            }
        }
        assert_eq!(
            window.plans,
            window.taken.len(),
            "{jobs_per_origin} jobs at a time: {}",
            window.in_flight()
        );
    }
}

#[test]
fn a_large_run_gets_full_jobs_and_a_few_of_them() {
    let mut window = filled(4, 10_000_000, 6 * LARGEST_JOB);
    let (_, _, items) = window.next_job(false).unwrap();
    assert_eq!(items.len(), LARGEST_JOB);
    let more = std::iter::from_fn(|| window.next_job(false)).count();
    assert_eq!(more + 1, 5, "four are worked, one lies ready");
}

#[test]
fn a_short_run_gets_a_few_jobs() {
    let mut window = filled(4, 100, 100);
    let jobs: Vec<_> = std::iter::from_fn(|| window.next_job(true)).collect();
    assert_eq!(jobs.iter().map(|(_, _, items)| items.len()).collect::<Vec<_>>(), [16, 16, 16, 16, 16]);
}

#[test]
fn a_slow_origin_gets_small_jobs() {
    let mut window = filled(4, 10_000_000, 2_000);
    let (id, ..) = window.next_job(false).unwrap();
    window.job_done(id, 256 * 500, 256);
    let (_, _, items) = window.next_job(false).unwrap();
    assert_eq!(items.len(), 20, "ten seconds");
}

#[test]
fn the_first_jobs_of_a_distant_source_leave_no_slot_empty() {
    let mut window = filled(16, 8, 8);
    assert_eq!(window.next_job(true).unwrap().2.len(), 8, "nothing is known of it");
    for (millis, sizes) in [(240, vec![1; 8]), (30, vec![4, 4]), (1, vec![8])] {
        let limits = WindowLimits::default();
        let mut window = Window::within(limits, 16, 8).expecting(Some(Duration::from_millis(millis)));
        (0..8).for_each(|n| add(&mut window, format!("http://h/{n}").parse().unwrap()));
        let jobs: Vec<_> = std::iter::from_fn(|| window.next_job(true)).collect();
        assert_eq!(jobs.iter().map(|(_, _, items)| items.len()).collect::<Vec<_>>(), sizes, "{millis} ms");
        // What is measured counts more.
        window.job_done(jobs[0].0, 1, 1);
        (8..16).for_each(|n| add(&mut window, format!("http://h/{n}").parse().unwrap()));
        assert_eq!(window.next_job(true).unwrap().2.len(), 8);
    }
}

#[test]
fn no_slot_gets_two_jobs_of_a_short_run_of_a_distant_source_while_others_have_none() {
    for (millis, size) in [(240, 10), (1, 16)] {
        let limits = WindowLimits::default();
        let mut window = Window::within(limits, 64, 1_280).expecting(Some(Duration::from_millis(millis)));
        (0..1_280).for_each(|n| add(&mut window, format!("http://h/{n}").parse().unwrap()));
        let first = window.next_job(false).unwrap();
        assert_eq!(first.2.len(), size, "{millis} ms: half of what each slot gets");
    }
}

#[test]
fn long_uris_make_jobs_of_fewer_resources() {
    let mut window = Window::within(WindowLimits::default(), 4, 10_000_000);
    for n in 0..2_000 {
        let uri = format!("http://h/{n}/{}", "x".repeat(8_000)).parse().unwrap();
        add(&mut window, uri);
    }
    let (_, _, items) = window.next_job(false).unwrap();
    assert!((1..=HEAVIEST_JOB / 8_000).contains(&items.len()), "{}", items.len());
}

#[test]
fn the_rest_goes_out_only_when_nothing_more_comes() {
    let mut window = filled(4, 10_000_000, 3);
    assert!(window.next_job(false).is_none());
    assert_eq!(window.next_job(true).unwrap().2.len(), 3);
}

/// Sizes of the remaining jobs, each done before the next one goes out, if a resource takes `millis` milliseconds.
fn last_sizes(jobs_per_origin: usize, resources: usize, millis: u64) -> Vec<usize> {
    let mut window = filled(jobs_per_origin, 10_000_000, resources);
    let mut sizes = Vec::new();
    while let Some((id, _, items)) = window.next_job(!sizes.is_empty()) {
        sizes.push(items.len());
        window.job_done(id, millis * items.len() as u64, items.len());
    }
    sizes
}

#[test]
fn the_last_jobs_of_a_slow_origin_become_smaller_so_that_its_slots_end_together() {
    let sizes = last_sizes(4, 3 * LARGEST_JOB, 20);
    assert_eq!(sizes.iter().sum::<usize>(), 3 * LARGEST_JOB);
    assert_eq!(sizes[1], 256, "an eighth of what is left");
    assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
    assert_eq!(sizes[sizes.len() - 2], 5, "100 ms are worth a job, and less are not");
    assert!(sizes.len() < 40, "{}", sizes.len());
}

#[test]
fn the_last_jobs_of_a_fast_origin_and_those_of_one_slot_stay_large() {
    assert_eq!(last_sizes(4, 4 * LARGEST_JOB, 0), [LARGEST_JOB; 4]);
    assert_eq!(last_sizes(1, 1_168, 20), [1_024, 144]);
}

#[test]
fn a_resource_in_the_window_is_not_taken_twice_and_is_free_after_its_job() {
    let mut window = filled(4, 100, 1);
    let uri: ResourceUri = "http://h/0".parse().unwrap();
    assert!(window.holds(&uri));
    let (id, ..) = window.next_job(true).unwrap();
    assert!(window.holds(&uri));
    window.job_done(id, 10, 1);
    assert!(!window.holds(&uri));
    assert!(window.is_idle());
}

#[test]
fn a_plan_is_given_once_and_goes_with_its_job() {
    let mut window = filled(4, 100, 2);
    let [one, other]: [ResourceUri; 2] = ["http://h/0", "http://h/1"].map(|uri| uri.parse().unwrap());
    let (id, ..) = window.next_job(true).unwrap();
    assert_eq!(window.take_plan(&one), Some(plan()));
    assert_eq!(window.take_plan(&one), None, "what became of it is another record");
    assert!(window.holds(&one));
    window.job_done(id, 10, 2);
    assert_eq!(window.take_plan(&other), None);
    assert_eq!(window.plans, 0);
}

#[test]
fn only_so_many_plans_are_kept() {
    let window = filled(4, 10_000_000, MOST_PLANS + 10);
    assert_eq!(window.plans, MOST_PLANS);
    assert!(window.holds(&format!("http://h/{}", MOST_PLANS + 9).parse().unwrap()));
}

#[test]
fn an_origin_that_never_answers_is_down_and_an_answer_brings_it_back() {
    let mut window = filled(4, 100, 20);
    for _ in 0..UNREACHABLE_IS_DOWN {
        window.reached(&origin(), false);
    }
    assert!(window.is_down(&origin()));
    assert!(window.next_job(true).is_none());
    window.reached(&origin(), true);
    assert!(window.next_job(true).is_some());
}

#[test]
fn what_is_ready_for_an_origin_that_is_left_alone_takes_no_room() {
    let mut window = filled(4, 1_000_000, READ_AHEAD);
    assert!(!window.has_room());
    assert!(!window.shed_down());
    window.rest(&origin(), Timestamp::from_second(1_800_000_000).unwrap());
    assert!(window.shed_down());
    assert!(window.has_room() && window.is_idle());
    assert!(!window.holds(&"http://h/0".parse().unwrap()));
}

#[test]
fn an_origin_that_asks_for_patience_is_left_alone_until_it_is_taken_up_anew() {
    let mut window = filled(4, 100, 20);
    let until = Timestamp::from_second(1_800_000_000).unwrap();
    window.rest(&origin(), until);
    assert!(window.next_job(true).is_none());
    assert_eq!(window.take_down(), HashMap::from([(origin(), Down::Resting { until })]));
    assert!(!window.is_down(&origin()));
}

#[test]
fn candidates_go_out_together_and_tell_nothing_of_their_origin() {
    let mut window = filled(4, 100, 1);
    let candidate = |n: usize| Fetched {
        uri: format!("http://h/candidate/{n}").parse().unwrap(),
        seq: Seq::new(1),
        declaration: Default::default(),
        listed_until: None,
        result: FetchedResult::Deferred,
        patch: None,
    };
    for n in 0..=LARGEST_JOB {
        window.add_candidate(origin(), candidate(n), plan());
    }
    let (first, _, items) = window.next_candidates(false).unwrap();
    assert_eq!(items.len(), LARGEST_JOB);
    assert!(window.next_candidates(false).is_none(), "the rest waits for more");
    for _ in 0..UNREACHABLE_IS_DOWN {
        window.reached(&origin(), false);
    }
    let (rest, _, items) = window.next_candidates(true).unwrap();
    assert_eq!(items.len(), 1, "an origin that is left alone is no reason to wait");
    assert!(!window.asks(first) && window.holds(&candidate(0).uri) && !window.is_idle());
    window.job_done(first, 0, 1);
    window.job_done(rest, 0, 1);
    assert!(window.is_idle() && window.in_flight() == 0);
    assert!(!window.holds(&candidate(0).uri));
}

#[test]
fn forgotten_jobs_free_their_resources_and_the_places_of_their_origin() {
    let mut window = filled(1, 10_000_000, 3 * LARGEST_JOB);
    while window.next_job(false).is_some() {}
    assert_eq!(window.in_flight(), 2 * LARGEST_JOB);
    assert_eq!(window.origins_out(), HashSet::from([origin()]));
    assert_eq!(window.forget_jobs(), 2);
    assert_eq!((window.in_flight(), window.origins_out()), (0, HashSet::new()));
    assert!(!window.holds(&"http://h/0".parse().unwrap()));
    assert!(window.next_job(false).is_some(), "its places are free again");
}
