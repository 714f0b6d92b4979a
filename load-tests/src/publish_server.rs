//! `thresher publish --listen`.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use crate::nginx::free_port;
use crate::place::Place;
use crate::thresher::Thresher;
use crate::{meter, plain_http};

/// A small document of each publication.
pub(crate) const DOCUMENT: &str = "capabilitylist.xml";
/// The pause between two looks for the server.
const LOOK: Duration = Duration::from_millis(50);
/// How long the server may take to begin.
const PATIENCE: Duration = Duration::from_secs(600);

/// A server of what a harvest holds. It ends when dropped.
pub(crate) struct PublishServer {
    process: Child,
    address: String,
}

impl PublishServer {
    /// Starts one with these options, and waits until it answers.
    pub(crate) fn start(thresher: &Thresher, place: &Place, options: &[&str]) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut server = Self { process: spawn(&address, thresher, place, options)?, address };
        server.until_ready()?;
        Ok(server)
    }

    /// Starts one of the files of a directory, and waits until it answers. Documents and digests are kept in `state`.
    pub(crate) fn of_files(
        thresher: &Thresher,
        files: &Path,
        state: &Path,
        options: &[&str],
    ) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut command = publish(&address, thresher);
        command.arg("--from").arg(files).arg("--state").arg(state).args(options);
        let mut server = Self { process: begin(command)?, address };
        server.until_ready()?;
        Ok(server)
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }

    /// Starts it again at its address, and waits until it answers.
    pub(crate) fn start_again(
        &mut self,
        thresher: &Thresher,
        place: &Place,
        options: &[&str],
    ) -> anyhow::Result<()> {
        self.kill();
        self.process = spawn(&self.address, thresher, place, options)?;
        self.until_ready()
    }

    fn until_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.get(DOCUMENT).is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("thresher publish has ended: {status}");
            }
            ensure!(start.elapsed() < PATIENCE, "thresher publish serves nothing after {PATIENCE:?}");
            std::thread::park_timeout(LOOK);
        }
        Ok(())
    }

    /// The base of the publication.
    pub(crate) fn base(&self) -> String {
        base(&self.address)
    }

    /// A document of it.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<String> {
        plain_http::get(&self.address, &format!("/{path}"))
    }

    /// Its processor time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        meter::process_cpu_seconds(self.process.id())
    }

    /// The most resident memory that it had at any time so far.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        meter::process_peak_rss_bytes(self.process.id())
    }
}

fn spawn(address: &str, thresher: &Thresher, place: &Place, options: &[&str]) -> anyhow::Result<Child> {
    let mut command = publish(address, thresher);
    command.envs(place.environment.iter().cloned()).args(["--into", &place.into]).args(options);
    begin(command)
}

fn publish(address: &str, thresher: &Thresher) -> Command {
    let mut command = thresher.command();
    command.args(["publish", "--base", &base(address), "--listen", address]);
    command
}

fn begin(mut command: Command) -> anyhow::Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("thresher publish does not start")
}

/// An address at which nothing listens.
pub(crate) fn free_address() -> anyhow::Result<String> {
    Ok(format!("127.0.0.1:{}", free_port()?))
}

fn base(address: &str) -> String {
    format!("http://{address}/")
}

impl Drop for PublishServer {
    fn drop(&mut self) {
        self.kill();
    }
}
