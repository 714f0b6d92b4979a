//! `publish`: a harvest of 10,000,000 resources is published, and again after changes; and a server follows a small one
//! in a bucket.

mod held;
mod idle;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use resourcesync::Reader;
use serde::Deserialize;
use serde_json::json;

pub(super) use self::held::{Held, HeldWriter};
use super::measured;
use crate::check::{self, Check};
use crate::cli::Options;
use crate::folder::{WorkFolder, files_below};
use crate::machine::Machine;
use crate::place::Place;
use crate::process::CommandLine;
use crate::report::{Report, Round, Row};
use crate::thresher::Thresher;

const RESOURCES: u64 = 10_000_000;
/// The base of the publication. It is at a port of this machine, so that a server can answer for it.
const BASE: &str = "http://127.0.0.1/";
/// Of 1,000 resources, how many change. After both, a new Resource List is due as soon as the pause is over.
const FEW: u64 = 10;
const MANY: u64 = 60;
/// The most documents that few changes write.
const MOST_WRITTEN: u64 = 12;
/// The longest times, in seconds, for as many resources as by default.
const MOST_SECONDS: [(&str, u64); 3] = [(FIRST, 180), (CHANGES, 5), (NEXT, 120)];
const FIRST: &str = "first Resource List";
const CHANGES: &str = "changes of 1 %";
const MORE: &str = "changes of 6 %";
const NEXT: &str = "next Resource List";
const IDLE: &str = "nothing new";
/// The document that leads to the parts of a Resource List.
const LIST: &str = "resourcelist.xml";

/// The last line of `publish --json`, as far as it is checked here.
#[derive(Debug, Deserialize)]
struct Published {
    resources: u64,
    changes: u64,
    documents: u64,
}

/// The files of the publication.
type State = BTreeMap<PathBuf, FileState>;

/// A file of the publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    length: u64,
    inode: u64,
    changed_at: i64,
    /// Whether it may be written again.
    is_mutable: bool,
}

/// State that every run needs.
struct Bench {
    thresher: Thresher,
    held: Held,
    /// The harvest.
    into: PathBuf,
    public: PathBuf,
    work: WorkFolder,
}

/// Runs the case.
pub(crate) fn run(options: &Options) -> anyhow::Result<Report> {
    options.only_all_rows()?;
    let resources = options.resources.unwrap_or(RESOURCES);
    let thresher = Thresher::get(options)?;
    let work = WorkFolder::new(options, "publish")?;
    let machine = Machine::here(work.path());
    let into = work.make("into")?;
    eprintln!("filling in {resources} resources");
    let runtime = tokio::runtime::Runtime::new()?;
    let held = runtime.block_on(Held::fill(&Place::directory(&into), resources))?;
    let public = work.path().join("public");
    let mut bench = Bench { thresher, held, into, public, work };
    let versions = vec![bench.thresher.version.clone()];
    let mut rows = Vec::new();
    for (name, per_mille) in [(FIRST, 0), (CHANGES, FEW), (MORE, MANY), (NEXT, 0), (IDLE, 0)] {
        eprintln!("{name}");
        let changed = runtime.block_on(bench.held.change(resources * per_mille / 1_000))?;
        let is_list = name == FIRST || name == NEXT;
        let mut row = Row::new(name, if is_list { resources } else { changed.max(1) });
        let (command, done) = bench.publish(name, changed)?;
        row.command = command;
        row.rounds.push(done);
        rows.push(row);
    }
    eprintln!("{}", idle::NAME);
    rows.push(idle::row(&bench.thresher, &runtime)?);
    let setup = BTreeMap::from([
        ("resources", json!(resources)),
        ("changed_per_mille", json!([FEW, MANY])),
        ("rounds", json!("one of the publications, since each needs the one before")),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "publish", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}

impl Bench {
    /// Publishes what there is by now, without the bytes, and checks what that has written.
    fn publish(&self, name: &str, changed: u64) -> anyhow::Result<(String, Round)> {
        let before = state(&self.public)?;
        let command = self.command().args(["--documents-only", "--json"]);
        // A list that is due is made at once in its own row, and in no other.
        let command = command.args(["--list-pause", if name == NEXT { "0s" } else { "24h" }]);
        let (ended, mut done) = measured(&command, self.work.path(), None)?;
        ended.succeeded()?;
        let output = ended.output()?;
        let last = output.lines().last().unwrap_or_default();
        let told: Published =
            serde_json::from_str(last).with_context(|| format!("the last line of thresher is {last:?}"))?;
        let after = state(&self.public)?;
        let written = after.iter().filter(|(path, state)| before.get(*path) != Some(*state)).count() as u64;
        let again = written_again(&before, &after);
        ensure!(again.is_empty(), "documents that never change were written again: {again:?}");
        done.checks = vec![
            Check::equal("resources", self.held.resources(), told.resources),
            Check::equal("changes", changed, told.changes),
            check::resident(ended.usage.peak_rss_bytes),
        ];
        let list = Path::new(&self.public).join(LIST);
        let is_new_list = before.get(&list) != after.get(&list);
        done.checks.push(Check::equal(
            "new Resource Lists",
            u64::from(name == FIRST || name == NEXT),
            u64::from(is_new_list),
        ));
        let longest = MOST_SECONDS.iter().find(|(row, _)| *row == name && told.resources == RESOURCES);
        if let Some((_, longest)) = longest {
            done.checks.push(Check::at_most("seconds", *longest, ended.usage.seconds.ceil() as u64));
        }
        match name {
            CHANGES => done.checks.push(Check::at_most("documents written", MOST_WRITTEN, written)),
            IDLE => done.checks.push(Check::equal("documents written", 0, told.documents)),
            _ => {}
        }
        done.counted = BTreeMap::from([("documents_written".to_owned(), written)]);
        Ok((command.shown(self.work.path()), done))
    }

    /// `thresher publish` to the directory.
    fn command(&self) -> CommandLine {
        let command = self.thresher.measured().args(["publish", "--base", BASE, "--into"]);
        command.arg(&self.into).arg("--to").arg(&self.public)
    }
}

/// Files that were never to be written again, and are other ones now.
fn written_again<'s>(before: &'s State, after: &State) -> Vec<&'s PathBuf> {
    let is_other = |(path, state): &(&PathBuf, &FileState)| {
        !state.is_mutable && after.get(*path).is_some_and(|now| now != *state)
    };
    before.iter().filter(is_other).map(|(path, _)| path).collect()
}

