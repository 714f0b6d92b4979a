//! The runner's side of the server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use model::SourceId;

use super::counts::Counts;
use super::population::{Population, address};
use crate::meter;

/// A running server; it ends when dropped.
#[derive(Debug)]
pub(crate) struct SourcesServer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    port: u16,
}

impl SourcesServer {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(population: Population) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve-sources")
            .arg(serde_json::to_string(&population)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal goes to the runner, whose end then ends the server.
            .process_group(0)
            .spawn()
            .context("cannot start the server of the Sources")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("its output is a pipe")?;
        let mut server = Self { child, input, output: BufReader::new(output), port: 0 };
        server.port = server.line()?.parse().context("the server of the Sources told no port")?;
        Ok(server)
    }

    /// The entry URL of a Source.
    pub(crate) fn entry(&self, number: u32) -> String {
        format!("{}/.well-known/resourcesync", self.base(number))
    }

    /// The ID of a Source.
    pub(crate) fn id(&self, number: u32) -> anyhow::Result<SourceId> {
        Ok(SourceId::of_entry(&self.entry(number).parse()?))
    }

    /// The URI of a resource.
    pub(crate) fn uri(&self, number: u32, resource: u32) -> String {
        format!("{}/resource-{resource}.txt", self.base(number))
    }

    /// The counts so far.
    pub(crate) fn counts(&mut self) -> anyhow::Result<Counts> {
        let told = self.told("counts")?;
        serde_json::from_str(&told).context("the server of the Sources told no counts")
    }

    /// When each Source got its first request since the last call, in milliseconds since 1970.
    pub(crate) fn take_first_requests(&mut self) -> anyhow::Result<Vec<Option<i64>>> {
        let told = self.told("first")?;
        serde_json::from_str(&told).context("the server of the Sources told no times")
    }

    /// Updates one resource of a Source now.
    pub(crate) fn change(&mut self, number: u32) -> anyhow::Result<()> {
        self.told(&format!("change {number}")).map(drop)
    }

    /// Its processor time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        meter::process_cpu_seconds(self.child.id())
    }

    /// The most resident memory at any time so far, in bytes.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        meter::process_peak_rss_bytes(self.child.id())
    }

    fn base(&self, number: u32) -> String {
        format!("http://{}:{}", address(number), self.port)
    }

    fn told(&mut self, command: &str) -> anyhow::Result<String> {
        let input = self.input.as_mut().context("its input is a pipe")?;
        writeln!(input, "{command}").context("the server of the Sources has ended")?;
        self.line()
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        anyhow::ensure!(line.ends_with('\n'), "the server of the Sources has ended");
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for SourcesServer {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
