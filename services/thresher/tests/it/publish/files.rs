//! A directory of files as a Source.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use fixity::Sha256;
use resourcesync::{Item, Options, Reader};
use serde_json::json;
use tempfile::TempDir;
use testkit::servers::Venv;
use testkit::waiting::{found, until};

use super::peers::resync;
use super::{Files, Served};
use crate::common::{Destination, Run, thresher};
use crate::metrics::get;

/// A directory with this many files, and one name that needs escaping.
fn directory(files: usize) -> TempDir {
    let folder = TempDir::with_prefix("files-").unwrap();
    for number in 0..files {
        put(&folder, &format!("part{}/{number}.txt", number % 3), &format!("body {number}"));
    }
    put(&folder, "so & so/Ä 100%.txt", "odd");
    folder
}

fn put(folder: &TempDir, path: &str, body: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, body).unwrap();
}

/// The digests of all files below a directory.
fn there(folder: &Path) -> BTreeSet<String> {
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            there.extend(self::there(&path));
        } else {
            there.insert(Sha256::of(&fs::read(&path).unwrap()).to_string());
        }
    }
    there
}

fn held(copy: &Destination) -> BTreeSet<String> {
    copy.present().into_values().map(|(_, sha256)| sha256).collect()
}

#[tokio::test]
async fn files_are_harvested_through_changes_and_deletions_and_each_document_is_strictly_right() {
    let folder = directory(20);
    let files = Files::start();
    let run = files.publish_files(folder.path(), &[]).exits(0);
    assert_eq!((run.count("resources"), run.count("files")), (21, 21), "{run}");
    let copy = Destination::directory();
    copy.sync(&files.base).exits(0);
    assert_eq!(held(&copy), there(folder.path()));

    for round in 0..3 {
        put(&folder, "part0/0.txt", &format!("round {round}"));
        put(&folder, &format!("new/{round}.txt"), &format!("new in {round}"));
        fs::remove_file(folder.path().join(format!("part1/{}.txt", 1 + 3 * round))).unwrap();
        let run = files.publish_files(folder.path(), &[]).exits(0);
        assert_eq!((run.count("changes"), run.count("files")), (3, 2), "{run}");
        let run = copy.sync(&files.base).exits(0);
        assert_eq!(run.json()["mode"], "incremental", "{run}");
        assert_eq!((run.count("stored"), run.count("deleted"), run.count("gaps")), (2, 1, 0), "{run}");
        assert_eq!(held(&copy), there(folder.path()));
    }
    let public = files.public();
    let lists = fs::read_dir(public.join("changelist")).unwrap().map(|entry| entry.unwrap().path());
    let documents = [".well-known/resourcesync", "capabilitylist.xml", "resourcelist.xml", "changelist.xml"];
    for document in documents.iter().map(|name| public.join(name)).chain(lists) {
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(&document)).exits(0);
        let last = run.json_lines().pop().unwrap();
        assert_eq!(last["quirks"], json!({}), "{}: {run}", document.display());
    }
}

#[test]
fn a_new_resource_list_is_made_when_enough_has_changed_and_the_pause_is_over() {
    // With fewer files, each change makes a new list.
    let folder = directory(10_020);
    let files = Files::start();
    let list = || fs::read(files.public().join("resourcelist.xml")).unwrap();
    files.publish_files(folder.path(), &["--documents-only"]).exits(0);
    let first = list();
    for number in 0..600 {
        put(&folder, &format!("part{}/{number}.txt", number % 3), "other");
    }
    let options = ["--documents-only", "--list-pause", "24h"];
    let run = files.publish_files(folder.path(), &options).exits(0);
    assert_eq!(run.count("changes"), 600, "{run}");
    assert!(list() == first, "changes are told, and the list stays");
    let options = ["--documents-only", "--list-pause", "0s"];
    let run = files.publish_files(folder.path(), &options).exits(0);
    assert_eq!((run.count("changes"), run.count("resources")), (0, 10_021), "{run}");
    assert!(list() != first, "the list is due");
}

