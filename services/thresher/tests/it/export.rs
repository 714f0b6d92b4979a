//! `thresher export`, with the real binary.

use std::io::Read as _;

use crate::common::{Destination, Site, resource, urlset};

/// A Source, and a copy of it.
struct Case {
    site: Site,
    copy: Destination,
}

async fn held() -> Case {
    let case = Case { site: Site::start().await, copy: Destination::directory() };
    let uris: Vec<String> = (0..5).map(|n| case.site.serve(&format!("/r{n}"), format!("body {n}"))).collect();
    let entries: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
    let list = urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries);
    let list = case.site.serve("/list.xml", list);
    case.copy.sync(&list).exits(0);
    case
}

#[tokio::test]
async fn a_tar_on_standard_output_holds_what_is_held_and_nothing_else_is_said_there() {
    let case = held().await;
    let run = case.copy.run("export", &["-", "--as", "tar"]).exits(0);
    let mut tar = tar::Archive::new(run.stdout.as_bytes());
    let mut bodies: Vec<String> = Vec::new();
    for entry in tar.entries().unwrap() {
        let mut body = String::new();
        entry.unwrap().read_to_string(&mut body).unwrap();
        bodies.push(body);
    }
    assert_eq!(bodies, ["body 0", "body 1", "body 2", "body 3", "body 4"]);
    assert!(run.stderr.contains("5 resources"), "{run}");
}

#[tokio::test]
async fn lines_are_written_for_what_is_asked_for_and_a_wrong_filter_is_explained() {
    let case = held().await;
    let prefix = case.site.uri("/r3");
    let run = case.copy.run("export", &["-", "--as", "jsonl", "--prefix", &prefix]).exits(0);
    let lines = run.json_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((lines[0]["uri"].as_str(), lines[0]["length"].as_u64()), (Some(prefix.as_str()), Some(6)));
    let none = case.copy.run("export", &["-", "--as", "jsonl", "--since", "2999-01-01"]).exits(0);
    assert!(none.json_lines().is_empty());
    let wrong = case.copy.run("export", &["-", "--as", "jsonl", "--since", "yesterday"]).exits(2);
    assert!(wrong.stderr.contains("give a day such as"), "{wrong}");
    let parquet = case.copy.run("export", &["-", "--as", "parquet"]).exits(2);
    assert!(parquet.stderr.contains("give a directory"), "{parquet}");
}
