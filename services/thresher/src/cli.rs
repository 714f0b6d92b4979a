//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use url::Url;

pub(crate) use crate::cli_ask::{GatewayArgs, LocationArgs};
pub(crate) use crate::cli_fleet::{
    ApplyArgs, RunCommand, RunTargetArgs, ServeArgs, ServiceArg, SourceAddArgs, SourceCommand, WhichArgs,
};
pub(crate) use crate::cli_problems::{IgnoreArgs, KindArgs, ProblemsArgs, RetryArgs, SelectArgs};
pub(crate) use crate::cli_scrub::ScrubArgs;
pub(crate) use crate::cli_wanted::{ConcurrencyArgs, LimitArgs, ScopeArgs, WantedArgs};
use crate::http::HttpArgs;

/// Sync ResourceSync Sources into a directory or a bucket, verify every byte, and keep the copy in sync.
#[derive(Debug, Parser)]
#[command(name = "thresher", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more: -v for progress, -vv for details.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sync a Source into a directory or bucket.
    Sync(SyncArgs),
    /// Compare the copy with the Source's lists. With --repair, fetch what differs.
    Audit(AuditArgs),
    /// Show what a Source offers.
    Discover(DiscoverArgs),
    /// Estimate the requests, bytes and time of a sync.
    Plan(PlanArgs),
    /// Print a document or package as JSON lines: the document, its entries, a summary.
    Inspect(InspectArgs),
    /// List resources and their state.
    Ls(LsArgs),
    /// Print the verified bytes of a resource.
    Cat(CatArgs),
    /// Show the history of a resource, or of a dead letter.
    Explain(ExplainArgs),
    /// List open problems.
    Problems(ProblemsArgs),
    /// Retry problems in the next run.
    Retry(RetryArgs),
    /// Ignore problems until the Source changes what they are about. They stay visible.
    Ignore(IgnoreArgs),
    /// Write a report for the Source's operator. Needs no network.
    Report(ReportArgs),
    /// Export files, a tar, JSON lines, Parquet or a Resource Dump. Needs no network.
    Export(ExportArgs),
    /// Undo deletions whose bytes are still stored.
    Restore(RestoreArgs),
    /// Delete unreferenced data after its retention. Safe during syncs, and safe to interrupt.
    Gc(GcArgs),
    /// Find damaged or missing bytes in the store.
    Scrub(ScrubArgs),
    /// Run all services, or some of them, in this process.
    Serve(ServeArgs),
    /// Add, list, show or remove the Sources of a fleet.
    #[command(subcommand)]
    Source(SourceCommand),
    /// Create or update Sources from a file. Deletes none.
    Apply(ApplyArgs),
    /// Start, watch, pause, resume, cancel or approve runs of a fleet.
    #[command(subcommand)]
    Run(RunCommand),
    /// Harvest a simulated Source on this machine. Needs no network.
    Demo(DemoArgs),
    /// Print the completions of a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command into a directory.
    Man {
        /// The directory for thresher.1, thresher-sync.1 and the others, such as /usr/local/share/man/man1
        directory: Option<PathBuf>,
    },
}

/// `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Any URL of the Source: its site, a Source Description, a Capability List, a list or a dump.
    pub(crate) url: Url,

    /// The destination: a directory, or s3://bucket/prefix with the usual AWS_* variables. Default: ./HOST
    #[arg(long)]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) wanted: WantedArgs,

    /// Discover the Source again, even if the cached result is still valid.
    #[arg(long)]
    pub(crate) rediscover: bool,

    /// How long to reuse the result of discovery: 90s, 5min, 1h 30min. A document that has moved triggers discovery
    /// earlier.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub(crate) rediscover_after: Duration,

    /// Whether to write resources as plain files too. Default: files in a directory, none in s3://
    #[arg(long, value_enum)]
    pub(crate) view: Option<ViewArg>,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print the result as one JSON object, last on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The URL that was synced. Optional if --into holds one Source.
    pub(crate) url: Option<Url>,

    /// The harvest: a directory, or s3://bucket/prefix. Default: ./HOST; without a URL, the current directory
    #[arg(long)]
    pub(crate) into: Option<String>,

    /// Fetch what is missing, outdated or mismatched, and delete what the Source deleted.
    #[arg(long)]
    pub(crate) repair: bool,

    /// Print every difference instead of the first ones of each kind.
    #[arg(long)]
    pub(crate) list: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print the result as one JSON object, last on standard output. With --list, one line per difference comes first.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Any URL of the Source: its site, a Source Description, a Capability List, a list or a dump.
    pub(crate) url: Url,

    /// The copy to sync: a directory, or s3://bucket/prefix. What it stores already is not counted. Default, unless a
    /// gateway is named: ./HOST
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,

    #[command(flatten)]
    pub(crate) wanted: WantedArgs,

    #[command(flatten)]
    pub(crate) requests: ConcurrencyArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Whether resources are written as plain files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// Plain files under readable names.
    Files,
    /// No plain files; the store only.
    None,
}

fn duration(text: &str) -> Result<Duration, String> {
    let friendly = text.parse::<SignedDuration>();
    let duration = friendly.ok().and_then(|duration| Duration::try_from(duration).ok());
    duration
        .ok_or_else(|| "give a length of time with its unit, such as 90s, 5min, 1h 30min or 48h".to_owned())
}

