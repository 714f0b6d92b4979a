//! Wrong usage by the operator.

use std::path::Path;

use tempfile::TempDir;
use testkit::scripted::Reply;

use crate::bad_input::{OVER_HTTP, small};
use crate::common::{Destination, Run, Site, in_step, source, thresher};

#[test]
fn a_renamed_option_is_refused_with_its_new_name() {
    let options = [
        (["sync", "http://h/", "--history"], "--keep-versions"),
        (["gc", "--keep-for", "1h"], "--retention"),
        (["scrub", "--live", "3"], "--compare-live"),
    ];
    for (arguments, name) in options {
        Run::of(thresher().args(arguments)).exits(2).complains(&[name], &["is named"]);
    }
}

#[test]
fn repairs_of_a_run_that_is_no_audit_are_refused_before_a_gateway_is_asked() {
    for mode in [&[][..], &["--mode", "baseline"]] {
        let run = Run::of(thresher().args(["run", "submit", "example", "--repair"]).args(mode)).exits(2);
        run.complains(&["--repair"], &["--mode audit"]);
    }
}

#[tokio::test]
async fn wrong_usage_is_told_and_does_nothing() {
    let source = source(small(3)).await;
    let url = source.well_known();
    let copy = Destination::directory();
    let usage: [&[&str]; 8] = [
        &[],
        &["harvest"],
        &["sync"],
        &["sync", "not a url"],
        &["sync", &url, "--no-such-option"],
        &["sync", &url, "--include", "("],
        &["sync", &url, "--concurrency", "0"],
        &["sync", &url, "--mode", "sideways"],
    ];
    for arguments in usage {
        let mut command = thresher();
        let run = Run::of(command.args(arguments).env("HOME", "/nonexistent")).exits(2);
        assert!(!run.stderr.is_empty(), "{run}");
    }
    let audit = copy.sync_with(&url, &["--mode", "audit"]).exits(2);
    assert!(audit.stderr.contains("is not a harvest directory"), "{audit}");
    copy.sync("ftp://example.org/x").exits(2).complains(&["ftp://example.org/x", "http"], OVER_HTTP);
    copy.sync_with(&url, &["--view", "files", "--into", "s3://bucket/x"]).exits(2);
    assert_eq!(source.requests().documents, 0, "nobody was asked");
    assert!(!Path::new(&copy.into).join(".thresher").exists(), "nothing was begun");
}

#[test]
fn a_harvest_that_is_not_there_is_named() {
    let folder = TempDir::new().unwrap();
    let copy = Destination::at(&folder.path().join("nothing"));
    for (command, words) in
        [("ls", [].as_slice()), ("cat", &["http://example.org/1"]), ("explain", &["http://example.org/1"])]
    {
        copy.run(command, words).exits(2).complains(&[&copy.into], &["sync", "--into"]);
    }
    assert!(!Path::new(&copy.into).exists(), "reading creates nothing");
}

#[tokio::test]
async fn a_file_where_the_destination_should_be_is_left_alone() {
    let source = source(small(3)).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let copy = Destination::at(&file);
    let run = copy.sync(&source.url());
    assert!(matches!(run.exit, Some(2 | 3)), "{run}");
    assert!(run.complaint().contains(&copy.into), "{run}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[tokio::test]
async fn another_source_does_not_write_over_what_a_destination_holds() {
    let (first, copy) = in_step(small(20)).await;
    let second = source(small(20).seed(2)).await;
    copy.sync(&second.url()).exits(2).complains(&[&copy.into, &first.url()], &["--into"]);
    copy.mirrors(&first);
}

#[tokio::test]
async fn a_mistyped_url_does_not_claim_the_destination() {
    let source = source(small(5)).await;
    let copy = Destination::directory();
    let site = Site::start().await;
    site.reply("/.well-known/resourcesync", Reply::status(404));
    copy.sync(&site.reply("/typo", Reply::status(404))).exits(3);
    // Nothing is stored yet, so nothing can mix.
    copy.sync(&source.url()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_damaged_or_lost_file_of_the_view_never_becomes_what_cat_gives() {
    let (source, copy) = in_step(small(20)).await;
    let uri = source.resource_uri(2);
    let name = copy.view().into_keys().nth(2).unwrap();
    std::fs::write(Path::new(&copy.into).join(&name), "scribbled over").unwrap();
    assert_eq!(Some(copy.cat(&uri)), source.body(&uri));
}
