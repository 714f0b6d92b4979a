//! Findings of the simulation, each as the shortest plan that shows it.

use model::Prefer;
use std::num::NonZeroUsize;

use planning::WindowLimits;
use simulation::plan::{Only, Plan, Step, Sync};
use simulation::site::{Fixity, HttpFault, On, Repository, SiteSpec, What};
use simulation::world::World;
use simulation::{Halt, Summary, simulate, simulate_plan};

/// Requests of a first run before the second part of a Resource List Index: robots.txt, the Source
/// Description, the Capability List, the index and its first part.
const BEFORE_SECOND_PART: u32 = 5;

/// A repository that has a page for each of its records.
fn repository(resources: u32) -> SiteSpec {
    let repository = Repository {
        page: 1,
        by_seconds: true,
        shows_deleted: true,
        sizes: true,
        token_life: 60,
        leaves_out_from: false,
        leaves_out_until: false,
    };
    SiteSpec { repository: Some(repository), ..SiteSpec::listed(resources) }
}

fn plan(site: SiteSpec, steps: Vec<Step>) -> Plan {
    Plan { seed: 1, site, per_origin: 2, window: WindowLimits::default(), by_wire: true, steps }
}

#[track_caller]
fn holds(plan: Plan) -> Summary {
    simulate_plan(plan).unwrap_or_else(|why| panic!("{why}"))
}

fn sync_with(http: Vec<HttpFault>) -> Step {
    Step::Sync(Sync { http, ..Sync::clean() })
}

#[test]
fn a_quiet_source_is_in_step_after_one_run() {
    let summary = holds(plan(SiteSpec::listed(5), vec![]));
    // robots.txt, Source Description, Capability List, Resource List, and the resources.
    assert_eq!((summary.resources, summary.requests), (5, 4 + 5));
}

/// Dead letters are taken in batches of eight. A run that settled only the first batch left the rest to a later run.
#[test]
fn all_dead_letters_that_wait_at_the_start_of_a_run_are_settled_by_it() {
    let mut world = World::new(plan(SiteSpec::listed(1), vec![]));
    world.dead_letters = 9;
    world.sync(&Sync::clean());
    assert_eq!(world.dead_letters_left, 0);
}

/// Seeds 12 and 71: the list had a resource that was gone. Later lists omitted it, and its problem stayed for
/// ever.
#[test]
fn a_resource_that_was_gone_before_it_was_fetched_is_no_problem_for_ever() {
    let gone = Step::Change { created: 0, updated: 0, deleted: 1 };
    holds(plan(SiteSpec::listed(5), vec![gone, Step::Sync(Sync::clean())]));
}

/// Seed 16: a process whose clock ran ahead, as through a long wait here, left a catalog that the next one
/// could not write to for as long.
#[test]
fn a_process_whose_clock_is_behind_that_of_the_one_before_can_write_the_catalog() {
    let slow = HttpFault { on: On::Resources, skip: 0, times: 2, what: What::Slow(70) };
    holds(plan(SiteSpec::listed(5), vec![sync_with(vec![slow])]));
}

/// Seed 1254: an incremental run read the deletion of a resource that was never stored, and did not record
/// it. A baseline of an older list brought it back.
#[test]
fn a_deletion_of_what_was_never_held_outlasts_an_older_list() {
    simulate(1254).unwrap();
}

/// Seeds 1658 and 1887: a newer list omitted a stored resource, but was not allowed to delete it. The
/// deletion in the Change List was older than that list, so it was skipped too, and the deleted resource
/// stayed stored for ever.
#[test]
fn a_deletion_before_a_baseline_that_deleted_nothing_is_heard() {
    simulate(1658).unwrap();
    simulate(1887).unwrap();
}

/// Seeds 125, 597 and 635: a resource was gone when a gap was closed with the list. Its absence waited for a
/// second list, and no run read one without being told to.
#[test]
fn an_absence_that_was_seen_while_a_gap_was_closed_is_confirmed_by_a_run_that_nobody_tells_to_look() {
    for seed in [125, 597, 635] {
        simulate(seed).unwrap();
    }
}

