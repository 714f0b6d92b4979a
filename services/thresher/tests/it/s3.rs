//! The same harvest into object storage.

use crate::common::{Destination, source, truth};
use serde_json::Value;
use simulated_source::{ChangeKind, Changes, Size, SourceSpec};
use testkit::servers::S3Fixture;

/// The output of `ls --json`, without values that rightly differ between two places.
#[track_caller]
fn listed(copy: &Destination) -> Vec<Value> {
    let mut lines = copy.listed();
    for line in &mut lines {
        let line = line.as_object_mut().expect("one object a line");
        let location = line.remove("location");
        let stored_at = line.remove("stored_at");
        assert!(location.is_some() && stored_at.is_some(), "every line has both: {line:?}");
    }
    lines
}

#[tokio::test]
async fn a_bucket_holds_what_a_directory_holds_and_follows_the_same_changes() {
    // Some bodies are too large for a pack.
    let source = source(SourceSpec::default().resources(60).size(Size::Range(0, 400_000))).await;
    let bucket = Destination::s3(&S3Fixture::get().await);
    let directory = Destination::directory();
    let in_bucket = bucket.sync(&source.well_known()).exits(0);
    let in_directory = directory.sync(&source.well_known()).exits(0);
    for name in ["listed", "stored", "bytes", "requests"] {
        assert_eq!(in_bucket.count(name), in_directory.count(name), "{name}");
    }
    assert_eq!(bucket.present(), truth(&source));
    assert_eq!(listed(&bucket), listed(&directory));
    let largest = source.expected().max_by_key(|now| now.length).unwrap().uri;
    for uri in [source.resource_uri(0), source.resource_uri(59), largest] {
        assert_eq!(Some(bucket.cat(&uri)), source.body(&uri), "cat {uri}");
    }

    let changes = source.change(Changes { create: 4, update: 8, delete: 3 });
    source.reset_requests();
    let in_bucket = bucket.sync(&source.well_known()).exits(0);
    assert_eq!(in_bucket.json()["mode"], "incremental", "{in_bucket}");
    assert_eq!((in_bucket.count("stored"), in_bucket.count("deleted")), (12, 3), "{in_bucket}");
    assert_eq!(source.requests().resources, 12);
    directory.sync(&source.well_known()).exits(0);
    assert_eq!(listed(&bucket), listed(&directory));
    assert_eq!(bucket.present(), truth(&source));
    let gone = changes.iter().find(|change| change.kind == ChangeKind::Deleted).unwrap();
    bucket.run("cat", &[&source.resource_uri(gone.index)]).exits(1);
    assert!(bucket.explain(&source.resource_uri(gone.index)).to_lowercase().contains("deleted"));

    source.reset_requests();
    let again = bucket.sync(&source.well_known()).exits(0);
    assert_eq!((source.requests().resources, again.count("stored")), (0, 0), "{again}");

    let gone = source.resource_uri(gone.index);
    bucket.run("restore", &[&gone, "--exclusive"]).exits(0);
    assert_eq!(bucket.state(&gone).as_deref(), Some("present"));
}

#[tokio::test]
async fn what_is_wrong_with_a_bucket_is_said_in_one_line() {
    let source = source(SourceSpec::default().resources(3)).await;
    let right = S3Fixture::get().await;
    let wrong_key = S3Fixture { secret_key: "guessed".to_owned(), ..right.clone() };
    let copy = Destination::s3(&wrong_key);
    copy.sync(&source.url()).exits(3).complains(&[&wrong_key.bucket], &["key", "aws_"]);

    let empty = Destination::s3(&right);
    empty.run("ls", &["--json"]).exits(2).complains(&[&empty.into], &["sync", "create"]);
    assert_eq!(source.requests().resources, 0);
}
