//! `thresher explain`: the complete history of a resource, in order.

use crate::common::{Destination, Inside, Site, resource, urlset};
use jiff::Timestamp;
use serde_json::{Value, json};
use testkit::scripted::Reply;

fn hash(bytes: &str) -> String {
    format!("hash=\"sha-256:{}\" length=\"{}\"", fixity::Sha256::of(bytes.as_bytes()), bytes.len())
}

fn list(site: &Site, day: u32, entries: &[String]) -> String {
    let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
    site.serve("/list.xml", urlset(&md, entries))
}

/// Checks that a history contains all of these, one after the other.
#[track_caller]
fn tells(story: &str, parts: &[&str]) {
    let mut rest = story;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is not told, or too early: {story}")
        };
        rest = after;
    }
}

fn sha(bytes: &str) -> String {
    fixity::Sha256::of(bytes.as_bytes()).to_string()
}

/// The history as text: events are in order of time, and fill a page at most.
#[track_caller]
fn read(copy: &Destination, uri: &str) -> String {
    let story = copy.explain(uri);
    let happened = story.lines().skip_while(|line| *line != "History").take_while(|line| !line.is_empty());
    let times: Vec<Timestamp> =
        happened.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(!times.is_empty() && times.is_sorted(), "{times:?} in {story}");
    assert!(story.lines().count() <= 40, "nobody reads that in a minute: {story}");
    story
}

/// The events of the history as JSON, in order.
#[track_caller]
fn events(story: &Value) -> Vec<&str> {
    let changes = story["events"].as_array().expect("changes");
    assert!(changes.is_sorted_by_key(|change| change["at"].as_str().map(str::to_owned)), "{story:#}");
    changes.iter().map(|change| change["event"].as_str().expect("an event")).collect()
}

#[tokio::test]
async fn of_a_verified_resource_and_its_versions() {
    let site = Site::start().await;
    let uri = site.serve("/a", "one");
    let url = list(&site, 1, &[resource(&uri, &hash("one"))]);
    let copy = Destination::directory();
    copy.sync(&url).exits(0);
    site.serve("/a", "two");
    list(&site, 2, &[resource(&uri, &hash("two"))]);
    copy.sync(&url).exits(0);
    let one = sha("one");
    let two = sha("two");
    let story = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    assert_eq!(events(&story), ["created", "updated"]);
    assert_eq!(story["record"]["bitstream"]["assurance"], "digest");
    tells(
        &read(&copy, &uri),
        &[
            "History",
            &format!("stored and verified, sha-256 {one}"),
            &format!("listed as of 2026-01-01T00:00:00Z by {url}, because it was not stored; run "),
            &format!("new version stored and verified, sha-256 {two} (before: {one})"),
            &format!(
                "listed as of 2026-01-02T00:00:00Z by {url}, because the declared digest is not the stored one; run "
            ),
            "Stored",
            "its digest matches the declared one",
            "stored at ",
            &format!("computed sha-256:{two}"),
            &format!("declared sha-256:{two}"),
        ],
    );
}

#[tokio::test]
async fn of_a_mismatch_that_a_retry_healed_and_of_a_problem_that_the_next_run_healed() {
    let site = Site::start().await;
    let uri = site.serve("/a", "good");
    site.next("/a", Reply::ok("BAD!"));
    let url = list(&site, 1, &[resource(&uri, &hash("good"))]);
    let copy = Destination::directory();
    copy.sync(&url).exits(0);
    let good = sha("good");
    let bad = sha("BAD!");
    let failed =
        format!("an attempt failed (digest-mismatch): declared sha-256:{good}, received sha-256:{bad}");
    tells(
        &read(&copy, &uri),
        &["History", &failed, &format!("stored and verified, sha-256 {good}"), "Stored"],
    );
    let story = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    assert_eq!(story["events"][0]["account"]["tried"][0]["reason"], "digest-mismatch");
    assert_eq!(story["events"][0]["account"]["why"], "new");

    // The next version fails in one run. The following run stores it.
    list(&site, 2, &[resource(&uri, &hash("newer"))]);
    site.reply("/a", Reply::status(404));
    copy.sync(&url).exits(1);
    site.serve("/a", "newer");
    copy.sync(&url).exits(0);
    let newer = sha("newer");
    tells(
        &copy.explain(&uri),
        &[
            &failed,
            "problem (http-client-error)",
            "the declared digest is not the stored one",
            &format!("new version stored and verified, sha-256 {newer}"),
            "Stored",
        ],
    );
}

