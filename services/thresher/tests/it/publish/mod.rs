//! `thresher publish`: what a harvest stores, as a Source of its own.

mod archives;
mod beside;
mod chain;
mod chains;
mod change_dumps;
mod damaged;
mod documents;
mod files;
mod fleet_hub;
mod fleet_readers;
mod hub_down;
mod hubs;
mod in_fleet;
mod linked_chain;
mod oai;
mod oai_readers;
mod oai_requests;
mod own_hub;
mod own_hub_readers;
mod past;
mod peers;
mod redirect;
mod requests;
mod restart;
mod sets;
mod slow_set;
mod strict_client;
mod takedown;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jiff::Timestamp;
use model::ResourceUri;
use publish::Named;
use tempfile::TempDir;
use testkit::relay::Relay;
use testkit::servers::Venv;
use testkit::waiting::until;

use crate::common::{Destination, Process, Run, thresher};

/// A resource of `ls --json`: its state, length and SHA-256.
pub(crate) type Held = (String, Option<u64>, Option<String>);

/// Times of entries and datestamps have seconds: what is of one second cannot be told apart.
async fn a_second_passes() {
    let begun = Timestamp::now().as_second();
    until("a later second", || Timestamp::now().as_second() > begun + 1).await;
}

/// What a copy holds, by the URI of the original after `hops` publications.
#[track_caller]
pub(crate) fn originals(copy: &Destination, hops: &[&str]) -> BTreeMap<String, Held> {
    let held = copy.ls().into_iter();
    held.map(|(uri, held)| (original(uri, hops), (held.state, held.length, held.sha256))).collect()
}

/// The URI of the original of what is published, after `hops` publications.
#[track_caller]
fn original(uri: String, hops: &[&str]) -> String {
    hops.iter().rev().fold(uri, |uri, base| {
        let path = uri.strip_prefix(base).unwrap_or_else(|| panic!("{uri} is not below {base}"));
        match Named::at(path) {
            Some(Named::Resource(uri)) => ResourceUri::to_string(&uri),
            other => panic!("{path} is {other:?}"),
        }
    })
}

/// A publication in a directory, served by Python's own web server.
struct Files {
    base: String,
    folder: TempDir,
    _server: Process,
}

impl Files {
    fn start() -> Self {
        let folder = TempDir::with_prefix("published-").unwrap();
        let public = folder.path().join("public");
        std::fs::create_dir(&public).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(Venv::peers().expect("a virtual environment").program("python"));
        command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"]).arg(&public);
        let mut server = Process::talk(command.stderr(log));
        let line = server.hear();
        let base = line.split(['(', ')']).nth(1).unwrap_or_else(|| panic!("where does it listen? {line}"));
        Self { base: base.to_owned(), folder, _server: server }
    }

    fn public(&self) -> PathBuf {
        self.folder.path().join("public")
    }

    /// Publishes the files of a directory there.
    fn publish_files(&self, from: &Path, options: &[&str]) -> Run {
        let mut command = thresher();
        command.args(["publish", "--base", &self.base, "--json", "--from"]).arg(from);
        Run::of(command.arg("--to").arg(self.public()).args(options))
    }

    /// Publishes a copy there.
    #[track_caller]
    fn publish(&self, copy: &Destination) -> Run {
        let to = self.public().display().to_string();
        copy.run("publish", &["--base", &self.base, "--to", &to, "--json"])
    }
}

/// A publisher at a port of its own, behind a relay that stays when it is killed.
pub(crate) struct Served {
    pub(crate) base: String,
    relay: Relay,
    server: Option<Process>,
    /// The address of its metrics, if it has them.
    metrics: Option<String>,
}

impl Served {
    /// None yet, behind its relay.
    fn idle() -> Self {
        let relay = Relay::start().unwrap();
        Self { base: format!("{}/", relay.url()), relay, server: None, metrics: None }
    }

    fn start(copy: &Destination) -> Self {
        Self::with(copy, &[])
    }

    /// Serves a copy with these options.
    fn with(copy: &Destination, options: &[&str]) -> Self {
        let mut served = Self::idle();
        served.restart_with(copy, options);
        served
    }

    /// Kills it with SIGKILL.
    fn stop(&mut self) {
        self.server = None;
    }

    /// Kills it with SIGKILL, and starts it again with these options.
    fn restart_with(&mut self, copy: &Destination, options: &[&str]) {
        self.run(copy.command("publish", options));
    }

    /// Serves a copy to those with a token of a file.
    fn with_tokens(copy: &Destination, tokens: &Path) -> Self {
        Self::with(copy, &["--tokens", tokens.to_str().unwrap()])
    }

    /// Serves a copy, and tells a hub.
    pub(crate) fn with_hub(copy: &Destination, hub: &str) -> Self {
        Self::with(copy, &["--hub", hub])
    }

    /// Kills it with SIGKILL, and starts it again.
    fn restart_with_hub(&mut self, copy: &Destination, hub: &str) {
        self.restart_with(copy, &["--hub", hub]);
    }

    /// Serves a copy with a Resource Dump.
    fn with_dumps(copy: &Destination) -> Self {
        Self::with(copy, &["--dumps"])
    }

    /// Serves the files of a directory with these options.
    fn files(from: &Path, state: &Path, options: &[&str]) -> Self {
        let mut served = Self::idle();
        let mut command = thresher();
        command.args(["publish", "--from"]).arg(from).arg("--state").arg(state).args(options);
        served.run(command);
        served
    }

    /// Kills the publisher with SIGKILL, and starts it again at another port.
    fn restart(&mut self, copy: &Destination) {
        self.restart_with(copy, &[]);
    }

    fn run(&mut self, mut command: Command) {
        self.server = None;
        command.args(["--base", &self.base, "--listen", "127.0.0.1:0"]);
        let mut server = Process::talk(command.stderr(Stdio::inherit()));
        let address = loop {
            let line = server.hear();
            if let Some(address) = line.strip_prefix("metrics on ") {
                self.metrics = Some(address.to_owned());
            }
            if let Some((_, address)) = line.split_once(" on ").filter(|_| line.starts_with("serving ")) {
                break address.to_owned();
            }
        };
        self.relay.lead_to(format!("http://{address}"));
        self.server = Some(server);
    }

    /// The base URL of its OAI-PMH repository.
    fn oai(&self) -> String {
        format!("{}oai", self.base)
    }

    pub(crate) fn well_known(&self) -> String {
        format!("{}.well-known/resourcesync", self.base)
    }
}
