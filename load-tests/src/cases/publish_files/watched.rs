//! A server that hears of changes: from the last write until the Change List tells all of them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::{Bench, MOST_RESIDENT_BYTES};
use crate::cases::unchecked;
use crate::check::Check;
use crate::measure::Usage;
use crate::publish_server::{PublishServer, free_address};
use crate::ready::make_ready;
use crate::report::Round;
use crate::stats::rounded;
use crate::{meter, plain_http};

/// The count of the time that the server took for the scan and for the publication, as its metrics say.
pub(super) const SCANNED: &str = "milliseconds of scan and publication";
/// The pause between two looks at the Change List.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may take until all changes are told.
const PATIENCE: Duration = Duration::from_secs(600);
/// Versions of files that only this row writes.
const VERSIONS: u32 = 1_000;

/// Starts a server, changes files, and waits.
pub(super) fn round(bench: &Bench, folder: &Path, round: u32) -> anyhow::Result<(String, Round)> {
    let metrics = free_address()?;
    let state = folder.join("state");
    let options = ["--metrics", &metrics];
    let server = PublishServer::of_files(&bench.thresher, &bench.files, &state, &options)?;
    let before = Metrics::get(&metrics)?;
    make_ready();
    let (machine, working) = (meter::machine_cpu_seconds()?, server.cpu_seconds());
    let changed = bench.change(VERSIONS + round)?;
    let written = Instant::now();
    until("all changes are told", || Ok(told(&server)? >= changed))?;
    let seconds = written.elapsed().as_secs_f64();
    let usage = Usage {
        seconds: rounded(seconds),
        cpu_seconds: rounded(server.cpu_seconds() - working),
        peak_rss_bytes: server.peak_rss_bytes(),
        exit_status: Some(0),
    };
    let mut done = unchecked(usage, 0.0, meter::machine_cpu_seconds()? - machine);
    until("the publication ends", || Ok(Metrics::get(&metrics)?.publications > before.publications))?;
    let after = Metrics::get(&metrics)?;
    let scanned = ((after.telling_seconds - before.telling_seconds) * 1e3).round() as u64;
    done.counted.insert(SCANNED.to_owned(), scanned);
    done.counted.insert("milliseconds until it is told".to_owned(), (seconds * 1e3).round() as u64);
    done.checks = vec![
        Check::equal("changes", changed, told(&server)?),
        Check::equal("publications", 1, (after.publications - before.publications) as u64),
        Check::holds("folders are watched", after.watched_folders > 1.0),
        Check::equal("scans of everything", 0, (after.whole_scans - before.whole_scans) as u64),
        Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, done.usage.peak_rss_bytes),
    ];
    Ok(("thresher publish --listen --from files --state state".to_owned(), done))
}

/// Waits for a condition.
fn until(what: &str, is_so: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < PATIENCE, "it is waited in vain for {PATIENCE:?}: {what}");
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}

/// What the server says of itself.
struct Metrics {
    telling_seconds: f64,
    publications: f64,
    whole_scans: f64,
    watched_folders: f64,
}

impl Metrics {
    fn get(address: &str) -> anyhow::Result<Self> {
        let text = plain_http::get(address, "/metrics")?;
        let value = |series: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
            let found = found.with_context(|| format!("the server does not say {series}"))?;
            Ok::<f64, anyhow::Error>(found.parse()?)
        };
        Ok(Self {
            telling_seconds: value("thresher_publisher_telling_seconds_sum")?,
            publications: value("thresher_publisher_telling_seconds_count")?,
            whole_scans: value("thresher_publisher_scans_total{extent=\"all\"}")?,
            watched_folders: value("thresher_publisher_watched_folders")?,
        })
    }
}

/// How many changes the Change Lists tell.
fn told(server: &PublishServer) -> anyhow::Result<u64> {
    let index = server.get("changelist.xml")?;
    let lists = index.split("<loc>").skip(1).filter_map(|rest| rest.split("</loc>").next());
    let mut told = 0;
    for list in lists {
        let path = list.strip_prefix(&server.base()).context("a Change List is elsewhere")?;
        told += server.get(path)?.matches("<url>").count() as u64;
    }
    Ok(told)
}
