//! The cost of `kill -9` in the middle of a package: bytes that the Source sends again, and slices that are repeated.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Fleet, Package, Service, Site, package, urlset};
use testkit::files::{File, FileServer};
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;

const AT: &str = "2026-01-01T00:00:00Z";
const DUMP: &str = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";
const MIB: usize = 1024 * 1024;
/// A part of a package's upload.
const PART: usize = 8 * MIB;
/// The most entries of a slice.
const MOST_OF_A_SLICE: usize = 256;

/// A Source of one package, which is on a server of its own, and a fleet.
struct Case {
    packages: FileServer,
    site: Site,
    fleet: Fleet,
    url: String,
    truth: BTreeMap<String, (u64, String)>,
    length: usize,
}

impl Case {
    /// The package has small members and as many of four MiB.
    async fn of(small: usize, large: usize) -> Self {
        let packages = FileServer::start().await.expect("a free port on loopback");
        let site = Site::start().await;
        let mut package_ = Package::of_resources(AT);
        let mut truth = BTreeMap::new();
        let bodies = (0..small).map(|n| format!("{n} ").repeat(n % 20).into_bytes());
        let large =
            (0..large).map(|n| (0..4 * MIB).map(|at| (at / 7 % (200 + n)) as u8).collect::<Vec<u8>>());
        for (n, body) in bodies.chain(large).enumerate() {
            let uri = site.uri(&format!("/{n}"));
            truth.insert(uri.clone(), (body.len() as u64, fixity::Sha256::of(&body).to_string()));
            package_ = package_.holds(&uri, body);
        }
        let bytes = package_.zip();
        let entry = package(&packages.uri("/1.zip"), &bytes, "");
        let url = site.serve("/dump.xml", urlset(DUMP, &[entry]));
        let length = bytes.len();
        packages.serve("/1.zip", File::new(bytes, "\"v1\""));
        let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
        Self { packages, site, fleet, url, truth, length }
    }

    fn start(&self, services: &[&str]) -> Vec<Service> {
        services.iter().map(|service| self.fleet.start(&[service], "")).collect()
    }

    /// Waits for the end of the run, and compares the stored content.
    async fn assert_harvested(&self) {
        self.fleet.watch(&self.url).await.exits(0);
        assert_eq!(self.fleet.destination().present(), self.truth);
        let resources = self.site.paths().into_iter().filter(|path| *path != "/dump.xml");
        assert_eq!(resources.collect::<Vec<_>>(), Vec::<String>::new(), "no resource is asked for by itself");
    }
}

#[tokio::test]
async fn a_fetcher_killed_in_the_middle_of_a_package_costs_less_than_a_part() {
    let case = Case::of(100, 8).await;
    assert!(case.length > 3 * PART);
    let _others = case.start(&["scheduler", "unpacker", "verifier"]);
    let fetcher = case.fleet.start(&["fetcher"], "");
    let stop = (2 * PART + 3 * MIB) as u64;
    case.packages.wait_for(2);
    case.packages.allow(Some(stop));
    case.fleet.add(&case.url, &[]);
    case.fleet.run("submit", &case.url, &[]).exits(0);
    until("two parts and a half were sent", || case.packages.sent() == stop).await;
    fetcher.kill();
    until("the killed fetcher's connections are closed", || case.packages.open() == 0).await;
    case.packages.allow(None);
    let _another = case.start(&["fetcher"]);
    case.assert_harvested().await;
    let again = case.packages.sent() - case.length as u64;
    assert!(again < PART as u64, "{again} bytes were sent again, and a part has {PART}");
    assert!(case.packages.most_open() < 4, "one of four slots is left to others");
}

/// The slices that a service has started, by its log.
fn slices_begun(service: &Service) -> Vec<usize> {
    let number = |line: &str| {
        let (_, task) = line.split_once("an unpack job begins")?;
        let (_, number) = task.split_once("number: ")?;
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    service.log().lines().filter_map(number).collect()
}

#[tokio::test]
async fn an_unpacker_killed_in_the_middle_of_a_package_costs_one_slice_at_most() {
    let case = Case::of(8_000, 0).await;
    let unpacker = || {
        let one_by_one = "unpacker: {max_concurrent_jobs: 1}";
        case.fleet.start_logging(&["unpacker"], "", one_by_one, "info,unpacker=debug")
    };
    let _others = case.start(&["scheduler", "fetcher", "verifier"]);
    let killed = unpacker();
    case.fleet.add(&case.url, &[]);
    case.fleet.run("submit", &case.url, &[]).exits(0);
    until("some slices are worked on", || slices_begun(&killed).len() > 2).await;
    killed.signal("STOP");
    let before = slices_begun(&killed);
    killed.kill();
    let another = unpacker();
    case.assert_harvested().await;
    let after = slices_begun(&another);
    let slices: BTreeSet<usize> = before.iter().chain(&after).copied().collect();
    let slices = slices.len();
    assert!(slices >= case.truth.len() / MOST_OF_A_SLICE, "{before:?}, then {after:?}");
    assert!(after.len() > 1, "it was killed at the end, so this says nothing");
    let again = before.len() + after.len() - slices;
    assert!(again < 2, "{again} slices were worked on again: {before:?}, then {after:?}");
}