/// Whether a document has a name that stays, and changes, or is an open Change List.
fn is_mutable(path: &Path) -> anyhow::Result<bool> {
    let is_own = path.components().any(|part| part.as_os_str() == ".thresher");
    let is_named = path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        [LIST, "changelist.xml", "capabilitylist.xml", "index.html", "robots.txt", "resourcesync"]
            .contains(&name.as_ref())
    });
    if is_own || is_named {
        return Ok(true);
    }
    // A Change List is written until it is closed: then it has its end.
    Ok(path.components().any(|part| part.as_os_str() == "changelist") && !has_end(path)?)
}

/// Whether a Change List has its end.
fn has_end(path: &Path) -> anyhow::Result<bool> {
    let file = BufReader::new(File::open(path)?);
    let mut reader =
        Reader::new(file, resourcesync::Options::default()).with_context(|| path.display().to_string())?;
    let header = reader.header().with_context(|| path.display().to_string())?;
    Ok(header.until.is_some())
}

/// The files of a publication.
fn state(public: &Path) -> anyhow::Result<State> {
    if !public.exists() {
        return Ok(State::new());
    }
    let files = files_below(public).map(|found| {
        let found = found?;
        let about = fs::metadata(found.path())?;
        let changed = about.mtime() * 1_000_000_000 + about.mtime_nsec();
        let path = found.path();
        let (length, inode, is_mutable) = (about.len(), about.ino(), is_mutable(&path)?);
        anyhow::Ok((path, FileState { length, inode, changed_at: changed, is_mutable }))
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_change_list_that_is_written_again_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let list = |name: &str, end: &str, more: &str| {
            let path = folder.path().join("changelist").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let header = format!("capability=\"changelist\" from=\"2026-01-01T00:00:00Z\" {end}");
            let text = format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                 xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md {header}/>{more}</urlset>"
            );
            fs::write(&path, text).unwrap();
            path
        };
        let end = "until=\"2026-01-02T00:00:00Z\"";
        let closed = list("closed.xml", end, "");
        list("open.xml", "", "");
        let before = state(folder.path()).unwrap();
        list("open.xml", end, "");
        assert!(written_again(&before, &state(folder.path()).unwrap()).is_empty());
        list("closed.xml", end, " ");
        assert_eq!(written_again(&before, &state(folder.path()).unwrap()), [&closed]);
    }
}
