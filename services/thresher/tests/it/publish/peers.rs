//! PyPI's `resync-sync` follows a publication, and its `resync-explorer` finds the way through it. Scrapy reads it as
//! sitemaps.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use simulated_source::{Changes, SourceSpec};
use tempfile::TempDir;
use testkit::servers::Venv;

use super::Files;
use crate::common::{Destination, Run, in_step, source};

/// Editions beside `resync-sync`. The variable sets another number.
const EDITIONS: usize = 20;
const VARIABLE: &str = "THRESHER_TEST_EDITIONS";

/// Runs `resync-sync` in a folder, and returns what it says.
#[track_caller]
pub(super) fn resync(folder: &Path, base: &str, options: &[&str]) -> String {
    let mut command = Command::new(Venv::peers().expect("a virtual environment").program("resync-sync"));
    command.current_dir(folder).args(options).arg("--verbose");
    let output =
        command.arg(format!("{}=into", base.trim_end_matches('/'))).output().expect("it was installed");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

#[tokio::test]
async fn acc_2_resync_sync_is_in_sync_after_a_baseline_and_after_changes() {
    let source = source(SourceSpec::default().resources(40)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let files = Files::start();
    files.publish(&copy).exits(0);
    let folder = TempDir::with_prefix("resync-").unwrap();
    resync(folder.path(), &files.base, &["-b", "--hash", "sha-256"]);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("IN SYNC") && !said.contains("NOT IN SYNC"), "{said}");

    source.change(Changes { create: 3, update: 5, delete: 2 });
    copy.sync(&source.well_known()).exits(0);
    files.publish(&copy).exits(0);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("NOT IN SYNC"), "{said}");
    // It reads Change Lists, and no index of them. With digests, it fails at any Change List.
    let lists = std::fs::read_dir(files.public().join("changelist")).unwrap();
    let lists: Vec<_> = lists.map(|list| list.unwrap().file_name().into_string().unwrap()).collect();
    let [open] = &lists[..] else { panic!("one list is open, and none is closed yet: {lists:?}") };
    let open = format!("{}changelist/{open}", files.base);
    resync(folder.path(), &files.base, &["-i", "--delete", "--changelist-uri", &open]);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("IN SYNC") && !said.contains("NOT IN SYNC"), "{said}");
}

/// Lets `resync-explorer` read a document, and then follow the entries that are typed. Returns what it says.
fn explore(folder: &Path, document: &str, typed: &str) -> String {
    let mut command = Command::new(Venv::peers().expect("a virtual environment").program("resync-explorer"));
    command.current_dir(folder).args(["--sitemap", document]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut explorer = command.spawn().expect("it was installed");
    let lines: String = typed.split(' ').map(|key| format!("{key}\n")).collect();
    explorer.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = explorer.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success() && said.contains("resync-explorer done"), "{command:?}: {said}");
    said
}

