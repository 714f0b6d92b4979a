//! Third-party OAI-PMH repositories, of PyPI's `pyoai` and `oai-repo` and of Perl's `HTTP::OAI`, and the same records as
//! PyPI's `sickle` gets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use oaipmh::{BaseUrl, Limits, canonicalize};
use serde::Deserialize;
use testkit::servers::Venv;

use crate::common::{Destination, Process, Run};

fn python(script: &str) -> Command {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(script);
    let mut command = Command::new(Venv::oai().expect("pip installs what is pinned").program("python"));
    command.arg("-B").arg(script).env("NO_PROXY", "*");
    command
}

/// The repository of Perl's HTTP::OAI. None where that is not installed.
fn perl() -> Option<Command> {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perl").join("run_repository.pl");
    let is_there = Command::new("perl").args(["-MHTTP::OAI", "-e", "1"]).stderr(Stdio::null()).status();
    is_there.is_ok_and(|status| status.success()).then(|| {
        let mut command = Command::new("perl");
        command.arg(script);
        command
    })
}

/// A record as sickle reads it.
#[derive(Debug, Deserialize)]
pub(crate) struct Harvested {
    pub(crate) identifier: String,
    pub(crate) datestamp: String,
    pub(crate) deleted: bool,
    pub(crate) sets: Vec<String>,
    /// The element as it came.
    pub(crate) metadata: Option<String>,
}

impl Harvested {
    /// Its metadata in canonical form.
    #[track_caller]
    pub(crate) fn canonical(&self) -> String {
        let metadata = self.metadata.as_ref().unwrap_or_else(|| panic!("{} is deleted", self.identifier));
        canonicalize(metadata, &Limits::default()).expect("well-formed metadata").document
    }
}

/// All records of a repository in `oai_dc` as sickle gets them, by identifier.
pub(crate) fn with_sickle(base: &str) -> BTreeMap<String, Harvested> {
    let output = python("harvest_records.py").args([base, "oai_dc"]).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON");
    let all = text.lines().map(|line| serde_json::from_str::<Harvested>(line).expect("a record"));
    all.map(|record| (record.identifier.clone(), record)).collect()
}

/// A repository of 1,000 records, of which 100 are deleted, and a copy of it.
struct Peer {
    process: Process,
    base: String,
    copy: Destination,
}

impl Peer {
    fn start(library: &str) -> Self {
        Self::of(python("run_repository.py").arg(library))
    }

    fn of(command: &mut Command) -> Self {
        let mut process = Process::talk(command.stderr(Stdio::null()));
        let line = process.hear();
        let base = line.strip_prefix("listening ").unwrap_or_else(|| panic!("not listening: {line}"));
        Self { base: base.to_owned(), process, copy: Destination::directory() }
    }

    /// A day passes at the repository.
    fn advance(&mut self) {
        self.process.say("advance 1");
        assert_eq!(self.process.hear(), "advanced");
    }

    /// A day later: three new records, five other ones change, seven are deleted.
    fn change(&mut self) {
        self.advance();
        self.process.say("change 3 5 7");
        assert_eq!(self.process.hear(), "changed");
    }

    #[track_caller]
    fn sync(&self, options: &[&str]) -> Run {
        self.copy.sync_with(&self.base, options)
    }

    /// All records as sickle gets them, by the URI that they have in the copy.
    fn harvested(&self) -> BTreeMap<String, Harvested> {
        let base = BaseUrl::new(self.base.parse().expect("a URL")).expect("a base URL");
        let all = with_sickle(&self.base).into_iter();
        all.map(|(identifier, record)| (base.record_uri(&identifier, "oai_dc"), record)).collect()
    }

