//! `load-tests measure`: runs one command and records its time, its processor time and its peak memory.
//!
//! For ended children the kernel only reports the highest peak of all of them. A process with a single child
//! gets that child's own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

use crate::stats::rounded;

/// `measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Where to write what was used, as JSON.
    #[arg(long)]
    pub(crate) report: PathBuf,
    /// Kill the command after so many seconds.
    #[arg(long)]
    pub(crate) limit_s: u64,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Resources used by one run of a command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// From before it was started until after it ended.
    pub(crate) seconds: f64,
    /// In user and kernel mode, over all its threads.
    pub(crate) cpu_seconds: f64,
    /// The most resident memory at any time; never less than the few MB of this process, its parent.
    pub(crate) peak_rss_bytes: u64,
    /// Its exit status; absent when a signal ended it.
    pub(crate) exit_status: Option<i32>,
}

/// Runs the command.
pub(crate) fn run(arguments: &MeasureArgs) -> anyhow::Result<()> {
    let Some((program, rest)) = arguments.command.split_first() else { bail!("no command to measure") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (status, seconds) = runtime.block_on(async {
        let start = Instant::now();
        let mut child = tokio::process::Command::new(program)
            .args(rest)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let ended = tokio::time::timeout(Duration::from_secs(arguments.limit_s), child.wait()).await;
        let seconds = start.elapsed().as_secs_f64();
        match ended {
            Ok(status) => anyhow::Ok((status?, seconds)),
            Err(_) => {
                child.kill().await?;
                bail!("{} was killed after {} s", program.display(), arguments.limit_s)
            }
        }
    })?;
    let used =
        getrusage(UsageWho::RUSAGE_CHILDREN).context("the kernel does not tell what the command used")?;
    let usage = Usage {
        seconds: rounded(seconds),
        cpu_seconds: rounded(in_seconds(used.user_time()) + in_seconds(used.system_time())),
        // The kernel counts in KiB.
        peak_rss_bytes: u64::try_from(used.max_rss()).unwrap_or_default() * 1024,
        exit_status: status.code(),
    };
    std::fs::write(&arguments.report, serde_json::to_vec(&usage)?)
        .with_context(|| format!("cannot write {}", arguments.report.display()))
}

fn in_seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}
