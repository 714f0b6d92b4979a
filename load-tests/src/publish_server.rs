//! `thresher publish --listen`.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::nginx::free_port;
use crate::thresher::Thresher;
use crate::{meter, plain_http};
use anyhow::{Context as _, ensure};

/// A small document of each publication.
pub(super) const DOCUMENT: &str = "capabilitylist.xml";
/// The pause between two looks for the server.
const LOOK: Duration = Duration::from_millis(50);
/// How long the server may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of what a harvest holds. It ends when dropped.
pub(super) struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts one, and waits until it answers.
    pub(super) fn start(thresher: &Thresher, into: &Path) -> anyhow::Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let mut command = thresher.command();
        command.args(["publish", "--base", &base(&address), "--listen", &address, "--into"]).arg(into);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().context("thresher publish does not start")?;
        let server = Self { process, address };
        let start = Instant::now();
        while server.get(DOCUMENT).is_err() {
            ensure!(start.elapsed() < PATIENCE, "thresher publish serves nothing after {PATIENCE:?}");
            std::thread::park_timeout(LOOK);
        }
        Ok(server)
    }

    /// The base of the publication.
    pub(super) fn base(&self) -> String {
        base(&self.address)
    }

    /// A document of it.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<String> {
        plain_http::get(&self.address, &format!("/{path}"))
    }

    /// Its processor time so far, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        meter::process_cpu_seconds(self.process.id())
    }
}

fn base(address: &str) -> String {
    format!("http://{address}/")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
