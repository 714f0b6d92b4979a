//! The report card of harvested Sources, as a mail and as JSON.

use crate::common::{Destination, Run, Site, requests_at, resource, source, urlset};
use serde_json::{Value, json};
use simulated_source::{Changes, SourceSpec};
use testkit::scripted::Reply;

#[track_caller]
fn card(copy: &Destination) -> Value {
    copy.run("report", &["--json"]).exits(0).json()
}

/// Name, severity, section number and count of each finding.
#[track_caller]
fn findings(card: &Value) -> Vec<(&str, &str, &str, u64)> {
    let findings = card["findings"].as_array().expect("findings");
    findings
        .iter()
        .map(|finding| {
            (
                finding["finding"].as_str().expect("a name"),
                finding["severity"].as_str().expect("a severity"),
                finding["section"]["number"].as_str().unwrap_or_default(),
                finding["count"].as_u64().expect("a count"),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_source_that_does_everything_right_has_no_findings() {
    let source = source(SourceSpec::default().resources(30).entries_per_list(10)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    source.change(Changes { create: 2, update: 3, delete: 1 });
    copy.sync(&source.url()).exits(0);
    let card = card(&copy);
    assert_eq!(card["findings"], json!([]), "{card:#}");
    assert_eq!(card["quirks"], json!({}));
    assert_eq!(card["coverage"]["held"], 31);
    assert_eq!(card["coverage"]["deleted"], 1);
    assert_eq!(card["coverage"]["listed"], 30);
    assert_eq!(card["fixity"]["digest"], 31);
    assert_eq!(card["looked-at"]["run"]["mode"], "incremental");
    assert_eq!(card["sets"][0]["changes"]["open"], true);

    let text = copy.run("report", &[]).exits(0).stdout;
    assert!(text.contains("No findings"), "{text}");
    assert!(text.contains(&source.url()) && !text.contains(&copy.into), "{text}");
}

#[tokio::test]
async fn an_odd_source_has_its_findings_with_sections_counts_and_places() {
    let site = Site::start().await;
    site.reply("/.well-known/resourcesync", Reply::status(404));
    site.reply("/robots.txt", Reply::status(404));
    site.reply("/gone.txt", Reply::status(404));
    let good = site.serve("/good.txt", "good");
    let lying = site.serve("/lying.txt", "lying");
    let sha256 = format!("hash=\"sha-256:{}\"", "0".repeat(64));
    let entries = [
        resource(&good, "length=\"four\""),
        resource(&lying, &sha256),
        resource(&site.uri("/gone.txt"), ""),
        "  <url><lastmod>2026-01-01</lastmod></url>\n".to_owned(),
    ];
    let list = urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00\"", &entries);
    let list = site.serve("/list.xml", list);
    let link = [resource(&list, "capability=\"resourcelist\"")];
    let caps = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &link));
    let copy = Destination::directory();
    copy.sync(&caps).exits(1);

    let card = card(&copy);
    let expected = [
        ("bad-entry", "must", "7", 1),
        ("digest-mismatch", "must", "7", 1),
        ("no-up-link", "must", "6.2", 1),
        ("unreadable-length", "must", "7", 1),
        ("zone-less-time", "must", "", 1),
        ("no-validators", "should", "8.8", 1),
        ("entry-without-metadata", "hint", "10.1", 2),
        ("http-client-error", "hint", "15.5", 1),
        ("no-change-list", "hint", "12.1", 1),
        ("no-digest", "hint", "7", 1),
        ("no-lastmod", "hint", "7", 1),
    ];
    assert_eq!(findings(&card), expected, "{card:#}");
    let bad = &card["findings"][0]["first-place"];
    assert!(bad.as_str().is_some_and(|place| place.starts_with(&format!("{list}#7:"))), "{bad}");
    assert_eq!(card["quirks"]["zone-less-time"], 1);
    assert_eq!(card["coverage"]["held"], 1);
    assert_eq!(card["fixity"]["nothing"], 1);
    let reasons: Vec<_> = card["problems"].as_array().unwrap().iter().map(|group| &group["reason"]).collect();
    assert_eq!(reasons, ["http-client-error", "digest-mismatch", "malformed"]);
    let missing = &card["problems"][0]["examples"][0];
    assert_eq!(missing["uri"], site.uri("/gone.txt"));
    assert!(missing["message"].as_str().unwrap().contains("404"), "{missing}");

    let text = copy.run("report", &[]).exits(0).stdout;
    assert!(text.contains("5 break a MUST, 1 goes against a SHOULD, 5 are hints"), "{text}");
    assert!(text.contains("ResourceSync 1.1, 6.2 Navigation"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains(&copy.into), "{text}");
}

#[tokio::test]
async fn a_report_asks_the_source_for_nothing() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    source.reset_requests();
    let before = card(&copy);
    assert_eq!(requests_at(&source, &source.well_known()), 0);
    source.shutdown();
    assert_eq!(card(&copy), before);
}

#[tokio::test]
async fn of_several_sources_one_has_to_be_named() {
    let (one, two) =
        (source(SourceSpec::default().resources(1)).await, source(SourceSpec::default().resources(2)).await);
    let copy = Destination::directory();
    copy.sync_with(&one.url(), &["--view", "none"]).exits(0);
    copy.sync_with(&two.url(), &["--view", "none"]).exits(0);
    copy.run("report", &[]).exits(2).complains(&["2 Sources"], &["name one"]);
    copy.run("report", &["http://other.example/"]).exits(2).complains(&["other.example"], &["name one"]);
    let named = |source: &str| -> Run { copy.run("report", &[source, "--json"]).exits(0) };
    let by_url = named(&two.url()).json();
    assert_eq!(by_url["coverage"]["held"], 2);
    let id = by_url["source"]["id"].as_str().unwrap();
    assert_eq!(named(id).json(), by_url);
}

#[tokio::test]
async fn where_nothing_is_held_there_is_nothing_to_report() {
    Destination::directory()
        .run("report", &[])
        .exits(2)
        .complains(&["is not a harvest directory"], &["--into"]);
}
