//! Serves a simulated OAI-PMH repository on loopback until it is stopped.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use simulated_source::{
    Changes, Deletions, FileFormat, RepositoryFault, RepositorySpec, SimulatedRepository, Unit,
};

/// A simulated OAI-PMH repository on 127.0.0.1.
#[derive(Debug, Parser)]
#[command(name = "simulated-repository")]
struct Cli {
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// What everything random is derived from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many records there are, deleted ones included.
    #[arg(long, default_value_t = 1000)]
    records: u64,
    /// One of so many records is deleted; 0: none.
    #[arg(long, default_value_t = 0)]
    deleted_every: u64,
    /// Records of a page.
    #[arg(long, default_value_t = 100)]
    page_size: u64,
    /// How many sets there are.
    #[arg(long, default_value_t = 4)]
    sets: u64,
    /// About how many bytes of metadata a record has.
    #[arg(long, default_value_t = 800)]
    metadata_bytes: usize,
    /// Files of each record; with some, the formats that name them are offered too.
    #[arg(long, default_value_t = 0)]
    files: u64,
    /// Formats that name the files of records.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "mets")]
    file_formats: Vec<Format>,
    /// Announce days instead of seconds.
    #[arg(long)]
    days: bool,
    /// How deletions are told.
    #[arg(long, value_enum, default_value = "persistent")]
    deletions: Policy,
    /// So many of 1,000 lists and records fail.
    #[arg(long, value_name = "PER_MILLE")]
    flaky: Option<u32>,
    /// Let every answer wait so many milliseconds.
    #[arg(long, value_name = "MS")]
    latency_ms: Option<u64>,
    /// Every so many seconds create one record, update eight and delete one.
    #[arg(long, value_name = "SECONDS")]
    change_every: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policy {
    No,
    Transient,
    Persistent,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Format {
    OaiDc,
    Mets,
    Xoai,
    OaiOpenaire,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulated-repository: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn serve(cli: Cli) -> anyhow::Result<()> {
    let change_every = cli.change_every.map(|seconds| Duration::from_secs(seconds.max(1)));
    let (port, flaky) = (cli.port, cli.flaky);
    let repository = SimulatedRepository::start(cli.into_spec())
        .await
        .with_context(|| format!("cannot listen on port {port}"))?;
    if let Some(per_mille) = flaky {
        repository.set_fault(RepositoryFault::Flaky(per_mille));
    }
    println!("{}", repository.base_url());
    eprintln!("Ctrl-C stops it.");
    loop {
        tokio::select! {
            stopped = tokio::signal::ctrl_c() => return Ok(stopped?),
            () = pause(change_every) => {
                let changed = repository.change(Changes { create: 1, update: 8, delete: 1 });
                eprintln!("{} changes, now {}", changed.len(), repository.now());
            }
        }
    }
}

impl Cli {
    fn into_spec(self) -> RepositorySpec {
        RepositorySpec {
            seed: self.seed,
            records: self.records,
            deleted_every: self.deleted_every,
            page_size: self.page_size,
            sets: self.sets,
            unit: if self.days { Unit::Day } else { Unit::Second },
            deletions: match self.deletions {
                Policy::No => Deletions::No,
                Policy::Transient => Deletions::Transient,
                Policy::Persistent => Deletions::Persistent,
            },
            metadata_bytes: self.metadata_bytes,
            files: self.files,
            file_formats: self.file_formats.into_iter().map(Into::into).collect(),
            latency: self.latency_ms.map(Duration::from_millis),
            port: self.port,
            ..RepositorySpec::default()
        }
    }
}

impl From<Format> for FileFormat {
    fn from(format: Format) -> FileFormat {
        match format {
            Format::OaiDc => FileFormat::OaiDc,
            Format::Mets => FileFormat::Mets,
            Format::Xoai => FileFormat::Xoai,
            Format::OaiOpenaire => FileFormat::OaiOpenaire,
        }
    }
}

async fn pause(period: Option<Duration>) {
    match period {
        Some(period) => tokio::time::sleep(period).await,
        None => std::future::pending().await,
    }
}
