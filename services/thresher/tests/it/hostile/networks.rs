//! Names and addresses of the internal network, which a Source wants its Destination to request.

use testkit::scripted::Reply;
use testkit::servers::{NatsFixture, S3Fixture};

use crate::common::{Destination, Fleet, Run, Site, resource, thresher, urlset};

const LIST: &str = r#"capability="resourcelist" at="2026-11-01T00:00:00Z""#;
const ALL: [&str; 4] = ["scheduler", "fetcher", "unpacker", "verifier"];
const ROBOTS: &str = "/robots.txt";
const METADATA: &str = "http://169.254.169.254/latest/meta-data/";

/// The same server by a name that needs a DNS lookup.
fn by_name(uri: &str) -> String {
    uri.replace("127.0.0.1", "localhost")
}

/// A list of these resources at a site.
fn list(site: &Site, uris: &[&str]) -> String {
    let entries: Vec<_> = uris.iter().map(|uri| resource(uri, "")).collect();
    site.serve("/list.xml", urlset(LIST, &entries))
}

#[tokio::test]
async fn a_list_leads_to_no_other_port_of_the_name_that_it_was_entered_at() {
    let site = Site::start().await;
    let inside = Site::start().await;
    let own = by_name(&site.serve("/own.txt", "own"));
    let secret = by_name(&inside.serve("/secret.txt", "secret"));
    let url = by_name(&list(&site, &[&own, &secret]));
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (1, 1), "{run}");
    assert!(inside.requests().is_empty(), "{:?}", inside.requests());
    run.says(&["(refused-address)", "only the port of the entry URL", "--allow-address"]);
}

#[tokio::test]
async fn no_option_lets_a_source_lead_to_a_clouds_secrets() {
    let site = Site::start().await;
    let away = site.reply("/away.txt", Reply::status(302).header("location", METADATA));
    let url = list(&site, &[METADATA, &away, "http://[fd00:ec2::254]/latest/"]);
    let options = ["--allow-private", "--allow-address", "0.0.0.0/0", "--allow-network", "::/0"];
    let run = Destination::directory().sync_with(&url, &options).exits(1);
    assert_eq!(run.count("failed"), 3, "{run}");
    run.says(&["(refused-address)", "where a cloud keeps a machine's secrets, which no option allows"]);
    Destination::directory()
        .sync_with(METADATA, &options)
        .exits(3)
        .complains(&["no option allows"], &["tell the source's operator"]);
}

#[tokio::test]
async fn a_fleet_lets_each_source_lead_to_its_own_networks_and_never_to_a_clouds_secrets() {
    let allowed = Site::start().await;
    let other = Site::start().await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    // Scheduler and fetcher are separate processes. The allowed networks travel with the jobs.
    let _services: Vec<_> =
        ALL.iter().map(|service| fleet.start_asking(&[service], "allow_networks: []", "")).collect();
    let own = allowed.serve("/own.txt", "own");
    let inside = other.serve("/inside.txt", "inside");
    other.serve(ROBOTS, "User-agent: *\nDisallow: /private\n");
    // The same server by a name is a third party's, which did not list its URL.
    let private = by_name(&other.serve("/private.txt", "private"));
    let url = list(&allowed, &[&own, &inside, &private, METADATA]);
    let networks = ["127.0.0.0/8", "::1", "169.254.0.0/16"].map(|network| ["--allow-network", network]);
    fleet.add(&url, &networks.concat());
    let run = fleet.harvest(&url).await.exits(1);
    let counters = &run.json()["counters"];
    assert_eq!((&counters["stored"], &counters["failed"]), (&2.into(), &2.into()), "{run}");
    assert_eq!(other.requests_at("/private.txt"), 0);
    assert_eq!(fleet.destination().present().len(), 2, "{run}");

    // Another Source of the same fleet has no permission, although connections to that address are kept.
    let url = list(&other, &[&own]);
    let asked = other.requests().len();
    fleet.add(&url, &[]);
    let run = fleet.harvest(&url).await.exits(3);
    assert!(run.stdout.contains("127.0.0.1 is a loopback address"), "{run}");
    assert_eq!(other.requests().len(), asked, "{:?}", other.requests());
}

#[tokio::test]
async fn the_field_that_opened_every_address_is_refused_with_the_one_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("serve.yaml");
    std::fs::write(&config, "http: {allow_private_addresses: true}\n").unwrap();
    let run = Run::of(thresher().args(["serve", "--config"]).arg(&config)).exits(2);
    for text in ["`http.allow_private_addresses`", "`allow_networks: [10.1.0.0/16]`", "--allow-network"] {
        assert!(run.stderr.contains(text), "{text}: {run}");
    }
}

#[tokio::test]
async fn ports_of_other_services_are_not_asked_at() {
    let site = Site::start().await;
    let own = site.serve("/own.txt", "own");
    let away = site.reply("/away.txt", Reply::status(302).header("location", "http://127.0.0.1:25/"));
    let url = list(&site, &[&own, "http://127.0.0.1:6667/a.txt", &away]);
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (1, 2), "{run}");
    run.says(&["(refused-port)", "which browsers refuse too"]);
    let story = copy.run("problems", &["--reason", "refused-port"]);
    assert!(story.stdout.contains("127.0.0.1:25"), "{story}");
}

#[tokio::test]
async fn what_a_third_party_disallows_is_not_fetched_without_its_leave() {
    let site = Site::start().await;
    let other = Site::start().await;
    for site in [&site, &other] {
        site.serve(ROBOTS, "User-agent: *\nDisallow: /\n");
    }
    let own = site.serve("/own.txt", "own");
    let theirs = by_name(&other.serve("/theirs.txt", "theirs"));
    let url = list(&site, &[&own, &theirs]);
    let allowed = ["--allow-address", "127.0.0.0/8", "--allow-address", "::1"];
    let run = Destination::directory().sync_with(&url, &allowed).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (1, 1), "{run}");
    assert_eq!((other.requests_at(ROBOTS), other.requests_at("/theirs.txt")), (1, 0));
    run.says(&["(disallowed)"]);
    let run = Destination::directory().sync_with(&url, &[&allowed[..], &["--robots", "ignore"]].concat());
    assert_eq!((run.count("stored"), other.requests_at("/theirs.txt")), (2, 1), "{run}");
}
