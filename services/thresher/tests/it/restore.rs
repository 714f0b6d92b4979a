//! A wrong deletion, undone.

use crate::common::{Destination, source};
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
    copy.run("restore", &["http://example.org/other"]).exits(1).says(&["never stored here"]);
}
