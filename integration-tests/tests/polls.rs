//! Polls that replace idle runs: what a run leaves for them, and what they find.

use discovery::PollOutcome;
use harvest::Report;
use model::{Mode, PollBasis, Prefer};
use planning::WindowLimits;
use simulation::plan::{Plan, Step, Sync};
use simulation::site::{Fixity, HttpFault, On, SiteSpec, What};
use simulation::world::{Ended, World};

const UNCHANGED: PollOutcome = PollOutcome::Unchanged { requests: 1 };
const NEWS: PollOutcome = PollOutcome::News { requests: 1 };

/// A Source with a Resource List and a Change List.
fn site() -> SiteSpec {
    SiteSpec { change_list: true, ..listed() }
}

/// A Source with a Resource List only.
fn listed() -> SiteSpec {
    SiteSpec::listed(5)
}

/// The same without validators.
fn bare(site: SiteSpec) -> SiteSpec {
    SiteSpec { etag: false, last_modified: false, ..site }
}

fn world(site: SiteSpec) -> World {
    World::new(Plan {
        seed: 1,
        site,
        per_origin: 2,
        window: WindowLimits::default(),
        by_wire: true,
        steps: vec![],
    })
}

#[track_caller]
fn run(world: &mut World, sync: Sync) -> Report {
    match world.step(&Step::Sync(sync)) {
        Some(Ended::Report(report)) => *report,
        other => panic!("{other:?}"),
    }
}

fn sync(world: &mut World) -> Option<PollBasis> {
    run(world, Sync::clean()).poll
}

#[track_caller]
fn paths(basis: &PollBasis) -> Vec<&str> {
    basis.documents.iter().map(|document| document.uri.trim_start_matches("http://source.example/")).collect()
}

/// Two runs, and polls before and after the Source publishes a change. `document` is what an idle run requests.
#[track_caller]
fn a_poll_finds_no_news_until_the_source_publishes(site: SiteSpec, document: &str) {
    let has_validators = site.etag || site.last_modified;
    let mut world = world(site);
    let first = sync(&mut world).expect("a first run that settled everything leaves a basis");
    assert_eq!(world.poll(&first), Ok(UNCHANGED));
    world.clock.advance(600);
    let before = world.site.requests();
    let basis = sync(&mut world).expect("an idle run leaves a basis");
    assert_eq!(world.site.requests() - before, 1, "an idle run requests as much as a poll");
    assert_eq!(paths(&basis), [document]);
    assert!(basis.documents[0].digest.is_some(), "a short document has a digest");
    assert_eq!(basis.documents[0].validators.is_empty(), !has_validators);
    assert_eq!(basis.valid_until, first.valid_until, "an idle run does not discover");
    assert_eq!(world.poll(&basis), Ok(UNCHANGED));
    world.step(&Step::Change { created: 1, updated: 1, deleted: 0 });
    assert_eq!(world.poll(&basis), Ok(UNCHANGED), "the Source has not published it yet");
    world.step(&Step::Publish { snapshots: true, changes: true });
    assert_eq!(world.poll(&basis), Ok(NEWS));
    let report = run(&mut world, Sync::clean());
    assert_eq!(report.run.counters.stored, 2);
    assert_eq!(world.poll(&basis), Ok(NEWS), "the basis of an earlier run");
    assert_eq!(world.poll(&report.poll.expect("a settled run leaves a basis")), Ok(UNCHANGED));
}

#[test]
fn a_change_list_with_validators_is_polled() {
    a_poll_finds_no_news_until_the_source_publishes(site(), "changelist.xml");
    a_poll_finds_no_news_until_the_source_publishes(SiteSpec { etag: false, ..site() }, "changelist.xml");
    a_poll_finds_no_news_until_the_source_publishes(
        SiteSpec { last_modified: false, ..site() },
        "changelist.xml",
    );
}

#[test]
fn a_change_list_without_validators_is_polled_by_its_digest() {
    a_poll_finds_no_news_until_the_source_publishes(bare(site()), "changelist.xml");
}

#[test]
fn a_resource_list_is_polled_where_there_are_no_changes() {
    a_poll_finds_no_news_until_the_source_publishes(listed(), "resourcelist.xml");
    a_poll_finds_no_news_until_the_source_publishes(bare(listed()), "resourcelist.xml");
}

