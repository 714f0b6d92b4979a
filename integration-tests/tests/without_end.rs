//! What a Source sends keeps no run open without end.

use planning::WindowLimits;
use simulation::plan::{Plan, Sync};
use simulation::site::{HttpFault, On, SiteSpec, What};
use simulation::world::{Ended, World};

fn world(site: SiteSpec) -> World {
    let (per_origin, window) = (2, WindowLimits::default());
    World::new(Plan { seed: 1, site, per_origin, window, by_wire: true, steps: Vec::new() })
}

/// A run in which all responses of a kind have a fault.
fn sync(on: On, what: What) -> Sync {
    Sync { http: vec![HttpFault { on, skip: 0, times: u32::MAX, what }], ..Sync::clean() }
}

#[test]
fn a_package_that_breaks_off_after_a_few_bytes_each_time_is_a_problem_after_four_attempts() {
    let listed = SiteSpec::listed(5);
    let mut world = world(SiteSpec { list_parts: 0, packages: 1, change_list: true, ..listed });
    let Ended::Report(report) = world.sync(&sync(On::Packages, What::Cut(1))) else { panic!("no report") };
    assert_eq!((report.run.counters.documents_failed, report.run.counters.stored), (1, 0));
    // A request and three more in each attempt; and the documents.
    assert!(world.site.requests() <= 4 * 4 + 10, "{} requests", world.site.requests());
    let Ended::Report(report) = world.sync(&Sync::clean()) else { panic!("no report") };
    assert_eq!((report.run.counters.stored, report.open_problems), (5, 0));
}

#[test]
fn a_resource_whose_server_asks_for_a_pause_each_time_is_a_problem_after_ten() {
    // The last one: others that wait behind it would ask for the same pause.
    let mut world = world(SiteSpec::listed(5));
    let mut pauses = 0;
    let report = loop {
        match world.sync(&sync(On::Resource(4), What::Status(429, Some(300)))) {
            Ended::Failed(why) => assert!(why.contains("asked for a pause"), "{why}"),
            Ended::Report(report) => break report,
            other => panic!("{other:?}"),
        }
        pauses += 1;
        assert!(pauses < 20, "the run goes on for ever");
        world.clock.advance(301);
    };
    assert_eq!((pauses, report.run.counters.failed), (9, 1), "the tenth is not waited for");
    world.clock.advance(301);
    let Ended::Report(report) = world.sync(&Sync::clean()) else { panic!("no report") };
    assert_eq!(report.open_problems, 0);
}
