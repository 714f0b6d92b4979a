//! A server of thousands of Sources, in a process of its own: one port, and a loopback address for each Source.
//!
//! The runner starts `load-tests serve-sources` and talks to it over its standard input and output: see `handle`. Its
//! processor time is then known apart from the runner's, and it ends with the runner.

mod answer;
mod content;
mod counts;
mod documents;
mod flapping;
mod handle;
mod population;
mod request;
mod serve;

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tokio::io::{AsyncBufReadExt as _, BufReader};

pub(crate) use content::sha256;
pub(crate) use counts::Counts;
pub(crate) use handle::SourcesServer;
pub(crate) use population::{Kind, MOST_SOURCES, Population};
use serve::Site;

/// `serve-sources`.
#[derive(Debug, Args)]
pub(crate) struct ServeSourcesArgs {
    /// The Sources, as JSON.
    pub(crate) population: String,
}

/// Serves until the input ends. The first line of the output is the port; each further one responds to a line of the
/// input: `counts`, `first`, or `change N`.
pub(crate) fn run(arguments: &ServeSourcesArgs) -> anyhow::Result<()> {
    let population: Population =
        serde_json::from_str(&arguments.population).context("the Sources are not as expected")?;
    // One thread is enough, and leaves the other processors to what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (site, port, _serving) = Site::start(population).await?;
        respond(&port.to_string())?;
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            respond(&obey(&site, &line)?)?;
        }
        Ok(())
    })
}

/// Carries out a line of the runner.
fn obey(site: &Arc<Site>, line: &str) -> anyhow::Result<String> {
    match line.split_once(' ') {
        None if line == "counts" => Ok(serde_json::to_string(&site.counts())?),
        None if line == "first" => Ok(serde_json::to_string(&site.take_first_requests())?),
        Some(("change", number)) => Ok(site.change(number.parse()?).to_string()),
        _ => anyhow::bail!("{line:?} is no command: send `counts`, `first` or `change N`"),
    }
}

fn respond(line: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