    /// Checks that the copy has the records that sickle gets, byte for byte in canonical form, with their datestamps,
    /// and `beside` them only those that sickle shows as deleted or does not show.
    #[track_caller]
    fn is_what_sickle_gets(&self, beside: &[&str]) {
        let harvested = self.harvested();
        let mut present = self.copy.listed();
        present.retain(|line| line["state"] == "present");
        let mut seen = BTreeSet::new();
        for line in present {
            let uri = line["uri"].as_str().expect("a URI").to_owned();
            if beside.contains(&&*uri) {
                continue;
            }
            let record = harvested.get(&uri).unwrap_or_else(|| panic!("sickle does not get {uri}"));
            let stored = self.copy.file(&uri).unwrap_or_else(|| panic!("{uri} has no file"));
            assert_eq!(String::from_utf8_lossy(&stored), record.canonical(), "{uri}");
            assert_eq!(line["change_time"], record.datestamp, "{uri}");
            seen.insert(uri);
        }
        let live = harvested.iter().filter(|(_, record)| !record.deleted).map(|(uri, _)| uri.clone());
        assert_eq!(seen, live.collect::<BTreeSet<_>>());
    }

    /// The URIs in this state.
    fn in_state(&self, state: &str) -> Vec<String> {
        self.copy.ls().into_iter().filter(|(_, held)| held.state == state).map(|(uri, _)| uri).collect()
    }
}

#[test]
fn a_repository_of_pyoai_is_harvested_whole_and_incrementally_as_by_sickle() {
    let mut peer = Peer::start("pyoai");
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (900, 0, 0), "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    let deleted = peer.harvested().values().filter(|record| record.deleted).count();
    assert_eq!(deleted, 100, "the repository shows its deletions");
    peer.is_what_sickle_gets(&[]);

    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (0, 0), "nothing changed: {run}");

    peer.change();
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (8, 7, 0), "{run}");
    peer.is_what_sickle_gets(&[]);

    // All of it once more: the same bytes are nothing new.
    let run = peer.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (0, 0, 0), "{run}");
    peer.is_what_sickle_gets(&[]);
}

#[test]
fn a_repository_of_perl_is_harvested_whole_and_incrementally_as_by_sickle() {
    let Some(mut command) = perl() else {
        eprintln!("skipped: Perl has no HTTP::OAI. Debian has it as libhttp-oai-perl");
        return;
    };
    let mut peer = Peer::of(&mut command);
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (900, 0, 0), "{run}");
    assert_eq!(run.json()["quirks"], serde_json::json!({}), "{run}");
    peer.is_what_sickle_gets(&[]);
    peer.change();
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (8, 7, 0), "{run}");
    peer.is_what_sickle_gets(&[]);
    let run = peer.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (0, 0, 0), "{run}");
}

#[test]
fn records_that_a_repository_of_oai_repo_lists_no_more_are_deleted_after_two_lists() {
    let mut peer = Peer::start("oai-repo");
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (900, 0, 0), "{run}");
    peer.is_what_sickle_gets(&[]);

    peer.change();
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (8, 0, 0), "{run}");
    let run = peer.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("stored"), run.count("absent"), run.count("deleted")), (0, 7, 0), "{run}");
    peer.advance();
    let run = peer.sync(&["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("stored"), run.count("absent"), run.count("deleted")), (0, 0, 7), "{run}");
    peer.is_what_sickle_gets(&[]);
    assert_eq!(peer.in_state("deleted").len(), 7);
}

#[test]
fn records_that_oai_repo_counts_and_leaves_out_are_told_as_a_short_list_once() {
    let mut peer = Peer::start("oai-repo-all");
    let run = peer.sync(&[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (900, 0, 1), "{run}");
    assert!(run.json()["quirks"]["short-list"].as_u64() > Some(0), "{run}");
    let problems = peer.copy.run("problems", &[]).stdout;
    assert!(problems.contains("900 records came of 1000"), "{problems}");
    peer.is_what_sickle_gets(&[]);

    // The same number a second time: the repository miscounts.
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("gaps")), (0, 0), "{run}");
    assert!(run.json()["quirks"]["wrong-complete-list-size"].as_u64() > Some(0), "{run}");

    peer.change();
    let run = peer.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (8, 0, 0), "{run}");
    // It promised to show deletions, and does not.
    let harvested = peer.harvested();
    let untold: Vec<String> =
        peer.in_state("present").into_iter().filter(|uri| !harvested.contains_key(uri)).collect();
    assert_eq!(untold.len(), 7);
    peer.is_what_sickle_gets(&untold.iter().map(String::as_str).collect::<Vec<_>>());
}
