//! `thresher backfill`: fetch earlier versions that a Source or a web archive still has.

mod fleet;
mod show;

use std::collections::BTreeMap;
use std::time::Instant;

use ::backfill::{Bounds, Checkpoint, Options, Parts, Remark};
use indicatif::HumanDuration;
use model::{BackfillCounts, Phase, SystemClock};
use serde::Serialize;
use store::{SourceMarker, StoreTarget};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::cli::BackfillArgs;
use crate::client::{self, ReadFrom};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, note, say};
use crate::{crawl_delays, http, target};

/// Remarks of one reason that are printed.
const REMARKS_SHOWN: u64 = 20;

/// The result as `--json` prints it, one for each Source.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    source: &'a str,
    url: &'a str,
    /// How many versions of each resource were chosen; none if the Source decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<u32>,
    #[serde(flatten)]
    report: &'a BackfillCounts,
    duration_ms: u128,
}

/// Runs the command.
pub(crate) async fn run(args: BackfillArgs) -> CommandResult {
    let into = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(client) => return fleet::run(&client, &args).await,
    };
    let place = target::parse(&into)?;
    if !args.exclusive && !matches!(place, StoreTarget::Directory(_)) {
        return Err(usage(
            "backfill in s3:// needs exclusive access: stop the fleet and all other syncs into this store, then pass \
             --exclusive",
        ));
    }
    let (_, sources) = target::find_sources(&into, args.source.as_deref()).await?;
    let mut exit = Exit::Good;
    for source in &sources {
        let start = Instant::now();
        let (versions, report) = Box::pin(one(&args, &place, source)).await?;
        if report.failures() > 0 {
            exit = Exit::Problems;
        }
        let duration = start.elapsed();
        if args.json {
            let outcome = Outcome {
                source: source.source.as_str(),
                url: &source.url,
                versions: Some(versions),
                report: &report,
                duration_ms: duration.as_millis(),
            };
            terminal::json(&outcome)?;
        } else {
            show::counts(&source.url, &report)?;
            say!("in {}", HumanDuration(duration))?;
        }
    }
    Ok(exit)
}

/// Backfills one Source. Returns how many versions were wanted, and what was done.
async fn one(
    args: &BackfillArgs,
    place: &StoreTarget,
    note: &SourceMarker,
) -> Result<(u32, BackfillCounts), Failed> {
    let entry: Url = note.url.parse().map_err(usage)?;
    let store = target::open_store(place).await?;
    let reader = target::read_catalog(&store, &note.source).await?;
    let unfinished = reader.last_run().await?.is_some_and(|run| run.phase != Phase::Finished);
    let kept = reader.history().await?.unwrap_or_default();
    reader.close().await?;
    if unfinished {
        return Err(usage(format!(
            "the last run of {} is not finished, and only one command may write into its catalog. Wait for the run, or \
             finish it with `thresher sync`",
            note.url
        )));
    }
    let versions = args.versions.map_or(kept, Into::into);
    if versions == 0 {
        return Err(usage(format!(
            "the syncs of {} keep no earlier versions. Pass --versions N to fetch and keep N of each resource",
            note.url
        )));
    }
    let mut web = args.requests.web(&args.http, &entry)?;
    if let Some(largest) = args.max_size {
        web.bodies.largest = largest.get();
    }
    let at_a_time = web.per_origin.saturating_mul(2);
    let client = http::client(web)?;
    let catalog = target::open_catalog(&store, &note.source).await?;
    let parts = Parts {
        source: &note.source,
        catalog: &catalog,
        store: &store,
        client: &client,
        clock: &SystemClock,
        stop: &CancellationToken::new(),
    };
    let options = Options {
        versions,
        since: args.since,
        any_host: args.any_host,
        archives: args.archives,
        at_a_time,
        bounds: Bounds::COMMAND,
    };
    let mut remarks = Remarks::default();
    let mut told = |remark: &Remark| remarks.print(remark);
    // After a crash, the history itself says what is still to be fetched.
    let mut committed = |_: &Checkpoint| {};
    let work = ::backfill::run(&parts, options, Checkpoint::default(), &mut told, &mut committed);
    let work = Box::pin(work);
    let report = crawl_delays::print_during(&client, work).await;
    remarks.print_rest();
    // What was committed is safe, whether closing succeeds or not.
    let closed = catalog.close().await;
    let report = report?;
    closed?;
    Ok((versions, report))
}

/// Prints remarks: the first of each reason.
#[derive(Debug, Default)]
struct Remarks(BTreeMap<&'static str, u64>);

impl Remarks {
    fn print(&mut self, remark: &Remark) {
        let Remark { uri, at, reason, message, .. } = remark;
        let count = self.0.entry(reason).or_default();
        *count += 1;
        if *count <= REMARKS_SHOWN {
            match uri {
                Some(uri) => note!("{uri}: {at}: {reason}: {message}"),
                None => note!("{at}: {reason}: {message}"),
            }
        }
    }

    fn print_rest(&self) {
        for (reason, count) in &self.0 {
            if let more @ 1.. = count.saturating_sub(REMARKS_SHOWN) {
                note!("{reason}: {more} more");
            }
        }
    }
}
