//! One process of a fleet.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::Instant;

use anyhow::Context as _;

use super::metrics::{counter, gauge};
use super::{LOOK, START_UP};
use crate::meter;
use crate::plain_http::get;

/// A process; it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) name: String,
    /// Its lines of configuration.
    pub(super) more: String,
    pub(super) child: Child,
    pub(super) log: PathBuf,
}

/// A process that was killed.
#[derive(Debug)]
pub(super) struct Killed {
    pub(super) name: String,
    pub(super) metrics: String,
    pub(super) cpu_seconds: f64,
    pub(super) peak_rss_bytes: u64,
}

impl Service {
    /// Whether it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.ask("/readyz").is_ok()
    }

    /// The URL of its gateway, as soon as it has logged it.
    #[expect(clippy::disallowed_methods, reason = "commands of the fleet block their thread too")]
    pub(super) fn api(&self) -> anyhow::Result<String> {
        let began = Instant::now();
        while began.elapsed() < START_UP {
            if let Some((_, rest)) = fs::read_to_string(&self.log)?.split_once("api.address=") {
                let address = rest.split_whitespace().next().context("its log ends there")?;
                return Ok(format!("http://{address}"));
            }
            std::thread::sleep(LOOK);
        }
        anyhow::bail!("no gateway in time: see {}", self.log.display())
    }

    /// Its metrics.
    pub(super) fn metrics(&self) -> anyhow::Result<String> {
        self.ask("/metrics").with_context(|| format!("the {} tells no metrics", self.name))
    }

    /// The value of a counter, of its samples with `label`.
    pub(super) fn counted(&self, metric: &str, label: &str) -> anyhow::Result<u64> {
        Ok(counter(&self.metrics()?, metric, label))
    }

    /// The value of a gauge, all its labels together.
    pub(super) fn gauge(&self, metric: &str) -> anyhow::Result<u64> {
        Ok(gauge(&self.metrics()?, metric))
    }

    /// Processor time that it has used so far, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        meter::process_cpu_seconds(self.child.id())
    }

    /// Its most resident memory at any time so far, in bytes.
    pub(super) fn peak_rss_bytes(&self) -> u64 {
        meter::process_peak_rss_bytes(self.child.id())
    }

    /// Kills it (`kill -9`); returns what it had used, and what it had counted until just before.
    pub(super) fn kill(&mut self) -> anyhow::Result<Killed> {
        let killed = Killed {
            name: self.name.clone(),
            // One that was killed before it listened has counted nothing.
            metrics: self.metrics().unwrap_or_default(),
            cpu_seconds: self.cpu_seconds(),
            peak_rss_bytes: self.peak_rss_bytes(),
        };
        self.child.kill()?;
        self.child.wait()?;
        Ok(killed)
    }

    /// Sends a request to its admin port, whose address is in its log. Fails without a status of 200.
    fn ask(&self, path: &str) -> anyhow::Result<String> {
        let log = fs::read_to_string(&self.log)?;
        let address = log.split_once("admin.address=").and_then(|(_, rest)| rest.split_whitespace().next());
        get(address.context("it has not logged its address yet")?, path)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