/// The same as a short plan: the Source drops the deletion from its list before a run has read it.
#[test]
fn what_a_change_list_has_forgotten_is_deleted_by_runs_that_follow_it() {
    let site = SiteSpec { change_list: true, ..SiteSpec::listed(5) };
    let steps = vec![
        Step::Sync(Sync::clean()),
        Step::Change { created: 0, updated: 0, deleted: 1 },
        Step::Forget,
        Step::Publish { snapshots: true, changes: true },
        Step::Sync(Sync::clean()),
    ];
    assert_eq!(holds(plan(site, steps)).resources, 4);
}

/// Seeds 352, 381 and 613: a run that was told to read a dump could not read one of its packages, and no
/// later run read the dump again.
#[test]
fn a_package_that_could_not_be_read_is_tried_again_by_a_run_that_follows_changes() {
    for seed in [352, 381, 613] {
        simulate(seed).unwrap();
    }
}

/// The same as a short plan, of a Source with a dump only.
#[test]
fn a_package_of_a_dump_without_a_list_is_tried_again_by_runs_that_follow_changes() {
    let site = SiteSpec { list_parts: 0, packages: 1, change_list: true, ..SiteSpec::listed(5) };
    let gone = HttpFault { on: On::Packages, skip: 0, times: 1_000, what: What::Status(404, None) };
    let steps = vec![
        Step::Sync(Sync::clean()),
        Step::Change { created: 1, updated: 1, deleted: 0 },
        Step::Publish { snapshots: true, changes: true },
        Step::Sync(Sync { mode: Some(model::Mode::Baseline), http: vec![gone], ..Sync::clean() }),
    ];
    holds(plan(site, steps));
}

/// Seed 448: a dump without a list was read while absences were left alone. The same edition reports them no
/// more; the next one does.
#[test]
fn what_a_dump_told_while_absences_were_left_alone_its_next_edition_tells() {
    simulate(448).unwrap();
}

/// A window that was full of resources of many origins sent none of them, and no outcome came to make room.
#[test]
fn resources_of_more_origins_than_the_window_holds_are_fetched() {
    let site = SiteSpec { hosts: 5_000, ..SiteSpec::listed(120) };
    let limit = |number| NonZeroUsize::new(number).unwrap();
    for (resources, origins) in [(64, 1_000), (64, 3), (1, 1)] {
        let window = WindowLimits { resources: limit(resources), origins: limit(origins) };
        let steps = vec![Step::Sync(Sync::clean())];
        assert_eq!(holds(Plan { window, ..plan(site.clone(), steps) }).resources, 120);
    }
}

/// The same with resources that are slow, are refused or request a pause: they are retried, or become
/// problems.
#[test]
fn many_origins_that_fail_do_not_keep_a_run_from_ending() {
    let site = SiteSpec { hosts: 5_000, ..SiteSpec::listed(100) };
    let limit = |number| NonZeroUsize::new(number).unwrap();
    for what in [What::Refused, What::Status(429, Some(3_600)), What::Slow(20)] {
        let fault = HttpFault { on: On::Resources, skip: 3, times: 150, what };
        let window = WindowLimits { resources: limit(8), origins: limit(5) };
        holds(Plan { window, ..plan(site.clone(), vec![sync_with(vec![fault])]) });
    }
}

#[test]
fn a_run_ends_at_indexes_without_end_and_loses_nothing() {
    let fault = HttpFault { on: On::Documents, skip: 0, times: 1_000, what: What::Nested };
    holds(plan(
        SiteSpec::listed(5),
        vec![Step::Sync(Sync::clean()), sync_with(vec![fault.clone()]), sync_with(vec![fault])],
    ));
}