/// Entries that say nothing but their URI are requested each time their list is read: the same list may have news.
#[test]
fn a_list_that_says_nothing_of_its_resources_is_polled_by_its_validators_only() {
    let silent = SiteSpec { fixity: Fixity::Nothing, lastmod: false, ..listed() };
    let mut bare = world(bare(silent.clone()));
    assert_eq!([sync(&mut bare), sync(&mut bare)], [None, None]);
    let mut with_validators = world(silent);
    sync(&mut with_validators);
    let basis = sync(&mut with_validators).expect("its validators");
    assert!(basis.documents.iter().all(|document| document.digest.is_none()), "{basis:?}");
}

#[test]
fn an_index_is_polled_with_its_parts() {
    let site = SiteSpec { list_parts: 3, ..listed() };
    let mut world = world(site);
    let basis = sync(&mut world).unwrap();
    let mut polled = paths(&basis);
    polled.sort_unstable();
    assert_eq!(
        polled,
        ["resourcelist-0.xml", "resourcelist-1.xml", "resourcelist-2.xml", "resourcelist.xml"]
    );
    // robots.txt may state a delay between two requests.
    assert_eq!(world.poll(&basis), Ok(PollOutcome::Unchanged { requests: 4 + 1 }));
}

#[test]
fn more_documents_than_a_poll_may_have_are_left_to_runs() {
    for (parts, is_polled) in [(7, true), (8, false)] {
        let mut world = world(SiteSpec { list_parts: parts, resources: 20, ..listed() });
        assert_eq!(sync(&mut world).is_some(), is_polled, "an index of {parts}");
    }
}

#[test]
fn a_dump_is_polled_by_its_validators_only() {
    let site = SiteSpec { list_parts: 0, packages: 2, ..listed() };
    let mut dumped = world(site.clone());
    let basis = sync(&mut dumped).unwrap();
    assert_eq!((paths(&basis), basis.documents[0].digest), (vec!["resourcedump.xml"], None));
    assert_eq!(dumped.poll(&basis), Ok(UNCHANGED));
    dumped.step(&Step::Publish { snapshots: true, changes: true });
    assert_eq!(dumped.poll(&basis), Ok(NEWS));
    assert_eq!(sync(&mut world(bare(site))), None);
}

#[test]
fn a_run_with_problems_leaves_nothing_to_poll() {
    let gone = HttpFault { on: On::Resource(1), skip: 0, times: 1_000, what: What::Status(404, None) };
    let mut world = world(site());
    let report = run(&mut world, Sync { http: vec![gone], ..Sync::clean() });
    assert_eq!((report.open_problems, report.poll), (1, None));
    assert!(sync(&mut world).is_some(), "the next run settled it");
}

#[test]
fn a_list_with_absences_is_polled_by_its_validators_only() {
    for site in [listed(), bare(listed())] {
        let has_validators = site.etag;
        let mut world = world(site);
        let whole = sync(&mut world).unwrap();
        world.clock.advance(600);
        world.step(&Step::Change { created: 0, updated: 0, deleted: 1 });
        world.step(&Step::Publish { snapshots: true, changes: true });
        let report = run(&mut world, Sync::clean());
        assert_eq!(report.run.counters.absent, 1);
        // The same list, read again, may confirm the absence: only "not modified" says that no run reads it.
        assert_eq!(report.poll.is_some(), has_validators);
        assert!(report.poll.is_none_or(|basis| basis.documents[0].digest.is_none()));
        assert!(whole.documents[0].digest.is_some());
    }
}

#[test]
fn a_run_in_which_the_source_publishes_leaves_what_it_read() {
    let anew = HttpFault { on: On::Resources, skip: 0, times: 1, what: What::Publishes };
    let mut world = world(site());
    world.step(&Step::Change { created: 1, updated: 0, deleted: 0 });
    let basis = run(&mut world, Sync { http: vec![anew], ..Sync::clean() }).poll.unwrap();
    assert_eq!(world.poll(&basis), Ok(NEWS));
}

#[test]
fn a_run_of_other_options_leaves_nothing_that_the_next_one_does_not_read() {
    let mut world = world(SiteSpec { packages: 1, change_dump: true, ..site() });
    sync(&mut world).unwrap();
    let dumps = run(&mut world, Sync { prefer: Some(Prefer::Dump), ..Sync::clean() }).poll.unwrap();
    assert_eq!(paths(&dumps), ["changedump.xml"]);
    assert_eq!(run(&mut world, Sync { mode: Some(Mode::Baseline), ..Sync::clean() }).poll, None);
    let fresh = &mut self::world(site());
    let incremental = run(fresh, Sync { mode: Some(Mode::Incremental), ..Sync::clean() });
    assert_eq!(incremental.poll, None, "there is no baseline");
}
