//! A Destination: a place that `thresher sync` fills, and all queries about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use simulated_source::SimulatedSource;
use store::view::path_of;
use tempfile::TempDir;
use testkit::servers::S3Fixture;

use super::{Run, thresher, truth};

/// The files of a view, by their path below it.
pub(crate) type View = BTreeMap<String, Vec<u8>>;

/// The location of a harvest.
#[derive(Debug)]
pub(crate) struct Destination {
    /// The value of `--into`.
    pub(crate) into: String,
    environment: Vec<(&'static str, String)>,
    _folder: Option<TempDir>,
}

/// A line of `ls --json` without what differs between places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) state: String,
    pub(crate) length: Option<u64>,
    pub(crate) sha256: Option<String>,
}

impl Destination {
    /// A directory that does not exist yet. It is removed at the end.
    pub(crate) fn directory() -> Self {
        let folder = TempDir::with_prefix("thresher-").expect("a temporary directory");
        let into = folder.path().join("copy").display().to_string();
        Self { into, environment: Vec::new(), _folder: Some(folder) }
    }

    /// A directory that the caller removes.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { into: directory.display().to_string(), environment: Vec::new(), _folder: None }
    }

    /// A prefix of a bucket that no other test uses.
    pub(crate) fn s3(fixture: &S3Fixture) -> Self {
        let into = format!("s3://{}/harvests/one", fixture.bucket);
        Self { into, environment: fixture.aws_environment().to_vec(), _folder: None }
    }

    /// The environment variables that give access to it.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))
    }

    /// `thresher <subcommand> <words> --into <here>`
    pub(crate) fn command(&self, subcommand: &str, words: &[&str]) -> Command {
        let mut command = thresher();
        command.arg(subcommand).args(words).args(["--into", &self.into]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, subcommand: &str, words: &[&str]) -> Run {
        Run::of(&mut self.command(subcommand, words))
    }

    /// `thresher sync <url> --json`
    #[track_caller]
    pub(crate) fn sync(&self, url: &str) -> Run {
        self.sync_with(url, &[])
    }

    #[track_caller]
    pub(crate) fn sync_with(&self, url: &str, options: &[&str]) -> Run {
        self.run("sync", &[&[url, "--json"], options].concat())
    }

    /// Every line of `ls --json`, in its order.
    #[track_caller]
    pub(crate) fn listed(&self) -> Vec<Value> {
        self.run("ls", &["--json"]).exits(0).json_lines()
    }

    /// What `ls --json` says, by URI.
    #[track_caller]
    pub(crate) fn ls(&self) -> BTreeMap<String, Held> {
        let mut held = BTreeMap::new();
        for line in self.listed() {
            let text = |name: &str| line[name].as_str().map(str::to_owned);
            let (Some(uri), Some(state)) = (text("uri"), text("state")) else {
                panic!("no uri or state: {line}")
            };
            let what = Held { state, length: line["length"].as_u64(), sha256: text("sha256") };
            assert!(held.insert(uri, what).is_none(), "listed twice: {line}");
        }
        held
    }

    /// The state of one resource; none if it is not listed.
    #[track_caller]
    pub(crate) fn state(&self, uri: &str) -> Option<String> {
        self.ls().remove(uri).map(|held| held.state)
    }

    /// What `ls --json` says is present, with length and sha-256.
    #[track_caller]
    pub(crate) fn present(&self) -> BTreeMap<String, (u64, String)> {
        let present = self.ls().into_iter().filter(|(_, held)| held.state == "present");
        present
            .map(|(uri, held)| (uri, (held.length.expect("a length"), held.sha256.expect("a digest"))))
            .collect()
    }

    /// The bytes that `cat` gives.
    #[track_caller]
    pub(crate) fn cat(&self, uri: &str) -> Vec<u8> {
        let mut command = self.command("cat", &[uri]);
        let output = command.output().expect("the binary was built by cargo");
        assert!(output.status.success(), "{}", Run::ended(&command, &output));
        output.stdout
    }

    /// The output of `explain`, as text.
    #[track_caller]
    pub(crate) fn explain(&self, uri: &str) -> String {
        self.run("explain", &[uri]).exits(0).stdout
    }

    /// All files of the view, without Thresher's own data.
    #[track_caller]
    pub(crate) fn view(&self) -> View {
        let root = PathBuf::from(&self.into);
        let mut view = View::new();
        let mut directories = vec![root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).expect("a directory of the view") {
                let entry = entry.expect("a directory of the view");
                let path = entry.path();
                if path == root.join(".thresher") {
                    continue;
                }
                let kind = entry.file_type().expect("a file of the view");
                if kind.is_dir() {
                    directories.push(path);
                } else {
                    assert!(kind.is_file(), "{} is neither file nor directory", path.display());
                    let name = path.strip_prefix(&root).expect("below the root").display().to_string();
                    view.insert(name, std::fs::read(&path).expect("a file of the view"));
                }
            }
        }
        view
    }

    /// The file of one resource, if there is one.
    pub(crate) fn file(&self, uri: &str) -> Option<Vec<u8>> {
        std::fs::read(Path::new(&self.into).join(place(uri))).ok()
    }

    /// Checks that `ls` and the view are what the Source truly has, byte for byte, and nothing else.
    #[track_caller]
    pub(crate) fn mirrors(&self, source: &SimulatedSource) {
        assert_eq!(self.present(), truth(source), "what ls says is present is not what the Source has");
        self.view_mirrors(source);
    }

    /// Checks that the files are the Source's resources, byte for byte, and no others.
    #[track_caller]
    pub(crate) fn view_mirrors(&self, source: &SimulatedSource) {
        let mut view = self.view();
        for uri in source.expected().map(|now| now.uri) {
            let held =
                view.remove(&place(&uri)).unwrap_or_else(|| panic!("{uri} has no file at {}", place(&uri)));
            assert!(source.body(&uri) == Some(held), "the file of {uri} has other bytes than the Source");
        }
        let rest: Vec<&String> = view.keys().collect();
        assert!(rest.is_empty(), "files that the Source does not have: {rest:?}");
    }
}

/// The path of a resource's file in the view.
fn place(uri: &str) -> String {
    path_of(&uri.parse().expect("a URI of a resource")).to_string()
}
