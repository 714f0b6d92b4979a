//! Published documents under the eyes of our own tools.

use serde_json::json;
use simulated_source::{Changes, SourceSpec};

use super::{Files, Served};
use crate::common::{Destination, Run, source, thresher};

#[tokio::test]
async fn every_document_is_strictly_right_and_the_report_has_no_finding() {
    let source = source(SourceSpec::default().resources(30)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let served = Served::start(&copy);
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    let card = reader.run("report", &["--json"]).exits(0).json();
    assert_eq!(card["findings"], json!([]), "{card:#}");
    assert_eq!((&card["fixity"]["digest"], &card["coverage"]["held"]), (&json!(30), &json!(30)));

    // The same documents as files, and those of a second run.
    let files = Files::start();
    files.publish(&copy).exits(0);
    source.change(Changes { create: 1, update: 2, delete: 1 });
    copy.sync(&source.well_known()).exits(0);
    files.publish(&copy).exits(0);
    let public = files.public();
    let lists = std::fs::read_dir(public.join("changelist")).unwrap().map(|entry| entry.unwrap().path());
    let documents = [".well-known/resourcesync", "capabilitylist.xml", "resourcelist.xml", "changelist.xml"];
    let documents: Vec<_> = documents.iter().map(|name| public.join(name)).chain(lists).collect();
    assert_eq!(documents.len(), 5);
    for document in documents {
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(&document)).exits(0);
        let last = run.json_lines().pop().unwrap();
        assert_eq!(last["quirks"], json!({}), "{}: {run}", document.display());
    }
}

#[tokio::test]
async fn what_cannot_be_published_is_said_in_one_line() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let files = Files::start();
    let to = files.public().display().to_string();
    let publish = |options: &[&str]| copy.run("publish", options);
    publish(&["--base", "ftp://e.org/", "--to", &to])
        .exits(2)
        .complains(&["ftp://e.org/"], &["pass the url"]);
    publish(&["--base", &files.base]).exits(2);
    publish(&["--base", &files.base, "--to", &to, "--listen", "127.0.0.1:0"]).exits(2);
    let listen = ["--base", &files.base, "--listen", "127.0.0.1:0", "--hub"];
    for hub in ["ftp://hub.example/", "https://user:secret@hub.example/"] {
        let run = publish(&[&listen[..], &[hub]].concat()).exits(2);
        let run = run.complains(&["hub"], &["pass"]);
        assert!(!run.stderr.contains("secret"), "{run}");
    }
    std::fs::write(files.public().join("mine.txt"), "mine").unwrap();
    publish(&["--base", &files.base, "--to", &to])
        .exits(2)
        .complains(&["public", "not empty"], &["pass an empty"]);
    std::fs::remove_file(files.public().join("mine.txt")).unwrap();
    files.publish(&copy).exits(0);
    let other = publish(&["--base", "http://other.example/", "--to", &to]).exits(2);
    other.complains(&["public", &files.base], &["pass another place"]);
    let below =
        copy.run("publish", &["--base", "http://other.example/below", "--to", &format!("{to}-2")]).exits(0);
    below.says(&[
        "hint: redirect /.well-known/resourcesync",
        "http://other.example/below/.well-known/resourcesync",
    ]);
}