#[test]
fn a_run_ends_at_bodies_without_end_and_loses_nothing() {
    for on in [On::Documents, On::Resources] {
        let fault = HttpFault { on, skip: 0, times: 1_000, what: What::Endless };
        let change = Step::Change { created: 1, updated: 2, deleted: 0 };
        let publish = Step::Publish { snapshots: true, changes: true };
        holds(plan(
            SiteSpec::listed(5),
            vec![Step::Sync(Sync::clean()), change, publish, sync_with(vec![fault])],
        ));
    }
}

/// Seeds 428, 1019, 1065 and 1121: while a set had no baseline yet, an index that was read again mistook the
/// parts it had just queued for parts that it no longer lists. None of them was read, and the run was in
/// sync.
#[test]
fn the_parts_of_an_index_are_read_again_after_a_first_run_that_could_not_read_one() {
    let site = SiteSpec { list_parts: 2, etag: false, last_modified: false, ..SiteSpec::listed(6) };
    let gone =
        HttpFault { on: On::Documents, skip: BEFORE_SECOND_PART, times: 1, what: What::Status(404, None) };
    assert_eq!(holds(plan(site, vec![sync_with(vec![gone])])).resources, 6);
    for seed in [428, 1019, 1065, 1121] {
        simulate(seed).unwrap();
    }
}

/// Seed 2294: changes were followed before there was a baseline. The first one was older, and the changes
/// between the two were never seen.
#[test]
fn a_gap_between_the_first_baseline_and_changes_that_were_followed_before_is_seen() {
    let site = SiteSpec { change_list: true, ..SiteSpec::listed(5) };
    let steps = vec![
        Step::Change { created: 0, updated: 2, deleted: 1 },
        Step::Forget,
        Step::Sync(Sync { mode: Some(model::Mode::Incremental), ..Sync::clean() }),
        Step::Sync(Sync::clean()),
    ];
    assert_eq!(holds(plan(site, steps)).resources, 4);
    simulate(2294).unwrap();
}

/// Seed 3161: a first run stored some resources and could not read the rest. Resources that were gone when
/// the next one read all of it stayed stored for ever: a set without a baseline was not compared with the
/// catalog.
#[test]
fn what_a_first_run_that_read_a_part_has_stored_is_compared_with_the_next_list() {
    for list_parts in [0, 2] {
        let site = SiteSpec { list_parts, packages: 2, change_list: true, ..SiteSpec::listed(6) };
        // The second package, or the second part of the index.
        let (on, skip) =
            if list_parts == 0 { (On::Packages, 1) } else { (On::Documents, BEFORE_SECOND_PART) };
        let gone = HttpFault { on, skip, times: 1, what: What::Status(404, None) };
        let steps =
            vec![sync_with(vec![gone]), Step::Change { created: 0, updated: 0, deleted: 5 }, Step::Forget];
        assert_eq!(holds(plan(site, steps)).resources, 1);
    }
    simulate(3161).unwrap();
}

/// Seed 4475: lists were published anew between the first part of an index and the second, under the same
/// names. A resource that had moved from the second to the first was never fetched.
#[test]
fn parts_of_two_editions_of_an_index_are_not_taken_for_the_whole_list() {
    let site = SiteSpec { list_parts: 2, change_list: true, ..SiteSpec::listed(6) };
    let anew = HttpFault { on: On::Documents, skip: BEFORE_SECOND_PART, times: 1, what: What::Publishes };
    let steps = vec![Step::Change { created: 2, updated: 0, deleted: 0 }, sync_with(vec![anew])];
    assert_eq!(holds(plan(site, steps)).resources, 8);
    simulate(4475).unwrap();
}

/// Seed 860: a dump was published anew between its first package and its second, under the same names. A
/// resource that had moved from the second to the first was never fetched, and had no problem.
#[test]
fn packages_of_two_editions_of_a_dump_are_not_taken_for_the_whole_dump() {
    simulate(860).unwrap();
}