#[tokio::test]
async fn acc_2_resync_explorer_finds_each_document_from_the_source_description_on() {
    let source = source(SourceSpec::default().resources(7)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let files = Files::start();
    let to = files.public().display().to_string();
    let options = ["--base", &files.base, "--to", &to, "--dumps", "--json"];
    copy.run("publish", &options).exits(0);
    source.change(Changes { create: 1, update: 2, delete: 1 });
    copy.sync(&source.well_known()).exits(0);
    copy.run("publish", &options).exits(0);

    let folder = TempDir::with_prefix("resync-").unwrap();
    // The Capability List, the Resource List, back, the index of Change Lists, the open list, back, back, the dump.
    let said =
        explore(folder.path(), &format!("{}.well-known/resourcesync", files.base), "1 1 b 2 1 b b 3 q");
    let parsed: Vec<&str> = said.lines().filter(|line| line.starts_with("Parsed ")).collect();
    let expected = [
        "Parsed description document with 1 entries:",
        "Parsed capabilitylist document with 4 entries:",
        "Parsed resourcelist document with 7 entries:",
        "Parsed capabilitylist document with 4 entries:",
        "Parsed changelistindex document with 1 entries:",
        "Parsed changelist document with 4 entries:",
        "Parsed changelistindex document with 1 entries:",
        "Parsed capabilitylist document with 4 entries:",
        "Parsed resourcedump document with 1 entries:",
    ];
    assert_eq!(parsed, expected, "{said}");
    let complaints =
        said.lines().filter(|line| ["WARNING", "EXPECTED", "Cannot"].iter().any(|word| line.contains(word)));
    // It does not take an index for the list that a Capability List names; it came by twice.
    let of_index = "WARNING - expected a changelist document";
    assert_eq!(complaints.collect::<Vec<_>>(), [of_index; 2], "{said}");
}

/// Each edition is a Resource List: with few resources, one is made after each change.
#[tokio::test]
async fn acc_5_resync_sync_in_a_loop_beside_editions_ends_in_sync_and_meets_no_404() {
    let (source, copy) = in_step(SourceSpec::default().resources(20)).await;
    let editions = std::env::var(VARIABLE).map_or(EDITIONS, |count| count.parse().expect("a number"));
    let files = Files::start();
    files.publish(&copy).exits(0);
    let list = || std::fs::read(files.public().join("resourcelist.xml")).unwrap();
    let folder = TempDir::with_prefix("resync-").unwrap();
    let options = ["-b", "--delete", "--hash", "sha-256"];
    let stop = AtomicBool::new(false);
    let baselines = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut baselines = 0;
            while !stop.load(Ordering::Relaxed) {
                resync(folder.path(), &files.base, &options);
                baselines += 1;
            }
            baselines
        });
        for _ in 0..editions {
            let before = list();
            source.change(Changes { create: 1, update: 4, delete: 1 });
            copy.sync_with(&source.well_known(), &["--view", "none"]).exits(0);
            files.publish(&copy).exits(0);
            assert!(list() != before, "it is an edition");
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("each baseline succeeded")
    });
    assert!(baselines > 1, "{baselines}");
    resync(folder.path(), &files.base, &options);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("IN SYNC") && !said.contains("NOT IN SYNC"), "{said}");
    let log = std::fs::read_to_string(files.folder.path().join("log")).unwrap();
    let answers = |status: &str| log.matches(&format!("HTTP/1.1\" {status} ")).count();
    println!("{baselines} baselines beside {editions} editions: {} answers by 200", answers("200"));
    assert!(answers("200") > editions * 4, "{log}");
    let others: Vec<&str> = log.lines().filter(|line| !line.contains("\" 200 ")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// What Scrapy finds from `robots.txt` on: the digest of each URL.
fn crawled(files: &Files) -> BTreeMap<String, String> {
    let venv = Venv::sitemaps().expect("a virtual environment");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/crawl_lists.py");
    let mut command = Command::new(venv.program("scrapy"));
    command.args(["runspider", "--loglevel=WARNING"]).arg(program);
    command.args(["-a", &format!("robots={}robots.txt", files.base)]);
    let run = Run::of(command.env("PYTHONDONTWRITEBYTECODE", "1")).exits(0);
    let text = |page: &Value, name: &str| page[name].as_str().expect("a text").to_owned();
    let pages = run.json_lines();
    assert!(pages.iter().all(|page| page["status"] == 200), "{run}");
    let found: BTreeMap<_, _> = pages.iter().map(|page| (text(page, "url"), text(page, "sha256"))).collect();
    assert_eq!(found.len(), pages.len(), "each page once: {run}");
    found
}

#[tokio::test]
async fn acc_2_a_reader_of_sitemaps_finds_each_resource_from_robots_txt_on() {
    let (source, copy) = in_step(SourceSpec::default().resources(30)).await;
    let files = Files::start();
    let published = || -> BTreeMap<String, String> {
        files.publish(&copy).exits(0);
        let path = |uri: &str| publish::PublishedPath::of(&uri.parse().unwrap()).as_str().to_owned();
        let url = |uri: &str| format!("{}{}", files.base, path(uri));
        copy.present().into_iter().map(|(uri, (_, sha256))| (url(&uri), sha256)).collect()
    };
    assert_eq!(published(), crawled(&files));
    source.change(Changes { create: 3, update: 4, delete: 2 });
    copy.sync(&source.well_known()).exits(0);
    assert_eq!(published(), crawled(&files));
}
