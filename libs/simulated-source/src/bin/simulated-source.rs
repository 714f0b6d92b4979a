//! Serves a simulated Source on loopback until it is stopped.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use simulated_source::{Algorithm, Changes, SimulatedSource, Size, SourceSpec};

/// A simulated ResourceSync Source on 127.0.0.1.
#[derive(Debug, Parser)]
#[command(name = "simulated-source")]
struct Cli {
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// What everything random is derived from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many resources there are.
    #[arg(long, default_value_t = 1000)]
    resources: u64,
    /// The size of each resource in bytes; with --max-size, the least.
    #[arg(long, default_value_t = 2048)]
    size: u64,
    /// The greatest size of a resource in bytes.
    #[arg(long)]
    max_size: Option<u64>,
    /// More resources than this make a Resource List Index.
    #[arg(long, default_value_t = 50_000)]
    entries_per_list: u64,
    /// More changes than this make a Change List Index.
    #[arg(long, default_value_t = 50_000)]
    entries_per_change_list: u64,
    /// Digests to declare, of md5, sha-1 and sha-256; an empty value declares none.
    #[arg(long, value_delimiter = ',', default_value = "sha-256")]
    digests: Vec<String>,
    /// Declare no lengths.
    #[arg(long)]
    no_length: bool,
    /// Declare no lastmod.
    #[arg(long)]
    no_lastmod: bool,
    /// Keep no Change List.
    #[arg(long)]
    no_change_list: bool,
    /// The name of the set.
    #[arg(long, default_value = "set")]
    set: String,
    /// Serve documents as gzip files.
    #[arg(long)]
    gzip: bool,
    /// Let every answer wait so many milliseconds.
    #[arg(long, value_name = "MS")]
    latency_ms: Option<u64>,
    /// Every so many seconds create one resource, update eight and delete one.
    #[arg(long, value_name = "SECONDS")]
    change_every: Option<u64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulated-source: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn serve(cli: Cli) -> anyhow::Result<()> {
    let change_every = cli.change_every.map(|seconds| Duration::from_secs(seconds.max(1)));
    let spec = cli.into_spec()?;
    let port = spec.port;
    let source =
        SimulatedSource::start(spec).await.with_context(|| format!("cannot listen on port {port}"))?;
    println!("{}", source.url());
    eprintln!("Source Description: {}\nCtrl-C stops it.", source.well_known());
    loop {
        tokio::select! {
            stopped = tokio::signal::ctrl_c() => return Ok(stopped?),
            () = pause(change_every) => {
                let made = source.change(Changes { create: 1, update: 8, delete: 1 });
                eprintln!("{} changes, now {}", made.len(), source.now());
            }
        }
    }
}

impl Cli {
    fn into_spec(self) -> anyhow::Result<SourceSpec> {
        let digests = self.digests.iter().filter(|name| !name.is_empty()).map(|name| name.parse());
        let digests: Result<Vec<Algorithm>, String> = digests.collect();
        Ok(SourceSpec {
            seed: self.seed,
            resources: self.resources,
            size: self.max_size.map_or(Size::Fixed(self.size), |most| Size::Range(self.size, most)),
            entries_per_list: self.entries_per_list.max(1),
            digests: digests.map_err(anyhow::Error::msg)?,
            declare_length: !self.no_length,
            declare_lastmod: !self.no_lastmod,
            change_list: !self.no_change_list,
            entries_per_change_list: self.entries_per_change_list.max(1),
            latency: self.latency_ms.map(Duration::from_millis),
            crawl_delay: None,
            set: self.set,
            gzip: self.gzip,
            count_paths: false,
            port: self.port,
            hub: String::new(),
        })
    }
}

async fn pause(period: Option<Duration>) {
    match period {
        Some(period) => tokio::time::sleep(period).await,
        None => std::future::pending().await,
    }
}
