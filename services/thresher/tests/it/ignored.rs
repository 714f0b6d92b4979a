//! `thresher retry` and `thresher ignore`: which problems are retried, which are ignored, and what ends that.

use crate::common::{Destination, Package, Site, package, resource, urlset};
use serde_json::json;
use testkit::scripted::Reply;

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn hash(bytes: &str) -> String {
    format!("hash=\"sha-256:{}\"", fixity::Sha256::of(bytes.as_bytes()))
}

/// A harvest of one stored resource and one that is gone.
async fn harvested(site: &Site) -> (Destination, String, String) {
    let held = site.serve("/held", "held");
    let gone = site.reply("/gone", Reply::status(404));
    let url = site.serve("/list.xml", urlset(LIST, &[resource(&held, ""), resource(&gone, &hash("old"))]));
    let copy = Destination::directory();
    copy.sync(&url).exits(1);
    (copy, url, gone)
}

/// Serves the list as of another day.
fn relist(site: &Site, day: u32, entries: &[String]) {
    let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
    site.serve("/list.xml", urlset(&md, entries));
}

#[tokio::test]
async fn what_is_ignored_is_not_asked_for_stays_visible_and_a_new_version_lifts_it() {
    let site = Site::start().await;
    let (copy, url, gone) = harvested(&site).await;
    copy.run("ignore", &[&gone]).exits(2);
    copy.run("ignore", &[&gone, "--note", "gone since 2019"]).exits(0);
    let asked = site.requests_at("/gone");

    let run = copy.sync(&url).exits(0).says(&["In sync.", "1  ignored problem"]);
    assert_eq!((run.json()["in_sync"].clone(), run.count("ignored")), (json!(true), 1), "{run}");
    // Another list with the same entry.
    relist(&site, 2, &[resource(&site.uri("/held"), ""), resource(&gone, &hash("old"))]);
    copy.sync(&url).exits(0);
    assert_eq!(site.requests_at("/gone"), asked, "it is left alone");
    assert_eq!(copy.run("problems", &["--json"]).exits(0).stdout, "");
    let ignored = copy.run("problems", &["--ignored", "--json"]).exits(0).json();
    assert_eq!((&ignored["uri"], &ignored["ignored"]["note"]), (&json!(gone), &json!("gone since 2019")));
    let story = copy.explain(&gone);
    assert!(story.contains("ignored by the operator: gone since 2019"), "{story}");

    // A new version, which fails too.
    relist(&site, 3, &[resource(&site.uri("/held"), ""), resource(&gone, &hash("new"))]);
    copy.sync(&url).exits(1);
    assert_eq!(site.requests_at("/gone"), asked + 1);
    let open = copy.run("problems", &["--json"]).exits(0).json();
    assert_eq!((&open["uri"], &open["ignored"]), (&json!(gone), &json!(null)));
    site.serve("/gone", "new");
    copy.sync(&url).exits(0);
    assert_eq!(copy.cat(&gone), b"new");
}

#[tokio::test]
async fn a_retry_asks_for_what_was_refused_for_good_and_for_what_was_ignored() {
    let site = Site::start().await;
    let (copy, url, gone) = harvested(&site).await;
    copy.run("ignore", &["--reason", "http-client-error", "--note", "known"]).exits(0);
    copy.sync(&url).exits(0);
    site.serve("/gone", "old");
    let asked = site.requests_at("/gone");
    copy.run("retry", &["--all"]).exits(0);
    copy.sync(&url).exits(0);
    assert_eq!(site.requests_at("/gone"), asked, "it is ignored, and was not named");
    let told = copy.run("retry", &[&gone]).exits(0);
    assert!(told.stdout.contains("1 resource is queued: the next run"), "{told}");
    let run = copy.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("ignored")), (1, 0), "{run}");
    assert_eq!(copy.cat(&gone), b"old");
    let story = copy.explain(&gone);
    assert!(story.contains("problem retried by the operator"), "{story}");
}

#[tokio::test]
async fn the_word_can_be_taken_back_and_must_say_of_what() {
    let site = Site::start().await;
    let (copy, url, gone) = harvested(&site).await;
    for words in [&["retry"][..], &["ignore", "--note", "x"]] {
        copy.run(words[0], &words[1..]).exits(2).complains(&["--reason", "--all"], &["no problem selected"]);
    }
    copy.run("ignore", &["--kind", "resource", "--note", "x"]).exits(0);
    copy.sync(&url).exits(0);
    copy.run("ignore", &[&gone, "--undo"]).exits(0);
    copy.sync(&url).exits(1);
    let missed = copy.run("retry", &["http://nowhere.example/x"]).exits(1);
    assert!(missed.stderr.contains("http://nowhere.example/x: no open problem"), "{missed}");
}

#[tokio::test]
async fn an_audit_tells_what_is_ignored_apart_until_the_source_says_something_else_of_it() {
    let site = Site::start().await;
    let (copy, url, gone) = harvested(&site).await;
    let run = copy.run("audit", &[&url, "--json"]).exits(1);
    assert_eq!((run.count("missing"), run.count("ignored")), (1, 0), "{run}");
    copy.run("ignore", &[&gone, "--note", "gone since 2019"]).exits(0);

    let run = copy.run("audit", &[&url, "--json", "--list"]).exits(0);
    assert_eq!((run.count("differences"), run.count("ignored")), (0, 1), "{run}");
    let line = &run.json_lines()[0];
    assert_eq!((&line["uri"], &line["difference"]), (&json!(gone), &json!("missing")));
    assert_eq!(line["ignored"], "gone since 2019");
    let asked = site.requests_at("/gone");
    let text = copy.run("audit", &[&url, "--repair"]).exits(0).stdout;
    for words in ["In sync", "1  ignored", &gone, "gone since 2019"] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    assert_eq!(site.requests_at("/gone"), asked, "nothing is put right of it");

    relist(&site, 2, &[resource(&site.uri("/held"), ""), resource(&gone, &hash("new"))]);
    let run = copy.run("audit", &[&url, "--json"]).exits(1);
    assert_eq!((run.count("missing"), run.count("ignored")), (1, 0), "{run}");
}

