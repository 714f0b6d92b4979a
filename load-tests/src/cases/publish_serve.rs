//! `publish-serve`: a server of a publication answers beside nginx: small documents, and ranges of large resources.

mod documents;
mod ranges;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::{interleaved, measured};
use crate::check::{self, Check};
use crate::cli::PublishServeOptions;
use crate::folder::WorkFolder;
use crate::get_all::Got;
use crate::machine::Machine;
use crate::nginx::Nginx;
use crate::peers;
use crate::process::CommandLine;
use crate::publish_server::PublishServer;
use crate::report::{Report, Round, Row};
use crate::thresher::Thresher;

const DOCUMENTS: [&str; 2] = ["small documents, thresher", "small documents, nginx"];
const RANGES: [&str; 2] = ["ranges of 1 MiB, thresher", "ranges of 1 MiB, nginx"];
/// Requests open at once.
const AT_ONCE: u32 = 64;
/// The client may open a connection before an old one is closed, and the bound of one client is 64 by default.
const ANY_NUMBER_OF_CONNECTIONS: [&str; 2] = ["--connections-per-client", "0"];

/// Two servers, and what each is asked for.
struct Pair {
    /// `thresher publish`, and the lines that the client reads.
    own: (PublishServer, String),
    /// The same of nginx, which has the bytes as files.
    nginx: (Nginx, String),
    requests: u64,
    /// The bytes of all bodies. The same bytes come from both, if `is_equal`.
    bytes: u64,
    is_equal: bool,
}

/// Runs the case.
pub(crate) fn run(options: &PublishServeOptions) -> anyhow::Result<Report> {
    let PublishServeOptions { common: options, ranges, documents } = options;
    let thresher = Thresher::get(options)?;
    let nginx = peers::nginx()?;
    let work = WorkFolder::new(options, "publish-serve")?;
    let machine = Machine::here(work.path());
    let documents = documents::pair(&thresher, &nginx, &work, documents.get())?;
    let ranges = ranges::pair(&thresher, &work, ranges.get())?;
    let entrants = [(0, true), (0, false), (1, true), (1, false)];
    let pairs = [&documents, &ranges];
    let name = |(pair, is_own): (usize, bool)| [DOCUMENTS, RANGES][pair][usize::from(!is_own)];
    let mut rows: Vec<Row> = interleaved(&entrants, name, 0, options, |(pair, is_own), round| {
        let folder = work.make(&format!("round-{round}-{pair}-{is_own}"))?;
        pairs[pair].ask(is_own, folder)
    })?;
    for row in &mut rows {
        row.resources = if DOCUMENTS.contains(&row.name) { documents.requests } else { ranges.requests };
    }
    let setup = BTreeMap::from([
        ("documents", json!(documents.requests)),
        ("ranges", json!(ranges.requests)),
        ("requests_at_a_time", json!(AT_ONCE)),
        ("rounds", json!(options.rounds)),
        ("transport", json!("HTTP/1.1 over loopback")),
    ]);
    let versions = vec![thresher.version.clone(), nginx.version];
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "publish-serve", finished_at, machine, setup, versions, rows };
    let mut report = report.summed_up(&[DOCUMENTS[1], RANGES[1]]);
    for row in &mut report.rows {
        // Documents and ranges are not compared with each other.
        let pair = if DOCUMENTS.contains(&row.name) { DOCUMENTS } else { RANGES };
        if let Some(summary) = &mut row.summary {
            summary.times_as_fast_as.retain(|other, _| pair.contains(other));
        }
    }
    Ok(report)
}

impl Pair {
    /// Sends all requests to one of the servers.
    fn ask(&self, is_own: bool, folder: PathBuf) -> anyhow::Result<(String, Round)> {
        let lines = if is_own { &self.own.1 } else { &self.nginx.1 };
        fs::write(folder.join("urls.txt"), lines)?;
        let client = CommandLine::new(std::env::current_exe()?);
        let client = client.args(["get-all", "urls.txt", "--at-once", &AT_ONCE.to_string()]);
        let used = || if is_own { self.own.0.cpu_seconds() } else { self.nginx.0.cpu_seconds() };
        let before = used();
        let (ended, mut done): (_, Round) = measured(&client, &folder, None)?;
        ended.succeeded()?;
        done.source_cpu_seconds = used() - before;
        let got: Got = serde_json::from_str(&ended.output()?)?;
        done.checks = vec![Check::equal("bodies", self.requests, got.bodies)];
        if is_own {
            // The most at any time so far: more bytes must not take more memory.
            let peak = self.own.0.peak_rss_bytes();
            done.checks.push(Check {
                what: format!("server: {}", check::resident(peak).what),
                ..check::resident(peak)
            });
            done.counted = BTreeMap::from([("server_peak_rss_bytes".to_owned(), peak)]);
        }
        if self.is_equal || !is_own {
            done.checks.push(Check::equal("bytes", self.bytes, got.bytes));
        }
        Ok((client.shown(&folder), done))
    }
}
