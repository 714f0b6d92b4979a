//! Third-party Sources: PyPI's `resync-simulator`, and lists made by `resync-build`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Destination, Process};
use tempfile::TempDir;
use testkit::servers::Venv;

const CONFIG: &str = "\
source:
  name: ResourceSync Simulator
  number_of_resources: 200
  average_payload: 1000
  change_delay: 0
  event_types: [create, update, delete]
  max_events: 20
  stats_interval: 1000
resource_list_builder:
  class: DynamicResourceListBuilder
  uri_path: resourcelist.xml
changememory:
  class: DynamicChangeList
  uri_path: changelist.xml
  max_changes: 1000
";
const LOGGING: &str = "version: 1\ndisable_existing_loggers: true\n";

fn peers() -> Venv {
    Venv::peers().expect("the peers' virtual environment")
}

/// A running resync-simulator.
struct Simulator {
    process: Process,
    base: String,
    _folder: TempDir,
}

impl Simulator {
    fn start(seed: u32) -> Self {
        let folder = TempDir::with_prefix("simulator-").unwrap();
        let config = folder.path().join("config.yaml");
        let logging = folder.path().join("logging.yaml");
        std::fs::write(&config, CONFIG).unwrap();
        std::fs::write(&logging, LOGGING).unwrap();
        let wrapper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/run_simulator.py");
        let mut command = Command::new(peers().program("python"));
        command.arg("-B").arg(wrapper).arg(peers().program("resync-simulator")).args([config, logging]);
        // Its log of each request is discarded.
        let mut process = Process::talk(command.arg(seed.to_string()).stderr(Stdio::null()));
        let line = process.hear();
        let base =
            line.strip_prefix("listening ").unwrap_or_else(|| panic!("not listening: {line}")).to_owned();
        Self { process, base, _folder: folder }
    }

    /// Makes changes, and returns the kind of the first one ever.
    fn change(&mut self) -> String {
        self.process.say("change");
        let line = self.process.hear();
        line.strip_prefix("changed, first a ").unwrap_or_else(|| panic!("not changed: {line}")).to_owned()
    }