#[tokio::test]
async fn a_report_tells_what_is_ignored_apart() {
    let site = Site::start().await;
    let (copy, _, gone) = harvested(&site).await;
    copy.run("ignore", &[&gone, "--note", "gone since 2019"]).exits(0);
    let card = copy.run("report", &["--json"]).exits(0).json();
    assert_eq!((&card["problems"], &card["coverage"]["problems"]), (&json!([]), &json!(0)));
    assert_eq!(
        (&card["ignored"][0]["examples"][0]["uri"], &card["coverage"]["ignored"]),
        (&json!(gone), &json!(1))
    );
    let text = copy.run("report", &[]).exits(0).stdout;
    assert!(text.contains("Known problems, about which nothing is to be done"), "{text}");
}

#[tokio::test]
async fn a_bucket_wants_the_owners_word() {
    let copy = Destination::at(std::path::Path::new("s3://bucket/prefix"));
    copy.run("retry", &["--all"]).exits(2).complains(&["s3://bucket/prefix", "fleet"], &["--exclusive"]);
    copy.run("ignore", &["--all", "--note", "x"]).exits(2).complains(&["fleet"], &["--server"]);
}

#[tokio::test]
async fn an_ignored_package_is_not_received_again_until_its_dump_says_something_else_of_it() {
    let site = Site::start().await;
    let bad = b"PK no archive".to_vec();
    let named = package(&site.uri("/1.zip"), &bad, "");
    site.reply("/1.zip", Reply::ok(bad));
    let md = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";
    let url = site.serve("/dump.xml", urlset(md, &[named]));
    let copy = Destination::directory();
    copy.sync(&url).exits(1);
    copy.run("ignore", &["--kind", "document", "--note", "broken for years"]).exits(0);
    let asked = site.requests_at("/1.zip");
    copy.sync(&url).exits(0);
    assert_eq!(site.requests_at("/1.zip"), asked);

    let good = Package::of_resources("2026-01-01T00:00:00Z").holds(&site.uri("/a"), "a").zip();
    site.serve("/dump.xml", urlset(md, &[package(&site.uri("/1.zip"), &good, "")]));
    site.reply("/1.zip", Reply::ok(good));
    let run = copy.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("ignored")), (1, 0), "{run}");
}

#[tokio::test]
async fn problems_with_entries_are_known_since_they_were_first_seen_and_an_ignored_one_stays_so() {
    let site = Site::start().await;
    let held = resource(&site.serve("/held", "held"), "");
    let bad = "<url><lastmod>2026-01-01</lastmod></url>".to_owned();
    let url = site.serve("/list.xml", urlset(LIST, &[held.clone(), bad.clone()]));
    let copy = Destination::directory();
    copy.sync(&url).exits(1);
    let first = copy.run("problems", &["--json"]).exits(0).json();
    copy.sync(&url).exits(1);
    let again = copy.run("problems", &["--json"]).exits(0).json();
    assert_eq!(
        (&again["first_seen"], &again["attempts"]),
        (&first["first_seen"], &json!(2)),
        "the same entry at the same place"
    );
    copy.run("ignore", &["--kind", "entry", "--note", "told them"]).exits(0);
    copy.sync(&url).exits(0).says(&["1  ignored problem"]);
    relist(&site, 2, &[held]);
    let run = copy.sync(&url).exits(0);
    assert_eq!(run.count("ignored"), 0, "it is settled: {run}");
}

#[tokio::test]
async fn evidence_has_what_the_server_said() {
    let site = Site::start().await;
    let busy =
        site.reply("/busy", Reply::status(404).header("content-type", "text/html").header("etag", "\"e\""));
    let other = site.reply("/other", Reply::ok("other").header("etag", "\"o\""));
    site.reply("/sent", Reply::status(302).header("location", site.uri("/other")));
    let declared = hash("declared");
    let entries = [resource(&busy, ""), resource(&site.uri("/sent"), &declared), resource(&other, &declared)];
    let url = site.serve("/list.xml", urlset(LIST, &entries));
    let copy = Destination::directory();
    copy.sync(&url).exits(1);
    let problems = copy.run("problems", &["--json"]).exits(0).json_lines();
    let of = |uri: &str| {
        let found = problems.iter().find(|problem| problem["uri"] == site.uri(uri));
        found.unwrap_or_else(|| panic!("{uri} in {problems:?}"))["evidence"].clone()
    };
    assert_eq!(
        (&of("/busy")["status"], &of("/busy")["headers"]["content-type"]),
        (&json!(404), &json!("text/html"))
    );
    assert_eq!(of("/busy")["headers"]["etag"], "\"e\"");
    assert_eq!(of("/sent")["final_url"], site.uri("/other"));
    let mismatch = of("/other");
    assert_eq!(
        (&mismatch["headers"]["etag"], &mismatch["headers"]["content-length"]),
        (&json!("\"o\""), &json!("5"))
    );
    assert_eq!(mismatch["computed"], format!("sha-256:{}", fixity::Sha256::of(b"other")));
    let text = copy.run("problems", &[&other]).exits(0).stdout;
    assert!(text.contains("    received sha-256:") && text.contains("    etag: \"o\""), "{text}");
}