#[tokio::test]
async fn of_doubts_that_what_is_held_has_settled() {
    let site = Site::start().await;
    let uri = site.serve("/a", "good");
    let url = list(&site, 1, &[resource(&uri, "")]);
    let copy = Destination::directory();
    copy.sync(&url).exits(0);
    site.reply("/a", Reply::status(404));
    list(&site, 2, &[resource(&uri, "")]);
    copy.sync(&url).exits(1);
    site.serve("/a", "good");
    copy.sync(&url).exits(0);
    let confirmed = format!("stored bytes confirmed, sha-256 {}", sha("good"));
    tells(&copy.explain(&uri), &["stored and verified", "problem (http-client-error)", &confirmed, "Stored"]);
}

#[tokio::test]
async fn of_a_deletion_that_the_guard_holds_back() {
    let site = Site::start().await;
    let uris: Vec<String> = (0..4).map(|n| site.serve(&format!("/{n}"), n.to_string())).collect();
    let entries: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
    let url = list(&site, 1, &entries);
    let copy = Destination::directory();
    copy.sync(&url).exits(0);
    list(&site, 2, &entries[..1]);
    copy.sync(&url).exits(1);
    let story = copy.explain(&uris[3]);
    tells(&story, &["Stored", "absent from ", "kept until a later list confirms it"]);
    list(&site, 3, &entries[..1]);
    copy.sync(&url).exits(3);
    tells(
        &read(&copy, &uris[3]),
        &[
            "stored and verified",
            "Stored",
            "absent from ",
            "the deletion guard keeps it",
            &format!("Document problem: {url} (guard)"),
            "omits 3 of 4 stored resources",
            "--max-deletes 100%",
        ],
    );
    let story = copy.run("explain", &[&uris[3], "--json"]).exits(0).json();
    assert_eq!(story["document_problems"][&url]["reason"], "guard");
    assert_eq!(story["record"]["absent"]["document"], url);
    let first = story["document_problems"][&url]["first_seen"].clone();
    // It stays the same problem when the deletion guard stops the next list too.
    list(&site, 4, &entries[..1]);
    copy.sync(&url).exits(3);
    let again = copy.run("explain", &[&uris[3], "--json"]).exits(0).json()["document_problems"][&url].clone();
    assert_eq!((&again["first_seen"], &again["attempts"]), (&first, &json!(2)));
    copy.sync_with(&url, &["--max-deletes", "100%"]).exits(0);
    tells(&copy.explain(&uris[3]), &["deleted: absent from the Source's lists", "absent from two lists"]);
}

#[tokio::test]
async fn of_an_object_that_a_scrub_found_damaged_and_healed() {
    let site = Site::start().await;
    // Too large for a pack.
    let body = "whole ".repeat(100_000);
    let uri = site.serve("/a", body.clone());
    let url = list(&site, 1, &[resource(&uri, &hash(&body))]);
    let copy = Destination::directory();
    copy.sync(&url).exits(0);
    let inside = Inside::of(&copy, &url).await;
    inside.flip(&uri).await;
    inside.close().await;
    copy.run("scrub", &[]).exits(1);
    let noted = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    assert_eq!(events(&noted), ["created", "problem"]);
    assert_eq!(noted["problem"]["evidence"]["damage"]["expected_sha256"], sha(&body));
    let damaged = ["stored and verified", "problem (damaged-bytes)", "Stored", "Problem: damaged-bytes"];
    tells(&read(&copy, &uri), &damaged);

    copy.run("scrub", &["--repair"]).exits(0);
    let sha256 = sha(&body);
    tells(
        &read(&copy, &uri),
        &[
            "History",
            &format!("stored and verified, sha-256 {sha256}"),
            &format!("problem (damaged-bytes): bitstreams/sha256/{}/", &sha256[..2]),
            &format!("expected {} bytes with sha-256 {sha256}, found {} bytes", body.len(), body.len()),
            "It was quarantined as damaged/",
            &format!("refetched and verified: the stored bytes were damaged, sha-256 {sha256}"),
            "the stored bytes were doubtful",
            "Stored",
            "its digest matches the declared one",
        ],
    );
    let story = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    assert_eq!(events(&story), ["created", "problem", "healed"]);
    assert_eq!((&story["problem"], &story["events"][2]["account"]["why"]), (&json!(null), &json!("mend")));
}