    /// Its current resources, by URI; none for deleted ones.
    fn serves(&mut self) -> BTreeMap<String, Option<Vec<u8>>> {
        self.process.say("serve");
        let served: BTreeMap<String, Option<String>> = serde_json::from_str(&self.process.hear()).unwrap();
        served.into_iter().map(|(uri, hex)| (uri, hex.map(|hex| bytes(&hex)))).collect()
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Checks files, `ls` and `cat` against the current resources.
#[track_caller]
fn holds_what_is_served(copy: &Destination, served: &BTreeMap<String, Option<Vec<u8>>>) {
    let present = copy.present();
    for (uri, body) in served {
        assert_eq!(copy.file(uri), *body, "the file of {uri}");
        assert_eq!(present.contains_key(uri), body.is_some(), "ls of {uri}");
    }
    let there = served.values().flatten().count();
    assert_eq!((present.len(), copy.view().len()), (there, there), "and nothing else is there");
}

/// 200 resources, and 20 changes twice.
fn a_simulator_is_followed(seed: u32, first_change: &str) {
    let mut simulator = Simulator::start(seed);
    let way_in = simulator.base.clone();
    let copy = Destination::directory();
    // Its Change List responds 500 while there are no changes. All resources are stored, and that one document is a
    // problem.
    let first = copy.sync(&way_in);
    assert!(matches!(first.exit, Some(0 | 1)), "{first}");
    assert_eq!((first.count("stored"), first.count("failed")), (200, 0), "{first}");
    let before = simulator.serves();
    assert_eq!(before.len(), 200);
    holds_what_is_served(&copy, &before);

    assert_eq!(simulator.change(), first_change, "the story depends on it: choose another seed");
    let now = simulator.serves();
    let gone = now.values().filter(|body| body.is_none()).count();
    assert!(gone > 0 && now.len() > 200 && now != before, "something was created, updated and deleted");
    let second = copy.sync(&way_in).exits(0);
    assert!(second.count("stored") <= 20, "only what changed: {second}");
    holds_what_is_served(&copy, &now);
    for uri in
        now.iter().filter(|(uri, body)| body.is_none() && before.contains_key(*uri)).map(|(uri, _)| uri)
    {
        assert_eq!(copy.state(uri).as_deref(), Some("deleted"));
    }

    simulator.change();
    let now = simulator.serves();
    copy.sync(&way_in).exits(0);
    holds_what_is_served(&copy, &now);
    let last = copy.sync(&way_in).exits(0);
    assert_eq!((last.count("stored"), last.count("deleted")), (0, 0), "nothing has changed: {last}");
}

#[test]
fn resync_simulator_is_followed_through_its_changes() {
    a_simulator_is_followed(1, "updated");
}

#[test]
fn resync_simulator_is_followed_when_its_first_change_is_a_deletion() {
    // Then its Change List does not declare the begin of its interval.
    a_simulator_is_followed(2, "deleted");
}

/// Files on a disk, served by Python's own web server, which logs each request.
struct Served {
    folder: TempDir,
    base: String,
    _server: Process,
}

impl Served {
    fn start(files: usize) -> Self {
        let folder = TempDir::with_prefix("served-").unwrap();
        let root = folder.path().join("root");
        for n in 0..files {
            let directory = root.join(format!("res/part{}", n % 3));
            std::fs::create_dir_all(&directory).unwrap();
            // Names that need escaping in a URI or in XML, bodies of many sizes, the first one empty.
            let name = if n % 10 == 3 { format!("so & so {n}.txt") } else { format!("{n}.txt") };
            std::fs::write(directory.join(name), "0123456789abcdef\n".repeat(n * n)).unwrap();
        }
        let log = File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(peers().program("python"));
        command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"]).arg(&root);
        let mut server = Process::talk(command.stderr(log));
        let line = server.hear();
        // "Serving HTTP on 127.0.0.1 port 12345 (http://127.0.0.1:12345/) ..."
        let base = line.split(['(', ')']).nth(1).unwrap_or_else(|| panic!("where does it listen? {line}"));
        Self { base: base.trim_end_matches('/').to_owned(), folder, _server: server }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Lets resync-build write a Resource List of all files.
    fn build(&self, name: &str, options: &[&str]) -> String {
        let root = self.root();
        let mut build = Command::new(peers().program("resync-build"));
        build.args(["--write-resourcelist", "--hash", "md5", "--hash", "sha-256"]).args(options);
        build.arg("--paths").arg(root.join("res")).arg("--outfile").arg(root.join(name));
        let output =
            build.arg(format!("{}={}", self.base, root.display())).current_dir(self.folder.path()).output();
        let output = output.expect("resync-build was installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        format!("{}/{name}", self.base)
    }

    /// How many requests for files below `/res/` have come.
    fn requests(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
        log.lines().filter(|line| line.contains("GET /res/")).count()
    }

    /// How many requests for packages have come.
    fn downloads(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap();
        log.lines().filter(|line| line.contains("GET ") && line.contains(".zip")).count()
    }

    /// The bodies of all files, sorted.
    fn bodies(&self) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        for part in std::fs::read_dir(self.root().join("res")).unwrap() {
            for file in std::fs::read_dir(part.unwrap().path()).unwrap() {
                bodies.push(std::fs::read(file.unwrap().path()).unwrap());
            }
        }
        bodies.sort();
        bodies
    }

    #[track_caller]
    fn is_held_by(&self, copy: &Destination) {
        let mut held: Vec<Vec<u8>> = copy.view().into_values().collect();
        held.sort();
        assert!(held == self.bodies(), "the files are not the ones that are served");
        for uri in copy.present().into_keys().step_by(9) {
            assert_eq!(Some(copy.cat(&uri)), copy.file(&uri), "cat {uri}");
        }
    }
}

/// Harvests a list twice, and once more after a file has changed and the list was rebuilt.
fn a_built_list_is_followed(served: &Served, name: &str, options: &[&str], files: usize) {
    let list = served.build(name, options);
    let copy = Destination::directory();
    let first = copy.sync(&list).exits(0);
    assert_eq!((first.count("listed"), first.count("stored")), (files as u64, files as u64), "{first}");
    assert_eq!(served.requests(), files);
    served.is_held_by(&copy);

    let second = copy.sync(&list).exits(0);
    assert_eq!(served.requests(), files, "a second run fetches nothing: {second}");
    assert_eq!((second.count("stored"), second.count("unchanged")), (0, files as u64), "{second}");

    std::fs::write(served.root().join("res/part1/1.txt"), "something else").unwrap();
    served.build(name, options);
    let third = copy.sync(&list).exits(0);
    assert_eq!(served.requests(), files + 1, "only what has changed: {third}");
    served.is_held_by(&copy);
}

#[test]
fn a_list_of_resync_build_is_harvested_whole_and_only_once() {
    a_built_list_is_followed(&Served::start(40), "resourcelist.xml", &[], 40);
}

#[test]
fn an_index_of_resync_build_is_harvested_whole_and_only_once() {
    let served = Served::start(40);
    a_built_list_is_followed(&served, "index.xml", &["--max-sitemap-entries", "15"], 40);
    assert!(std::fs::exists(served.root().join("index00002.xml")).unwrap(), "there were three parts");
}

/// Dumps of this many files in 5 packages, made with resync's classes and Python's zipfile, and a Change Dump on top.
/// The result is the same as that of a harvest by lists.
fn dumps_made_with_resync_are_harvested(files: u64) {
    let served = Served::start(0);
    std::fs::create_dir_all(served.root()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/make_dumps.py");
    let mut command = Command::new(peers().program("python"));
    command
        .arg("-B")
        .arg(script)
        .arg(served.root())
        .arg(&served.base)
        .args([files.to_string(), "5".to_owned()]);
    let mut maker = Process::talk(&mut command);
    assert_eq!(maker.hear(), "made");
    let by_list = |name: &str| {
        let copy = Destination::directory();
        copy.sync(&format!("{}/{name}", served.base)).exits(0);
        copy.present()
    };
    let way_in = format!("{}/dumps.xml", served.base);
    let copy = Destination::directory();
    let first = copy.sync(&way_in).exits(0);
    assert_eq!(
        (first.count("listed"), first.count("stored"), served.requests()),
        (files, files, 0),
        "{first}"
    );
    assert_eq!(copy.present(), by_list("list1.xml"));

    maker.say("go on");
    assert_eq!(maker.hear(), "changed");
    let asked = served.requests();
    let second = copy.sync_with(&way_in, &["--rediscover"]).exits(0);
    let updated = files.div_ceil(10);
    let created = files / 10;
    let deleted = (files + 4) / 10;
    assert_eq!((second.count("stored"), second.count("deleted")), (updated + created, deleted), "{second}");
    assert_eq!(served.requests(), asked, "no resource was asked for by itself");
    assert_eq!(copy.present(), by_list("list2.xml"));
    for uri in copy.present().into_keys().step_by(97) {
        assert_eq!(Some(copy.cat(&uri)), copy.file(&uri), "cat {uri}");
    }
    let downloads = served.downloads();
    let third = copy.sync_with(&way_in, &["--rediscover"]).exits(0);
    assert_eq!(
        (third.count("stored"), served.downloads()),
        (0, downloads),
        "a second run downloads nothing: {third}"
    );
}

#[test]
fn dumps_made_with_resync_and_zipfile_are_harvested_like_lists() {
    dumps_made_with_resync_are_harvested(500);
}

/// Takes minutes in a debug build.
#[test]
#[ignore = "the same with 10,000 files; run it in release mode"]
fn a_dump_of_ten_thousand_files_is_harvested_like_a_list() {
    dumps_made_with_resync_are_harvested(10_000);
}