#[tokio::test]
async fn a_server_of_files_follows_the_directory() {
    let folder = directory(10);
    let state = TempDir::with_prefix("state-").unwrap();
    let served = Served::files(folder.path(), state.path(), &["--no-watch", "--rescan", "1s"]);
    let copy = Destination::directory();
    copy.sync(&served.well_known()).exits(0);
    assert_eq!(held(&copy), there(folder.path()));
    let card = copy.run("report", &["--json"]).exits(0).json();
    assert_eq!(card["findings"], json!([]), "{card:#}");
    put(&folder, "part0/0.txt", "other");
    fs::remove_file(folder.path().join("part1/1.txt")).unwrap();
    until("the copy has the changes", || {
        copy.sync(&served.well_known()).exits(0);
        held(&copy) == there(folder.path())
    })
    .await;
    // The next scan is sure of a file that was fresh.
    let url = format!("{}files/part0/0.txt", served.base);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let digest = format!("\"{}\"", Sha256::of(b"other"));
    found("its digest is its tag", async || {
        let headers = client.get(&url).send().await.ok()?.headers().clone();
        let has_digest = headers.contains_key("repr-digest") && headers.contains_key("content-digest");
        (headers["etag"] == digest && has_digest).then_some(())
    })
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_of_files_hears_of_what_changes() {
    let folder = directory(10);
    let state = TempDir::with_prefix("state-").unwrap();
    // Nothing is scanned because of the time.
    let options = ["--rescan", "24h", "--rescan-all", "24h", "--metrics", "127.0.0.1:0"];
    let served = Served::files(folder.path(), state.path(), &options);
    let copy = Destination::directory();
    copy.sync(&served.well_known()).exits(0);
    for round in 0..2 {
        put(&folder, "part0/0.txt", &format!("other {round}"));
        put(&folder, &format!("new {round}/deep/file"), "new");
        fs::remove_file(folder.path().join(format!("part1/{}.txt", 1 + 3 * round))).unwrap();
        until("the copy has the changes", || {
            copy.sync(&served.well_known()).exits(0);
            held(&copy) == there(folder.path())
        })
        .await;
    }
    let metrics = get(served.metrics.as_ref().unwrap(), "/metrics");
    assert!(metrics.contains("thresher_publisher_scans_total{extent=\"all\"} 1\n"), "{metrics}");
    // The directory, three parts, the one with an odd name, and two folders of each round.
    assert!(metrics.contains("thresher_publisher_watched_folders 9\n"), "{metrics}");
}

/// Location, digest and length of each entry of a list.
fn entries(list: &Path) -> BTreeSet<(String, String, u64)> {
    let mut reader = Reader::new(fs::File::open(list).unwrap(), Options::default()).unwrap();
    let mut entries = BTreeSet::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Entry(entry) = item else { panic!("a bad entry in {}", list.display()) };
        let metadata = &entry.metadata;
        entries.insert((entry.loc.clone(), metadata.hash.clone().unwrap(), metadata.length.unwrap()));
    }
    entries
}

#[test]
fn a_list_has_what_resync_build_lists_and_resync_sync_is_in_sync() {
    let folder = directory(30);
    fs::remove_dir_all(folder.path().join("so & so")).unwrap();
    let files = Files::start();
    let list = folder.path().join("../resync-build.xml");
    let list = list
        .parent()
        .unwrap()
        .canonicalize()
        .unwrap()
        .join(format!("{}.xml", folder.path().file_name().unwrap().to_str().unwrap()));
    let mut build = Command::new(Venv::peers().expect("a virtual environment").program("resync-build"));
    build.args(["--write-resourcelist", "--hash", "sha-256", "--paths"]).arg(folder.path());
    build.arg("--outfile").arg(&list).arg(format!("{}files={}", files.base, folder.path().display()));
    let output = build.output().expect("it was installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    files.publish_files(folder.path(), &[]).exits(0);
    assert_eq!(entries(&files.public().join("resourcelist.xml")), entries(&list));
    fs::remove_file(&list).unwrap();

    let into = TempDir::with_prefix("resync-").unwrap();
    resync(into.path(), &files.base, &["-b", "--hash", "sha-256"]);
    let said = resync(into.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("IN SYNC") && !said.contains("NOT IN SYNC"), "{said}");
}

#[test]
fn files_that_a_server_has_already_need_documents_only() {
    let files = Files::start();
    let public = files.public();
    fs::create_dir(public.join("data")).unwrap();
    fs::write(public.join("data/a.txt"), "a").unwrap();
    let data = format!("{}data/", files.base);
    let base = format!("{}rs/", files.base);
    let mut command = thresher();
    command.args(["publish", "--json", "--base", &base, "--files-url", &data, "--from"]);
    let run = Run::of(command.arg(public.join("data")).arg("--to").arg(public.join("rs"))).exits(0);
    assert_eq!((run.count("resources"), run.count("files")), (1, 0), "{run}");
    let copy = Destination::directory();
    copy.sync(&format!("{base}capabilitylist.xml")).exits(0);
    assert_eq!(copy.cat(&format!("{data}a.txt")), b"a");
}

#[test]
fn what_is_left_out_is_said_by_name() {
    let folder = directory(3);
    put(&folder, ".git/config", "hidden");
    put(&folder, "line\nbreak", "control");
    let files = Files::start();
    let run = files.publish_files(folder.path(), &[]).exits(1);
    let json = run.json();
    assert_eq!(json["scan"]["problems"]["hidden"]["count"], 1, "{run}");
    assert_eq!(json["scan"]["problems"]["control-character"]["count"], 1, "{run}");
    run.says(&["1 name is not published", "control character; rename it"]);

    fs::remove_file(folder.path().join("line\nbreak")).unwrap();
    for number in 0..3 {
        fs::remove_file(folder.path().join(format!("part{number}/{number}.txt"))).unwrap();
    }
    let run = files.publish_files(folder.path(), &[]).exits(3);
    run.complains(&["3 of 4 files are gone"], &["--allow-deletes"]);
    let run = files.publish_files(folder.path(), &["--allow-deletes"]).exits(0);
    assert_eq!(run.count("changes"), 3, "{run}");

    let missing = Run::of(thresher().args([
        "publish",
        "--base",
        &files.base,
        "--listen",
        "127.0.0.1:0",
        "--from",
        ".",
    ]));
    missing.exits(2).complains(&["--state"], &["pass --state"]);
}
