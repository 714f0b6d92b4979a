//! `thresher sync`: sync a Source into a directory or bucket.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bus::{Bus, MemoryBus};
use catalog::Catalog;
use harvest::{HarvestError, Parts, Progress, Report};
use model::{Counters, HomeSite, Mode, Origins, RunMode, SourceId, SystemClock};
use planning::{Filter, HarvestOptions};
use serde::Serialize;
use store::{SourceMarker, SourceMove, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use url::Url;
use web::WebConfig;

use crate::cli::{ScopeArgs, SpecArgs, SyncArgs, ViewArg};
use crate::commands::audit::{self, OutputOptions};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, note};
use crate::{crawl_delays, http, show, target};

/// The most messages in one queue of the in-process bus.
pub(crate) const BUS_CAPACITY: usize = 1024;

/// The result as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    run: String,
    source: String,
    mode: Mode,
    in_sync: bool,
    listed: u64,
    stored: u64,
    healed: u64,
    /// Stored ones whose bytes a mirror gave.
    mirrored: u64,
    /// Stored ones that patches made.
    patched: u64,
    /// Resources whose patches were not applied.
    patches_unused: u64,
    /// Bytes that were not received, because patches made them.
    bytes_saved: u64,
    unchanged: u64,
    deleted: u64,
    failed: u64,
    absent: u64,
    /// Records of OAI-PMH that were asked for as a sample.
    sampled: u64,
    /// Entries of other sites.
    foreign: u64,
    /// Those that `--origins same` left out.
    foreign_left_out: u64,
    /// Those that `--only` left out.
    out_of_scope: u64,
    /// Those whose links are fetched in their place, by a `--follow-rule`.
    by_rule: u64,
    /// Those whose first Source is a publication of this store.
    loops: u64,
    /// Links that `--follow-links` and `--follow-rule` followed.
    linked: u64,
    /// Problems that the operator ignores.
    ignored: u64,
    bytes: u64,
    requests: u64,
    quirks: BTreeMap<String, u64>,
    gaps: u64,
    duration_ms: u64,
}

/// Settings of a harvest, independent of the command that starts it.
pub(crate) struct Request {
    pub(crate) url: Url,
    pub(crate) into: String,
    pub(crate) view: Option<ViewArg>,
    pub(crate) web: WebConfig,
    pub(crate) options: HarvestOptions,
    /// Labels of the Source. None: those of the last run.
    pub(crate) labels: BTreeMap<String, String>,
}

/// Runs the command.
pub(crate) async fn run(args: SyncArgs) -> CommandResult {
    let start = Instant::now();
    let into = match &args.into {
        Some(into) => into.clone(),
        None => target::default_directory(&args.url)?,
    };
    let web = args.requests.web(&args.http, &args.url)?;
    let labels = args.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let options = HarvestOptions {
        rediscover: args.rediscover,
        rediscover_after: args.rediscover_after,
        jobs_per_origin: args.requests.concurrency,
        limits: args.limits.into(),
        retries: args.http.retry_policy(),
        ..wanted(args.spec, &args.url)
    };
    let request = Request { url: args.url.clone(), into, view: args.view, web, options, labels };
    let (report, store) = harvest(request).await?;
    let duration = start.elapsed();
    if report.run.counters.audit.is_some() {
        return audit::print(
            &args.url,
            &report,
            duration,
            OutputOptions { json: args.json, ..OutputOptions::default() },
        );
    }

    let exit = match &report {
        Report { guard: Some(_), .. } => Exit::Failed,
        report if report.in_sync() => Exit::Good,
        _ => Exit::Problems,
    };
    show::summary(&report, &target::place(&store), duration);
    if let Some(offer) = &report.resourcesync {
        note!(
            "  the site offers ResourceSync too: `thresher source move {} --to {offer} --into {}` moves there, and keeps \
             what is stored",
            SourceId::of_entry(&args.url),
            target::place(&store)
        );
    }
    if args.json {
        terminal::json(&Outcome::new(&args.url, &report, duration.as_millis()))?;
    }
    Ok(exit)
}

/// The harvest options of a spec.
pub(crate) fn wanted(args: SpecArgs, entry: &Url) -> HarvestOptions {
    let within = within(args.scope, entry);
    HarvestOptions {
        terms: model::Terms { max_body_bytes: args.max_size, ..within.terms.clone() },
        mode: match args.mode {
            RunMode::Auto => None,
            RunMode::Baseline => Some(Mode::Baseline),
            RunMode::Incremental => Some(Mode::Incremental),
            RunMode::Audit => Some(Mode::Audit),
        },
        prefer: args.prefer,
        oai: args.oai.into(),
        landing_pages: args.landing_pages,
        keep_versions: args.keep_versions,
        ..within
    }
}

/// The harvest options of a scope.
pub(crate) fn within(scope: ScopeArgs, entry: &Url) -> HarvestOptions {
    HarvestOptions {
        strict: scope.strict,
        terms: model::Terms { accept_html: scope.accept_html, ..model::Terms::default() },
        filter: Filter {
            include: scope.include,
            exclude: scope.exclude,
            only_of: (scope.origins == Origins::Same).then(|| HomeSite::of(entry)),
            only: scope.only,
            // The run reads it from the store.
            published: Vec::new(),
        },
        mirrors: scope.mirrors,
        patches: scope.patches,
        follow: scope.follow.into(),
        absent: scope.absent,
        max_deletes_percent: scope.max_deletes,
        ..HarvestOptions::default()
    }
}

/// Harvests, with all stages in this process, and shows the progress.
pub(crate) async fn harvest(request: Request) -> Result<(Report, Store), Failed> {
    let (progress, watched) = watch::channel(Progress::default());
    let shown = show::watch(watched);
    let harvested = harvest_over(Arc::new(MemoryBus::new(BUS_CAPACITY)), request, progress).await;
    shown.finish().await;
    harvested
}

