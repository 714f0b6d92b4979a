//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use url::Url;

pub(crate) use crate::cli_ask::{FleetArgs, HeldArgs, ServerArgs};
pub(crate) use crate::cli_fleet::{
    ApplyArgs, PushArg, RunCommand, RunTargetArgs, ServeArgs, ServiceArg, SourceAddArgs, SourceCommand,
    WhichArgs,
};
pub(crate) use crate::cli_problems::{IgnoreArgs, KindArgs, ProblemsArgs, RetryArgs, SelectArgs};
pub(crate) use crate::cli_scrub::ScrubArgs;
pub(crate) use crate::cli_wanted::{
    AbsentArg, LimitArgs, ModeArg, OriginsArg, PreferArg, RoomArgs, ScopeArgs, WantedArgs,
};
use crate::http::HttpArgs;

/// Keeps a verified copy of what ResourceSync Sources offer.
#[derive(Debug, Parser)]
#[command(name = "thresher", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more: -v what is done, -vv how.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring a copy of a Source in step: the first time all of it, later what has changed.
    Sync(SyncArgs),
    /// Compare what is held with what the Source's documents say, asking for no resource; with --repair, fetch exactly what differs.
    Audit(AuditArgs),
    /// Show what a Source offers, without harvesting it.
    Discover(DiscoverArgs),
    /// Estimate what each way of bringing a copy in step would take, and show which one `sync` would go. Harvests nothing.
    Plan(PlanArgs),
    /// Print a ResourceSync document as JSON lines: first the document, then one line an entry, last the summary.
    Inspect(InspectArgs),
    /// List what a harvest holds.
    Ls(LsArgs),
    /// Write the verified bytes of one resource to standard output.
    Cat(CatArgs),
    /// Tell the story of one resource, or of a message that was given up: its name instead of a URI.
    Explain(ExplainArgs),
    /// List what could not be done, why, and since when.
    Problems(ProblemsArgs),
    /// Have problems tried again by the next run, those that were refused for good or are ignored too.
    Retry(RetryArgs),
    /// Leave problems alone, as long as the Source says the same of what they are about. They stay visible.
    Ignore(IgnoreArgs),
    /// Tell whoever runs a Source what to change, and what is listed, held and declared. Needs no network.
    Report(ReportArgs),
    /// Write what is held as files, as a tar, as a table of all that is known, or as a Resource Dump. Needs no network.
    Export(ExportArgs),
    /// Undo the deletion of resources whose bytes are still kept.
    Restore(RestoreArgs),
    /// Remove what no record points to any more, some time after it was of use. Safe beside harvests, and at any moment to stop.
    Gc(GcArgs),
    /// Read what is held again, and say what of it is damaged or missing: all, a share a day, or a random sample.
    Scrub(ScrubArgs),
    /// Run all services in this process, over NATS and a shared store.
    Serve(ServeArgs),
    /// Add, list or remove the Sources of a fleet.
    #[command(subcommand)]
    Source(SourceCommand),
    /// Have the Sources of a file harvested: adds those that are new, changes those that differ, deletes none.
    Apply(ApplyArgs),
    /// Ask a fleet for runs, and watch, pause, resume, cancel or approve them.
    #[command(subcommand)]
    Run(RunCommand),
    /// Harvest a small simulated Source on this machine, and say what happens. Needs no network.
    Demo(DemoArgs),
    /// Print what a shell needs to complete this command line.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page; with a directory, write one for each command into it.
    Man {
        /// A directory for thresher.1, thresher-sync.1 and all others, such as /usr/local/share/man/man1
        directory: Option<PathBuf>,
    },
}

/// `sync`.
#[derive(Debug, Args)]
pub(crate) struct SyncArgs {
    /// Any way in: a site, a Source Description, a Capability List, or a list itself.
    pub(crate) url: Url,

    /// A directory, or s3://bucket/prefix (with the usual AWS_* environment). Default: ./HOST
    #[arg(long)]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) wanted: WantedArgs,

    /// Ask the Source anew what it offers, even if it was asked a short time ago.
    #[arg(long)]
    pub(crate) rediscover: bool,

    /// For how long to go by what the Source offered when it was last asked: 90s, 5min, 1h 30min. What it offers is
    /// also asked for when a document is not where it should be.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub(crate) rediscover_after: Duration,

    /// Lay resources out as files under readable names. Default: files in a directory, none in s3://
    #[arg(long, value_enum)]
    pub(crate) view: Option<ViewArg>,

    #[command(flatten)]
    pub(crate) room: RoomArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print one JSON object with the result as the last line on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The way in that was harvested. May be left out where --into holds one Source.
    pub(crate) url: Option<Url>,