/// The same as a short plan: once with a list that equals the dump, once with only the next run's dump.
#[test]
fn a_dump_that_is_published_anew_under_the_same_names_while_it_is_received_loses_nothing() {
    for list_parts in [0, 1] {
        let site = SiteSpec {
            list_parts,
            packages: 2,
            package_names_stay: true,
            change_list: true,
            fixity: Fixity::Nothing,
            ..SiteSpec::listed(2)
        };
        let anew = HttpFault { on: On::Packages, skip: 1, times: 1, what: What::Publishes };
        let steps = vec![
            Step::Change { created: 2, updated: 0, deleted: 0 },
            Step::Sync(Sync { prefer: Some(Prefer::Dump), http: vec![anew], ..Sync::clean() }),
        ];
        assert_eq!(holds(Plan { per_origin: 1, ..plan(site, steps) }).resources, 4);
    }
}

/// A run with a wider filter was killed before it read the list. The run that resumed it took "not modified" for an
/// answer, though that list had been read for fewer resources.
#[test]
fn a_killed_run_with_a_wider_filter_still_reads_what_it_was_begun_for() {
    let narrow = Sync { only: Some(Only::Even), ..Sync::clean() };
    for effect in 1..=40 {
        let halt = Some(Halt { effect, done: true });
        let steps = vec![
            Step::Sync(narrow.clone()),
            Step::Sync(Sync { halt, ..Sync::clean() }),
            Step::Sync(Sync::clean()),
            Step::Sync(Sync::clean()),
        ];
        holds(plan(SiteSpec::listed(5), steps));
    }
}

/// A run with one filter is killed while it reads, and resumed with another one: what was read with the first says
/// nothing about the second, and the other way round.
#[test]
fn a_run_that_is_resumed_with_another_filter_leaves_nothing_out_for_either() {
    let only = |only| Sync { only: Some(only), ..Sync::clean() };
    let sites = [
        SiteSpec::listed(6),
        SiteSpec { list_parts: 2, change_list: true, ..SiteSpec::listed(6) },
        SiteSpec { list_parts: 0, packages: 2, change_list: true, ..SiteSpec::listed(6) },
    ];
    for site in sites {
        for effect in (1..=60).step_by(3) {
            let halt = Some(Halt { effect, done: true });
            let steps = vec![
                Step::Sync(Sync { halt, ..only(Only::Even) }),
                Step::Sync(only(Only::Odd)),
                Step::Sync(only(Only::Even)),
                Step::Sync(only(Only::Even)),
            ];
            holds(plan(site.clone(), steps));
        }
    }
}

/// A closed Change List was read for fewer resources, and the baseline before it was wider only later.
#[test]
fn a_wider_filter_reads_closed_change_lists_once_more() {
    let site = SiteSpec { change_list: true, ..SiteSpec::listed(4) };
    let narrow = Sync { only: Some(Only::Even), ..Sync::clean() };
    let steps = vec![
        Step::Sync(narrow.clone()),
        Step::Change { created: 4, updated: 0, deleted: 0 },
        Step::Publish { snapshots: false, changes: true },
        Step::Sync(narrow),
        Step::Sync(Sync::clean()),
        Step::Sync(Sync::clean()),
    ];
    holds(plan(site, steps));
}

/// Lists of many pages are split into windows, and a process dies, or its server fails, in the middle of them.
#[test]
fn windows_that_are_read_at_the_same_time_outlive_kills_and_faults() {
    let change = || Step::Change { created: 2, updated: 9, deleted: 2 };
    for effect in [80, 200, 320] {
        let failing = HttpFault { on: On::Documents, skip: 90, times: 5, what: What::Status(500, None) };
        let changing = HttpFault { on: On::Documents, skip: 30, times: 40, what: What::Changes };
        let halt = Some(Halt { effect, done: effect == 200 });
        let steps = vec![
            Step::Sync(Sync { halt, http: vec![changing], ..Sync::clean() }),
            change(),
            Step::Pass(100),
            sync_with(vec![failing]),
            change(),
        ];
        let summary = holds(Plan { per_origin: 4, ..plan(repository(150), steps) });
        assert_eq!(summary.most_open, 3, "of four requests, one is left to others");
    }
}
