//! A wrong deletion, undone.

use std::path::Path;

use crate::common::{Destination, source};
use model::SourceId;
use simulated_source::{ChangeKind, SourceSpec};

#[tokio::test]
async fn a_deleted_resource_is_held_again_and_stays_so() {
    let source = source(SourceSpec::default().resources(5)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    let uri = source.resource_uri(2);
    let body = source.body(&uri).expect("the Source has it");
    source.change_one(2, ChangeKind::Deleted);
    copy.sync(&source.url()).exits(0);
    copy.run("cat", &[&uri]).exits(1);

    copy.run("restore", &[&uri]).exits(0);
    assert_eq!(copy.cat(&uri), body);
    assert_eq!(copy.present().len(), 5);
    assert_eq!(copy.file(&uri), Some(body), "the view has it again");
    assert!(copy.explain(&uri).contains("restored by the operator"));

    // The Change List still contains the deletion, and another change causes it to be reread.
    source.change_one(3, ChangeKind::Updated);
    copy.sync(&source.url()).exits(0);
    assert_eq!(copy.present().len(), 5);
}

#[tokio::test]
async fn what_was_never_deleted_or_never_held_is_told_apart() {
    let source = source(SourceSpec::default().resources(2)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    let run = copy.run("restore", &[&source.resource_uri(0)]).exits(0);
    assert!(run.stdout.contains("was not deleted"), "{run}");
    copy.run("restore", &["http://example.org/other"]).exits(1).says(&["never stored here", "thresher ls"]);
}

/// The files in which the catalog of a Source says who writes it.
fn manifests(copy: &Destination, url: &str) -> Vec<std::ffi::OsString> {
    let source = SourceId::of_entry(&url.parse().unwrap());
    let folder = Path::new(&copy.into).join(format!(".thresher/catalogs/{source}/manifest"));
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn catalogs_without_the_resource_are_not_opened_for_writing() {
    let one = source(SourceSpec::default().resources(3)).await;
    let two = source(SourceSpec::default().resources(3).seed(2)).await;
    let copy = Destination::directory();
    for source in [&one, &two] {
        copy.sync_with(&source.url(), &["--view", "none"]).exits(0);
    }
    one.change_one(1, ChangeKind::Deleted);
    copy.sync_with(&one.url(), &["--view", "none"]).exits(0);
    let uri = one.resource_uri(1);

    let before = [manifests(&copy, &one.url()), manifests(&copy, &two.url())];
    copy.run("restore", &[&uri, "--source", &two.url()]).exits(1).says(&["never stored here"]);
    assert_eq!([manifests(&copy, &one.url()), manifests(&copy, &two.url())], before);
    copy.run("restore", &[&uri]).exits(0);
    assert_eq!(copy.state(&uri).as_deref(), Some("present"));
    assert_ne!(manifests(&copy, &one.url()), before[0], "its owner would notice");
    assert_eq!(manifests(&copy, &two.url()), before[1]);
}

#[test]
fn in_a_bucket_the_owners_word_is_needed() {
    let copy = Destination::at(Path::new("s3://bucket/prefix"));
    let run = copy.run("restore", &["http://example.org/a"]).exits(2);
    run.complains(&["s3://bucket/prefix", "fleet"], &["--exclusive"]);
}
