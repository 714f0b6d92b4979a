//! ZIP packages: their objects in the store after they are settled.

use super::dump::{Package, package};
use super::site::{Site, resource, urlset};
use super::*;
use testkit::scripted::Reply;

const AT: &str = "2026-01-01T00:00:00Z";

/// Objects in the packages' folder of a Source, the packages included.
async fn objects(into: &str, source: &SourceId) -> usize {
    let store = target::open_store(&target::parse(into).unwrap()).await.unwrap();
    let prefix = store::Key::packages(source);
    store.object_store().list(Some(&prefix)).try_collect::<Vec<_>>().await.unwrap().len()
}

async fn harvest(url: &str, into: &str, bus: Arc<dyn Bus>) -> Report {
    let web = WebConfig { per_origin: 2, ..WebConfig::default() };
    let url = Url::parse(url).unwrap();
    let into = into.to_owned();
    let request = Request {
        url,
        into,
        view: Some(ViewArg::None),
        web,
        options: HarvestOptions::default(),
        labels: std::collections::BTreeMap::new(),
    };
    harvest_over(bus, request, watch::Sender::new(Progress::default())).await.expect("a run that ends").0
}

#[tokio::test]
async fn indexes_go_when_their_package_is_settled_and_a_job_that_looks_for_one_later_changes_nothing() {
    let site = Site::start().await;
    let serve = |path: &str, package_of: Package, more: &str| {
        let bytes = package_of.zip();
        let entry = package(&site.uri(path), &bytes, more);
        site.reply(path, Reply::ok(bytes));
        entry
    };
    let base = Package::of_resources(AT).holds(&site.uri("/a"), "a1").holds(&site.uri("/b"), "b1");
    let dump = [serve("/base.zip", base, "")];
    site.serve("/dump.xml", urlset(&format!("capability=\"resourcedump\" at=\"{AT}\""), &dump));
    let changes = |packages: &[String]| {
        site.serve("/changes.xml", urlset(&format!("capability=\"changedump\" from=\"{AT}\""), packages));
    };
    changes(&[]);
    let documents = [("/dump.xml", "resourcedump"), ("/changes.xml", "changedump")]
        .map(|(path, capability)| resource(&site.uri(path), &format!("capability=\"{capability}\"")));
    let url = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &documents));
    let folder = tempfile::tempdir().expect("a directory");
    let (into, source) =
        (folder.path().display().to_string(), SourceId::of_entry(&Url::parse(&url).unwrap()));
    let report = harvest(&url, &into, memory()).await;
    assert_eq!((report.in_sync(), report.run.counters.stored), (true, 2), "{:?}", report.first_problems);
    assert_eq!(objects(&into, &source).await, 1, "the package, and no index");

    let packages = [1, 2].map(|day| {
        let from = format!("2026-01-0{day}T00:00:00Z");
        let until = format!("2026-01-0{}T00:00:00Z", day + 1);
        let change = Package::of_changes(&from, &until).changed(
            &site.uri("/a"),
            "updated",
            &format!("2026-01-0{day}T05:00:00Z"),
            format!("a of day {day}"),
        );
        serve(&format!("/{day}.zip"), change, &format!("from=\"{from}\" until=\"{until}\""))
    });
    changes(&packages);
    let bus = Harming::repeating();
    let report = harvest(&url, &into, Arc::clone(&bus) as Arc<dyn Bus>).await;
    assert_eq!((report.in_sync(), report.run.counters.stored), (true, 2), "{:?}", report.first_problems);
    assert!(matches!(&bus.harm, Harm::Repeat { repeated, .. } if repeated.load(Ordering::SeqCst) == 1));
    assert_eq!(objects(&into, &source).await, 3, "three packages, and no index");
    assert_eq!((site.requests_at("/1.zip"), site.requests_at("/2.zip")), (1, 1));
}

#[tokio::test]
async fn a_package_whose_job_nobody_could_work_on_is_a_problem_as_any_other_and_leaves_no_index() {
    let site = Site::start().await;
    let mut bytes = Package::of_resources(AT);
    for n in 0..600 {
        bytes = bytes.holds(&site.uri(&format!("/{n}")), n.to_string());
    }
    let bytes = bytes.zip();
    let dump = urlset(
        &format!("capability=\"resourcedump\" at=\"{AT}\""),
        &[package(&site.uri("/1.zip"), &bytes, "")],
    );
    let url = site.serve("/dump.xml", dump);
    let folder = tempfile::tempdir().expect("a directory");
    let (into, source) =
        (folder.path().display().to_string(), SourceId::of_entry(&Url::parse(&url).unwrap()));
    site.reply("/1.zip", Reply::status(410));
    harvest(&url, &into, memory()).await;
    let seen = problem(&into, &site.uri("/1.zip")).await.expect("a problem");

    // It is received, and cannot be opened.
    site.reply("/1.zip", Reply::ok(bytes));
    let report = harvest(&url, &into, Harming::damaging("open", 1)).await;
    assert_eq!(report.run.counters.documents_failed, 1);
    let again = problem(&into, &site.uri("/1.zip")).await.expect("a problem");
    assert_eq!((again.reason, again.retry, again.attempts), (ProblemReason::Poison, true, seen.attempts + 1));
    assert_eq!(again.first_seen, seen.first_seen);

    // It is opened, and a part of it cannot be read.
    harvest(&url, &into, Harming::damaging("unpack", 1)).await;
    let again = problem(&into, &site.uri("/1.zip")).await.expect("a problem");
    assert_eq!(again.reason, ProblemReason::Poison);
    assert_eq!(objects(&into, &source).await, 2, "what came in two runs, and no index");

    let report = harvest(&url, &into, memory()).await;
    assert!(report.in_sync(), "{:?}", report.first_problems);
    assert_eq!(problem(&into, &site.uri("/1.zip")).await, None);
}

async fn problem(into: &str, uri: &str) -> Option<ProblemRecord> {
    let harvested = target::open_for_reading(into, None).await.expect("a harvest");
    harvested.sources[0].1.problem(&Subject::Document(uri.to_owned())).await.unwrap()
}