    /// What is held: a directory, or s3://bucket/prefix. Default: ./HOST; without URL, the directory you are in
    #[arg(long)]
    pub(crate) into: Option<String>,

    /// Put right what differs: fetch what is missing, stale or not as declared, and delete what the Source has deleted.
    #[arg(long)]
    pub(crate) repair: bool,

    /// Print each difference, not only the first of each kind.
    #[arg(long)]
    pub(crate) list: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    #[command(flatten)]
    pub(crate) room: RoomArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Print one JSON object with the result as the last line; with --list, one line for each difference before it.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Any way in: a site, a Source Description, a Capability List, or a list or dump itself.
    pub(crate) url: Url,

    /// The copy that is to be brought in step: a directory, or s3://bucket/prefix. What it holds is not counted. Default, where no gateway is
    /// named: ./HOST
    #[arg(long, conflicts_with_all = ["server", "profile", "token_file"])]
    pub(crate) into: Option<String>,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) wanted: WantedArgs,

    #[command(flatten)]
    pub(crate) room: RoomArgs,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Whether resources are laid out as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// As files under readable names.
    Files,
    /// Only in the store.
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
    /// Any way in.
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
    /// Refuse what breaks the specification, with line and column.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The largest document or package received from a URL: 500MB, 20GiB.
    #[arg(long, value_name = "BYTES", default_value = "16GiB", value_parser = crate::cli_scrub::bytes)]
    pub(crate) max_size: std::num::NonZeroU64,

    #[command(flatten)]
    pub(crate) http: HttpArgs,
}

/// Where a harvest lies.
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
    pub(crate) held: HeldArgs,
    /// Only of this Source: the URL it was harvested from, or its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only URIs that begin with this.
    pub(crate) prefix: Option<String>,
    /// What was held at this moment, as far as versions of that time are kept (sync --history): 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<Timestamp>,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `cat`.
#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub(crate) resource: ResourceArgs,
    /// As this Source gave it: the URL it was harvested from, or its name. Needed where several hold the resource.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Undo the Content-Encoding (gzip or deflate) that the Source sent the bytes with. Without it they come as they are stored.
    #[arg(long)]
    pub(crate) decode: bool,
    /// The version that was held at this moment, if it is kept (sync --history): 2026-01-31, 2026-01-31T12:00:00Z.
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
    /// The Source: the URL it was harvested from, or its name. May be left out where only one lies.
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) held: HeldArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Where to write it: a new or empty directory; a new file for tar and jsonl, or - for standard output. An export that was interrupted
    /// is gone on with when the same is asked for again.
    pub(crate) to: PathBuf,
    /// What to write.
    #[arg(long = "as", value_enum)]
    pub(crate) format: ExportFormat,
    /// The URL under which a Resource Dump will be served: its documents name the packages by it.
    #[arg(long, value_name = "URL", required_if_eq("format", "resourcedump"))]
    pub(crate) base: Option<Url>,
    /// The Source: the URL it was harvested from, or its name. May be left out where only one lies.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only URIs that begin with this.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// Only what was stored (or, in tables, deleted) at this moment or later: 2026-01-31, 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,
    /// Only what was stored (or, in tables, deleted) before this moment.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<Timestamp>,
    /// Only of this media type: application/pdf, or text/* for all of a kind. May be given several times.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
}

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A Resource Dump (RS-33): ZIP packages with their manifests, and the documents that lead to them.
    Resourcedump,
    /// Files under readable names, as in a view.
    Tree,
    /// A tar of the same.
    Tar,
    /// What is known of each resource, deleted ones included: a line of JSON each.
    Jsonl,
    /// The same as tables of Apache Parquet.
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
    /// How long bytes are kept that nothing needs: after they were stored, after a resource let go of them, after its deletion.
    #[arg(long, value_name = "TIME", default_value = "7days", value_parser = retention)]
    pub(crate) keep_for: SignedDuration,
    /// Say what would go, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// In s3://: also make deletions final and rewrite packs that are mostly dead, as is done in a directory. Only while no fleet and
    /// nobody else harvests into it: a harvest that begins meanwhile is shut out, or shuts this out.
    #[arg(long)]
    pub(crate) as_owner: bool,
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
    pub(crate) held: HeldArgs,
    /// Only of this Source: the URL it was harvested from, or its name.
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where to put the harvest. Default: a new directory under the system's temporary directory.
    #[arg(long)]
    pub(crate) into: Option<String>,
    /// How many resources the simulated Source has.
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
