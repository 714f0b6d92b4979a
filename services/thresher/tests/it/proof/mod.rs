//! The stored content is the Source's, and equals what was verified. `scrub` or `audit` names every kind of damage, and
//! `--repair` repairs it.

mod case;
mod damage;

use std::collections::BTreeSet;

use crate::common::{Destination, Run};
use case::Case;
use damage::Damaged;
use serde_json::Value;
use testkit::servers::S3Fixture;

/// The last parts of the URIs in the lines of `audit --list`.
fn named(lines: &[Value]) -> BTreeSet<&str> {
    let uris = lines.iter().filter_map(|line| line["uri"].as_str());
    uris.map(|uri| uri.rsplit('/').next().unwrap_or_default()).collect()
}

/// The last parts of the URIs in the findings of a scrub.
fn said(run: &Run) -> BTreeSet<&str> {
    let uris = run.stderr.lines().filter_map(|line| line.split_once(": ")).map(|(uri, _)| uri);
    uris.map(|uri| uri.rsplit('/').next().unwrap_or_default()).collect()
}

/// Damages the store, then checks that the damage is found and repaired. `owner`: options with which a scrub may write.
async fn everything_is_named_and_healed(copy: Destination, owner: &[&str]) {
    let case = Case::harvested(copy).await;
    let scrub = |words: &[&str]| case.copy.run("scrub", &[words, owner].concat());
    let audit = |words: &[&str]| case.copy.run("audit", &[&[case.url.as_str()], words].concat());
    scrub(&[]).exits(0);
    audit(&[]).exits(0);

    let damaged = Damaged::inflict(&case).await;
    let asked = case.asked();
    let found = audit(&["--json", "--list"]).exits(1);
    assert_eq!(named(&found.json_lines()), damaged.seen_by_audit(), "{found}");
    assert_eq!(found.count("mismatched"), damaged.seen_by_audit().len() as u64, "{found}");
    let found = scrub(&["--json"]).exits(1);
    assert_eq!(said(&found), damaged.seen_by_scrub(), "{found}");
    assert_eq!((found.count("missing"), found.count("quarantined")), (1, 1), "{found}");
    // Checks request no resource, and damaged bytes are never served.
    assert_eq!(case.asked(), asked);
    for name in damaged.seen_by_scrub() {
        case.copy.run("cat", &[&case.uri(name)]).exits(3);
    }

    let healed = scrub(&["--repair", "--json"]).exits(0);
    assert_eq!(healed.count("repaired"), damaged.seen_by_scrub().len() as u64, "{healed}");
    // One record agrees with itself and with the store. Only the Source can show that it is wrong.
    let found = audit(&["--json", "--list"]).exits(1);
    assert_eq!(named(&found.json_lines()), damaged.seen_by_audit_alone(), "{found}");
    let healed = audit(&["--repair", "--json"]).exits(0);
    assert_eq!(healed.count("repaired"), damaged.seen_by_audit_alone().len() as u64, "{healed}");

    scrub(&[]).exits(0);
    audit(&[]).exits(0);
    assert_eq!(case.copy.run("problems", &["--json"]).exits(0).stdout, "");
    case.holds_what_the_source_has();
    damaged.left_as_it_was(&case).await;
}

#[tokio::test]
async fn in_a_directory_every_damage_is_named_and_healed_and_a_second_look_is_clean() {
    everything_is_named_and_healed(Destination::directory(), &[]).await;
}

#[tokio::test]
async fn in_a_bucket_every_damage_is_named_and_healed_and_a_second_look_is_clean() {
    everything_is_named_and_healed(Destination::s3(&S3Fixture::get().await), &["--exclusive"]).await;
}

#[tokio::test]
async fn an_audit_alone_heals_every_record_that_was_edited() {
    let case = Case::harvested(Destination::directory()).await;
    let damaged = Damaged::edit_records(&case).await;
    let words = [&case.url, "--repair", "--json"];
    let healed = case.copy.run("audit", &words).exits(0);
    assert_eq!(healed.count("repaired"), damaged.seen_by_audit().len() as u64, "{healed}");
    case.copy.run("audit", &[&case.url]).exits(0);
    // A shifted location is no difference to the Source's declaration: reading the bytes shows it.
    let rest: BTreeSet<&str> =
        damaged.seen_by_scrub().difference(&damaged.seen_by_audit()).copied().collect();
    assert!(!rest.is_empty());
    let found = case.copy.run("scrub", &["--repair", "--json"]).exits(0);
    assert_eq!(said(&found), rest, "{found}");
    case.copy.run("scrub", &[]).exits(0);
    case.holds_what_the_source_has();
}