async fn harvest_over(
    bus: Arc<dyn Bus>,
    request: Request,
    progress: watch::Sender<Progress>,
) -> Result<(Report, Store), Failed> {
    if !matches!(request.url.scheme(), "http" | "https") {
        return Err(usage(format!("{} is no http or https URL; pass one", request.url)));
    }
    let place = target::parse(&request.into)?;
    let is_audit = request.options.mode == Some(Mode::Audit);
    if is_audit {
        target::must_hold_a_harvest(&place)?;
    }
    // Loads the trusted certificates while the store and the catalog are opened.
    let client = tokio::task::spawn_blocking(move || http::client(request.web));
    let store = target::open_store(&place).await?;
    let source = SourceId::of_entry(&request.url);
    if is_audit && !Catalog::exists(&store.object_store(), &target::catalog_path(&source)).await? {
        return Err(HarvestError::NeverSynced { source_url: request.url.to_string() }.into());
    }
    let view = match (request.view, store.view()) {
        (Some(ViewArg::None), _) | (None, None) => None,
        (Some(ViewArg::Files), None) => {
            return Err(usage(format!(
                "--view files needs a directory, but {} is none. Leave it out, or pass a directory with --into",
                store.root()
            )));
        }
        (_, Some(view)) => Some(view),
    };
    refuse_moved(&store, &source, &request.into).await?;
    let held = target::sources_in_use(&store).await?;
    if let Some(other) =
        held.iter().find(|note| note.source != source).filter(|_| view.is_some() && !is_audit)
    {
        return Err(usage(format!(
            "{} already has the Source {}; files of two Sources would mix. Pass another directory with --into, or \
             --view none",
            target::place(&store),
            target::shown_url(&other.url)
        )));
    }
    let catalog = target::open_catalog(&store, &source).await?;
    let client = client.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    // An audit leaves the view as it is: written or not.
    let view = match (is_audit, catalog.last_run().await?) {
        (true, Some(run)) => view.filter(|_| run.view),
        _ => view,
    };
    let labels = match request.labels {
        // Those of the last run stay.
        labels if labels.is_empty() => {
            store.source(&source).await?.map(|known| known.labels).unwrap_or_default()
        }
        labels => labels,
    };
    let note = SourceMarker { labels, ..SourceMarker::new(source.clone(), request.url.as_str()) };

    let watched_client = client.clone();
    let (stop, at_once) = stop_on_interrupt();
    let parts = Parts {
        source,
        entry: request.url,
        catalog,
        store: store.clone(),
        view,
        client,
        bus,
        clock: Arc::new(SystemClock),
        options: request.options,
        progress,
        observer: None,
        push_lag: harvest::PushLag::default(),
        stop,
    };
    // On a worker thread: the command's own thread only waits, and would have to be woken at every step.
    let harvest = async move {
        let harvest = async move { pipeline::harvest(parts, &note, &at_once).await };
        AbortOnDropHandle::new(tokio::spawn(harvest)).await
    };
    let report = crawl_delays::print_during(&watched_client, harvest).await;
    let report = report.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    Ok((report, store))
}

/// Refuses a Source that was moved, and one whose move is not finished.
async fn refuse_moved(store: &Store, source: &SourceId, into: &str) -> Result<(), Failed> {
    for SourceMove { source: left, url, to, to_url, is_whole, .. } in store.moves().await? {
        if left == *source {
            return Err(usage(format!(
                "{url} was moved to {to_url}; sync that. `thresher source move {left} --back --into {into}` takes it \
                 back"
            )));
        }
        if to == *source && !is_whole {
            return Err(usage(format!(
                "the move from {url} is not finished; repeat `thresher source move {left} --to {to_url} --into {into}`"
            )));
        }
    }
    Ok(())
}

/// The first Ctrl-C stops between two batches (the first token); a second one stops at once, which loses
/// nothing either.
pub(crate) fn stop_on_interrupt() -> (CancellationToken, CancellationToken) {
    let tokens = (CancellationToken::new(), CancellationToken::new());
    let (stop, at_once) = tokens.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            note!("stopping after this batch; press Ctrl-C again to stop immediately");
            stop.cancel();
            if tokio::signal::ctrl_c().await.is_ok() {
                at_once.cancel();
            }
        }
    });
    tokens
}

impl Outcome {
    fn new(url: &Url, report: &Report, duration_ms: u128) -> Self {
        // Without `..`: a counter that is new must be told, or left out on purpose.
        let Counters {
            listed,
            stored,
            healed,
            mirrored,
            patched,
            patches_unused,
            bytes_saved,
            unchanged,
            deleted,
            failed,
            bytes,
            requests,
            sampled,
            foreign,
            foreign_left_out,
            out_of_scope,
            by_rule,
            loops,
            linked,
            absent,
            gaps,
            quirks,
            // That of the run counts listed resources only; here all problems count.
            ignored: _,
            superseded: _,
            planned: _,
            documents_failed: _,
            // `thresher audit` tells it.
            audit: _,
        } = report.run.counters.clone();
        Self {
            run: report.run.id.to_string(),
            source: url.to_string(),
            mode: report.run.mode,
            in_sync: report.in_sync(),
            listed,
            stored,
            healed,
            mirrored,
            patched,
            patches_unused,
            bytes_saved,
            unchanged,
            deleted,
            failed,
            absent,
            sampled,
            foreign,
            foreign_left_out,
            out_of_scope,
            by_rule,
            loops,
            linked,
            ignored: report.ignored_problems,
            bytes,
            requests,
            quirks,
            gaps,
            duration_ms: u64::try_from(duration_ms).unwrap_or(u64::MAX),
        }
    }
}