/// A moment in UTC, or the beginning of a day.
fn moment(text: &str) -> Result<Timestamp, String> {
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    text.parse::<Timestamp>()
        .ok()
        .or_else(day)
        .ok_or_else(|| "give a day such as 2026-01-31, or a moment such as 2026-01-31T12:00:00Z".to_owned())
}

fn retention(text: &str) -> Result<SignedDuration, String> {
    let span = text.parse::<Span>().ok();
    let length = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    length
        .filter(|length| !length.is_negative())
        .ok_or_else(|| "give a length of time with its unit, such as 7days, 36h or 2weeks".to_owned())
}

/// `discover`.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Any URL of the Source.
    pub(crate) url: Url,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A file, a URL, or - for standard input.
    pub(crate) document: String,
    /// Reject deviations from the specification, with line and column.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The largest document or package to receive from a URL: 500MB, 20GiB.
    #[arg(long, value_name = "BYTES", default_value = "16GiB", value_parser = crate::cli_scrub::bytes)]
    pub(crate) max_size: std::num::NonZeroU64,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Where a harvest is stored.
#[derive(Debug, Args)]
pub(crate) struct HarvestArgs {
    /// The harvest: a directory, or s3://bucket/prefix.
    #[arg(long, default_value = ".")]
    pub(crate) into: String,
}

/// `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Only this Source: its URL or its ID.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only URIs that begin with this.
    pub(crate) prefix: Option<String>,
    /// The state at this time, if versions of that time are kept (sync --keep-versions): 2026-01-31,
    /// 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<Timestamp>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `cat`.
#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub(crate) resource: ResourceArgs,
    /// The copy of this Source: its URL or its ID. Required if several Sources store the resource.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Decode the Content-Encoding (gzip or deflate). Without it, the bytes come as stored.
    #[arg(long)]
    pub(crate) decode: bool,
    /// The version of this time, if it is kept (sync --keep-versions): 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<Timestamp>,
}

/// A resource of a harvest.
#[derive(Debug, Args)]
pub(crate) struct ResourceArgs {
    /// The resource's URI, as the Source writes it.
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The Source: its URL or its ID. Optional if the harvest has one Source.
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The target: a new or empty directory; for tar and jsonl a new file, or - for standard output. The same command
    /// resumes an interrupted export.
    pub(crate) to: PathBuf,
    /// The format.
    #[arg(long = "as", value_enum)]
    pub(crate) format: ExportFormat,
    /// The URL that a Resource Dump will be served at. Its documents name the packages by it.
    #[arg(long, value_name = "URL", required_if_eq("format", "resourcedump"))]
    pub(crate) base: Option<Url>,
    /// The Source: its URL or its ID. Optional if the harvest has one Source.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only URIs that begin with this.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// Only what was stored (in tables: or deleted) at this time or later: 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,
    /// Only what was stored (in tables: or deleted) before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<Timestamp>,
    /// Only this media type: application/pdf, or text/*. Repeatable.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A Resource Dump: ZIP packages with manifests, and the documents that list them.
    Resourcedump,
    /// Plain files, as in a view.
    Tree,
    /// The same files as a tar.
    Tar,
    /// One JSON line per resource, deleted ones included.
    Jsonl,
    /// The same records as Apache Parquet tables.
    Parquet,
}

/// `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The resources' URIs, as the Source writes them.
    #[arg(required = true)]
    pub(crate) uris: Vec<String>,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
}

/// `gc`.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// How long unreferenced bytes stay, counted from when they were stored, replaced or deleted.
    #[arg(long, value_name = "TIME", default_value = "7days", value_parser = retention)]
    pub(crate) retention: SignedDuration,
    /// Print what would be removed; change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// In s3://: also finish deletions and rewrite sparse packs, as in a directory. Requires exclusive access: stop the
    /// fleet and all other syncs into this store first.
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The resource's URI, as the Source writes it.
    pub(crate) uri: String,
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Only this Source: its URL or its ID.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The destination. Default: a new directory under the system's temporary directory.
    #[arg(long)]
    pub(crate) into: Option<String>,
    /// Number of resources of the simulated Source.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) resources: u64,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h 30min"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for wrong in ["", "5", "-1h", "soon"] {
            assert!(duration(wrong).unwrap_err().contains("90s"), "{wrong}");
        }
    }

    #[test]
    fn retention_is_read_in_days_and_weeks_too() {
        assert_eq!(retention("7days"), Ok(SignedDuration::from_hours(7 * 24)));
        assert_eq!(retention("2weeks 1h"), Ok(SignedDuration::from_hours(2 * 7 * 24 + 1)));
        assert_eq!(retention("0s"), Ok(SignedDuration::ZERO));
        for wrong in ["", "7", "-1day", "1month", "soon"] {
            assert!(retention(wrong).unwrap_err().contains("7days"), "{wrong}");
        }
    }

    #[test]
    fn a_text_that_is_no_url_is_wrong_usage() {
        let error = Cli::try_parse_from(["thresher", "sync", "not a url"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
