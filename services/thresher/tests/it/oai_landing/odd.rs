//! Landing pages that are none, lead in circles or elsewhere, or name too much.

use simulated_source::{LandingFault, RepositoryFault as Fault, SimulatedRepository};

use super::{Case, DAY, paged};
use crate::common::Run;

fn quirk(run: &Run, name: &str) -> u64 {
    run.json()["quirks"][name].as_u64().unwrap_or(0)
}

/// Checks that no landing page is stored.
#[track_caller]
fn no_page_is_stored(case: &Case) {
    let pages: Vec<String> = case.copy.present().into_keys().filter(|uri| uri.contains("/item/")).collect();
    assert!(pages.is_empty(), "{pages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_place_of_a_page_is_counted_and_never_stored() {
    for (fault, name) in [(LandingFault::File, "not-a-page"), (LandingFault::ErrorPage, "no-signposting")] {
        let case = Case::of(paged(12)).await;
        case.repository.set_fault(Fault::Landing(fault.clone(), Some(3)));
        let run = case.sync(&[]).exits(0);
        assert_eq!((run.count("stored"), quirk(&run, name)), (12 + 22, 1), "{fault:?} {run}");
        no_page_is_stored(&case);
        let told = case.copy.explain(&case.record(3));
        assert!(told.contains(": names 0 files") && told.contains(name), "{told}");
        // It is asked again when its record changes.
        case.repository.clear_faults();
        assert_eq!(case.sync(&[]).exits(0).count("stored"), 0);
        case.repository.advance(2 * DAY);
        case.repository.update(3);
        assert_eq!(case.sync(&[]).exits(0).count("stored"), 3);
        case.is_whole();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_page_that_lies_later_is_kept() {
    let case = Case::in_step(paged(12)).await;
    for fault in [LandingFault::Status(403), LandingFault::Loop] {
        case.repository.set_fault(Fault::Landing(fault.clone(), Some(3)));
        case.repository.advance(2 * DAY);
        case.repository.update(3);
        let run = case.sync(&[]).exits(1);
        assert_eq!((run.count("absent"), run.count("deleted")), (0, 0), "{fault:?} {run}");
        case.is_whole();
        let run = case.sync(&["--mode", "baseline"]).exits(1);
        assert_eq!((run.count("absent"), run.count("deleted")), (0, 0), "{fault:?} {run}");
        case.is_whole();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_with_ten_thousand_files_and_itself_costs_as_many_requests_as_a_record_may() {
    let case = Case::of(paged(12)).await;
    case.repository.set_fault(Fault::Landing(LandingFault::Items(10_000), Some(3)));
    let run = case.sync(&[]).exits(1);
    assert_eq!(run.count("linked"), 22 + 20, "{run}");
    assert_eq!((case.requests("/files/3/"), case.requests("/item/3")), (20, 1));
    assert_eq!(run.count("stored"), 12 + 24, "two of them are there: {run}");
    let problems = case.copy.run("problems", &[]).stdout;
    assert!(problems.contains("limit-links") && problems.contains(&case.record(3)), "{problems}");
    no_page_is_stored(&case);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_many_records_is_asked_once_and_counts_for_the_first_of_them() {
    let case = Case::of(paged(30).one_page(true)).await;
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), case.requests("/item")), (32, 1), "{run}");
    assert_eq!(quirk(&run, "shared-landing-page"), 10, "{run}");
    // Its files stay while any of those records links to them.
    case.repository.advance(2 * DAY);
    case.repository.delete(5);
    let run = case.sync(&["--max-deletes", "100%"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("stored")), (1, 0), "{run}");
    assert_eq!(case.copy.state(&case.repository.file_url(0, 1)).as_deref(), Some("present"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_leads_to_the_page_and_is_no_other_site_to_be_left_out_unless_asked() {
    let resolver = SimulatedRepository::start(paged(12)).await.expect("a free port on loopback");
    let case = Case::of(paged(12).pages_at(resolver.url())).await;
    resolver.set_fault(Fault::Landing(LandingFault::Redirect(case.repository.url()), None));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), case.requests("/item")), (36, 12), "{run}");
    assert_eq!(resolver.requests().by_verb.get("/item/3"), Some(&1));
    case.is_whole();
    assert!(
        case.copy.explain(&case.record(3)).contains(&format!("{}/item/3: names 2 files", resolver.url()))
    );
}
