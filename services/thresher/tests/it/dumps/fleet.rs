//! A dump and a fleet of processes.

use std::collections::BTreeMap;

use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;

use crate::common::{Fleet, Package};
use crate::dumps::AT;
use crate::dumps::case::Case;

const ALL: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];

/// Serves a dump of three packages, one of them a tar, with 700 resources in each: several slices. Returns its URI and
/// content.
async fn large_dump(case: &Case) -> (String, BTreeMap<String, (u64, String)>) {
    let mut entries = Vec::new();
    let mut truth = BTreeMap::new();
    for part in 0..3 {
        let mut package = Package::of_resources(AT);
        for n in 0..700 {
            let uri = case.uri(&format!("{part}/{n}"));
            let body = format!("{part} {n} ").repeat(n % 40);
            truth.insert(uri.clone(), (body.len() as u64, fixity::Sha256::of(body.as_bytes()).to_string()));
            package = package.holds(&uri, body);
        }
        let (path, bytes) = match part {
            0 => ("/0.tar.xz", package.tar_xz().await),
            1 => ("/1.zip", package.zip()),
            _ => ("/2.zip", package.deflated().zip()),
        };
        entries.push(case.package(path, bytes, ""));
    }
    (case.dump(&entries), truth)
}

#[tokio::test]
async fn a_fleet_harvests_a_dump_as_a_laptop_does() {
    let case = Case::new().await;
    let (url, truth) = large_dump(&case).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let _services: Vec<_> =
        ALL.iter().chain(&["unpacker"]).map(|service| fleet.start(&[service], "")).collect();
    fleet.add(&url, &[]);
    fleet.harvest(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), truth);
    case.copy.sync(&url).exits(0);
    assert_eq!(case.copy.present(), truth);
    for uri in truth.keys().step_by(300) {
        assert_eq!(fleet.destination().cat(uri), case.copy.cat(uri), "{uri}");
    }
    let again = fleet.harvest(&url).await.exits(0);
    assert_eq!(again.json()["counters"]["stored"], 0, "{again}");
    assert_eq!(case.site.requests_at("/1.zip"), 2, "once for each of them");
}

#[tokio::test]
async fn a_fetcher_and_an_unpacker_that_are_killed_at_a_dump_lose_nothing() {
    let case = Case::new().await;
    let (url, truth) = large_dump(&case).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let [_scheduler, fetcher, unpacker, _verifier] = ALL.map(|service| fleet.start(&[service], ""));
    fleet.add(&url, &[]);
    fleet.run("submit", &url, &[]).exits(0);
    until("a package was asked for", || case.site.requests_at("/2.zip") > 0).await;
    fetcher.kill();
    unpacker.kill();
    let _others = ["fetcher", "unpacker"].map(|service| fleet.start(&[service], ""));
    fleet.watch(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), truth);
    for package in ["/0.tar.xz", "/1.zip", "/2.zip"] {
        assert!(case.site.requests_at(package) <= 2, "{package} is asked for once more at most");
    }
}
