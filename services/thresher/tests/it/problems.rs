//! `thresher problems`: open problems, filtered and grouped.

use crate::common::{Destination, Site, resource, urlset};
use serde_json::{Value, json};
use testkit::scripted::Reply;

const AT: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

/// A harvest with a stored resource, one that is gone, one whose digest differs, and an entry without a URI.
async fn harvested(site: &Site) -> Destination {
    let hash = fixity::Sha256::of(b"declared");
    let held = site.serve("/held", "held");
    let other = site.serve("/other", "other");
    let gone = site.reply("/gone", Reply::status(404));
    let entries = [
        resource(&held, ""),
        resource(&other, &format!("hash=\"sha-256:{hash}\"")),
        resource(&gone, ""),
        "<url><lastmod>2026-01-01</lastmod></url>".to_owned(),
    ];
    site.serve("/list.xml", urlset(AT, &entries));
    let copy = Destination::directory();
    copy.sync(&site.uri("/list.xml")).exits(1);
    copy
}

#[track_caller]
fn listed(copy: &Destination, options: &[&str]) -> Vec<Value> {
    copy.run("problems", &[options, &["--json"]].concat()).exits(0).json_lines()
}

#[tokio::test]
async fn each_problem_is_told_with_its_reason_and_evidence_and_what_is_held_is_none() {
    let site = Site::start().await;
    let copy = harvested(&site).await;
    let problems = listed(&copy, &[]);
    let reasons: Vec<_> = problems.iter().map(|problem| (&problem["kind"], &problem["reason"])).collect();
    let expected = [
        (&json!("entry"), &json!("malformed")),
        (&json!("resource"), &json!("http-client-error")),
        (&json!("resource"), &json!("digest-mismatch")),
    ];
    assert_eq!(reasons, expected);
    assert_eq!(problems[1]["uri"], site.uri("/gone"));
    assert_eq!(problems[1]["evidence"]["status"], 404);
    assert_eq!(problems[2]["evidence"]["expected"], format!("sha-256:{}", fixity::Sha256::of(b"declared")));
    assert_eq!((&problems[1]["attempts"], &problems[2]["attempts"]), (&json!(1), &json!(2)));

    let text = copy.run("problems", &[]).exits(0).stdout;
    assert!(
        text.contains(&format!("resource {}\n    http-client-error, 1 attempt, ", site.uri("/gone"))),
        "{text}"
    );
}

#[tokio::test]
async fn filters_narrow_down_and_groups_count() {
    let site = Site::start().await;
    let copy = harvested(&site).await;
    let count = |options: &[&str]| listed(&copy, options).len();
    assert_eq!(count(&["--reason", "digest-mismatch"]), 1);
    assert_eq!(count(&["--reason", "digest-mismatch", "--reason", "malformed"]), 2);
    assert_eq!(count(&["--kind", "resource"]), 2);
    assert_eq!(count(&["--kind", "entry", "--reason", "digest-mismatch"]), 0);
    assert_eq!(count(&[&site.uri("/go")]), 1);

    let groups = listed(&copy, &["--group", "--kind", "resource"]);
    let counted: Vec<_> = groups.iter().map(|group| (&group["reason"], &group["count"])).collect();
    assert_eq!(counted, [(&json!("http-client-error"), &json!(1)), (&json!("digest-mismatch"), &json!(1))]);
    assert_eq!(groups[0]["example"], site.uri("/gone"));
    let table = copy.run("problems", &["--group"]).exits(0).stdout;
    assert!(table.contains("http-client-error") && table.contains("malformed"), "{table}");
}

#[tokio::test]
async fn a_reason_that_does_not_exist_is_refused_with_those_that_do() {
    let copy = Destination::directory();
    copy.run("problems", &["--reason", "bored"]).exits(2).says(&["bored", "digest-mismatch"]);
}
