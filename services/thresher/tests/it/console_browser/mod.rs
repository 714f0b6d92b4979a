//! The console in a browser, on a fleet that really harvests.

mod browser;

use crate::common::api::{ADMIN, Api, OPERATE, READ, fleet};
use crate::common::{Fleet, source};
use browser::Browser;
use simulated_source::{Fault, SourceSpec};

/// The name of the one Source.
async fn source_name(api: &Api) -> String {
    let sources = api.get("/v1/sources").await.json();
    sources["items"][0]["id"].as_str().expect("the Source").to_owned()
}

/// Adds and harvests the Source once. Returns the path of its page.
async fn harvested(fleet: &Fleet, api: &Api, url: &str) -> String {
    fleet.add(url, &[]);
    fleet.harvest(url).await;
    format!("/console/sources/{}", source_name(api).await)
}

#[tokio::test]
async fn a_source_is_submitted_watched_and_done() {
    let source = source(SourceSpec::default().resources(120)).await;
    let (_fleet, _all, api) = fleet().await;
    let browser = Browser::start(&api.base).await;
    browser.open("/console").await;
    browser.is_accessible().await;
    browser.sign_in("some other long token").await;
    browser.says("This token is not known here").await;
    browser.is_accessible().await;
    assert_eq!(browser.place().await, "/console/sign-in");
    browser.sign_in(ADMIN).await;
    browser.says("all 0").await;
    browser.is_accessible().await;
    browser.follow("all 0").await;
    browser.says("No matching Source.").await;

    browser.open("/console/add").await;
    browser.is_accessible().await;
    browser.write("Entry URL", &source.well_known()).await;
    browser.choose("at an interval").await;
    browser.press("Preview").await;
    browser.says("the interval cannot be read").await;
    browser.is_accessible().await;
    browser.write("Interval", "6h").await;
    browser.press("Preview").await;
    browser.says("Nothing is stored yet.").await;
    // The scheduler's results appear without a reload.
    browser.says("estimated with").await;
    browser.says("resourcelist").await;
    browser.is_accessible().await;
    browser.press("Add Source").await;
    browser.says("Progress").await;
    // The page refreshes itself.
    browser.says("finished, in sync").await;
    browser.is_accessible().await;
    let page = browser.place().await.split_once("/runs/").unwrap().0.to_owned();
    for path in [page.as_str(), "/console", "/console/runs", "/console/sources"] {
        browser.open(path).await;
        browser.says("in sync").await;
        browser.is_accessible().await;
    }
    browser.follow(&source_name(&api).await).await;
    browser.follow("Change settings").await;
    browser.is_accessible().await;
    browser.write("Interval", "12h").await;
    browser.press("Save").await;
    browser.says("every 12 h").await;
    browser.end().await;
}

#[tokio::test]
async fn a_problem_is_seen_tried_again_and_healed() {
    let source = source(SourceSpec::default().resources(12)).await;
    source.set_fault(4, Fault::status(404));
    let (fleet, _all, api) = fleet().await;
    let at = harvested(&fleet, &api, &source.well_known()).await;
    let browser = Browser::start(&api.base).await;
    browser.sign_in(OPERATE).await;
    browser.says("problems 1").await;
    browser.is_accessible().await;
    browser.open(&format!("{at}/problems")).await;
    browser.says(&source.resource_uri(4)).await;
    browser.is_accessible().await;
    browser.follow(&source.resource_uri(4)).await;
    browser.says("Events").await;
    browser.says("problem (http-client-error)").await;
    browser.is_accessible().await;

    source.clear_faults();
    browser.open(&format!("{at}/problems")).await;
    browser.press("Retry").await;
    browser.says("Action queued.").await;
    browser.is_accessible().await;
    browser.press("Start run now").await;
    browser.says("finished, in sync").await;
    browser.open(&format!("{at}/resources")).await;
    browser.is_accessible().await;
    browser.open(&format!("{at}/report")).await;
    browser.says("Findings").await;
    browser.is_accessible().await;
    browser.end().await;
}

#[tokio::test]
async fn pages_are_read_and_forms_are_sent_without_javascript() {
    let source = source(SourceSpec::default().resources(60)).await;
    let (fleet, _all, api) = fleet().await;
    let at = harvested(&fleet, &api, &source.well_known()).await;
    let browser = Browser::with(&api.base, false).await;
    browser.sign_in(READ).await;
    browser.says("in sync").await;
    browser.open(&at).await;
    browser.says("Status").await;
    browser.says("Throughput").await;
    assert!(!browser.runs_scripts().await);
    browser.open(&format!("{at}/resources")).await;
    browser.says("50 on this page").await;
    browser.follow("Next page").await;
    browser.says("10 on this page").await;
    browser.write("History of the URI", &source.resource_uri(7)).await;
    browser.press("Explain").await;
    browser.says("stored and verified").await;
    browser.open(&format!("{at}/problems")).await;
    browser.says("No problems.").await;

    // The same browser, with a token that may start runs.
    browser.page.delete_all_cookies().await.unwrap();
    browser.sign_in(OPERATE).await;
    // A visitor who leaves before the response arrives is not signed in.
    browser.says("in sync").await;
    browser.open(&at).await;
    browser.press("Start run").await;
    browser.says("Run ID").await;
    testkit::waiting::found("the run is over, by looking again", async || {
        browser.open(&at).await;
        let page = browser.page.source().await.ok()?;
        (page.matches("finished, in sync").count() == 2).then_some(())
    })
    .await;
    browser.end().await;
}
