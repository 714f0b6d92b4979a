//! Small documents of a publication, as a server of it sends them, and as nginx does that has them as files.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::held::Held;
use super::{Bench, interleaved, measured};
use crate::check::Check;
use crate::cli::Options;
use crate::get_all::Got;
use crate::nginx::{Nginx, free_port};
use crate::process::CommandLine;
use crate::report::{Round, Row};
use crate::{meter, peers, plain_http};

pub(super) const THRESHER: &str = "small documents, thresher";
pub(super) const NGINX: &str = "small documents, nginx";
/// Resources of the publication: its documents are small.
const RESOURCES: u64 = 1_000;
const REQUESTS: u64 = 100_000;
const AT_ONCE: u32 = 64;
/// The document that is asked for.
const DOCUMENT: &str = "capabilitylist.xml";
/// The pause between two looks for the server.
const LOOK: Duration = Duration::from_millis(50);
/// How long the server may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of the publication. It ends when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Measures both.
pub(super) fn rows(bench: &Bench, options: &Options) -> anyhow::Result<Vec<Row>> {
    let into = bench.work.make("small")?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(Held::fill(&into, RESOURCES))?;
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let base = format!("http://{address}/");
    let public = bench.work.path().join("small-public");
    let laid = bench.thresher.measured().args(["publish", "--base", &base, "--documents-only", "--into"]);
    let laid = laid.arg(&into).arg("--to").arg(&public);
    laid.measured(bench.work.path())?.succeeded()?;
    let nginx = Nginx::start(&peers::nginx()?.program, &public, "")?;

    let mut command = bench.thresher.command();
    command.args(["publish", "--base", &base, "--listen", &address, "--into"]).arg(&into);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(command.spawn().context("thresher publish does not start")?);
    let start = Instant::now();
    while plain_http::get(&address, &format!("/{DOCUMENT}")).is_err() {
        ensure!(start.elapsed() < PATIENCE, "thresher publish serves nothing after {PATIENCE:?}");
        runtime.block_on(async { tokio::time::sleep(LOOK).await });
    }
    let same = fs::read_to_string(public.join(DOCUMENT))?;

    interleaved(
        &[THRESHER, NGINX],
        |name| name,
        REQUESTS,
        options,
        |name, round| {
            let at = if name == THRESHER { base.clone() } else { nginx.base() };
            let folder: PathBuf = bench.work.make(&format!("served-{round}-{}", name.len()))?;
            let url = format!("{}/{DOCUMENT}\n", at.trim_end_matches('/'));
            fs::write(folder.join("urls.txt"), url.repeat(REQUESTS as usize))?;
            let client = CommandLine::new(std::env::current_exe()?);
            let client = client.args(["get-all", "urls.txt", "--at-once", &AT_ONCE.to_string()]);
            let used = || {
                if name == THRESHER { meter::process_cpu_seconds(server.0.id()) } else { nginx.cpu_seconds() }
            };
            let before = used();
            let (ended, mut done): (_, Round) = measured(&client, &folder, None)?;
            ended.succeeded()?;
            done.source_cpu_seconds = used() - before;
            let got: Got = serde_json::from_str(&ended.output()?)?;
            let bytes = REQUESTS * same.len() as u64;
            done.checks = vec![Check::equal("bodies", REQUESTS, got.bodies)];
            if name == NGINX {
                done.checks.push(Check::equal("bytes", bytes, got.bytes));
            }
            Ok((client.shown(bench.work.path()), done))
        },
    )
}
