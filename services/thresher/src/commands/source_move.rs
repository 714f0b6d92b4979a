//! `thresher source move`: harvest a Source from another entry URL, and keep what is stored (docs/adr/0067).

mod back;
mod fleet;
mod outcome;

use std::collections::BTreeMap;

use catalog::CatalogConfig;
use model::SourceId;
use planning::HarvestOptions;
use store::{SourceMarker, SourceMove, Store};
use url::Url;

use self::outcome::Outcome;
use crate::cli::{SourceMoveArgs, ViewArg};
use crate::commands::sync;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, note};
use crate::{crawl_delays, http, show, target};

/// Runs the command.
pub(crate) async fn run(args: SourceMoveArgs) -> CommandResult {
    let Some(into) = args.into.clone() else { return fleet::run(args).await };
    let place = target::parse(&into)?;
    target::must_hold_a_harvest(&place)?;
    let store = target::open_store(&place).await?;
    match &args.to {
        Some(to) => {
            let to = to.clone();
            go(&store, args, &into, to).await
        }
        None => back::run(&store, &args, &into).await,
    }
}

/// Moves a Source, and syncs it from its new entry URL.
async fn go(store: &Store, args: SourceMoveArgs, into: &str, to: Url) -> CommandResult {
    http::without_secret(&to)?;
    let start = std::time::Instant::now();
    let moved = begin(store, &args, into, &to).await?;
    let web = args.requests.web(&args.http, &to)?;
    let options = HarvestOptions {
        jobs_per_origin: args.requests.concurrency,
        limits: args.limits.into(),
        retries: args.http.retry_policy(),
        ..sync::wanted(args.spec, &to)
    };
    let view = match args.view {
        // The files of a copy that had none are not written by the way.
        None if !had_view(store, &moved.to).await? => Some(ViewArg::None),
        view => view,
    };
    // Those of the former Source were taken along.
    let labels = BTreeMap::new();
    let request = sync::Request { url: to, into: into.to_owned(), view, web, options, labels };
    let (report, store) = sync::harvest(request).await.inspect_err(|_| {
        note!(
            "{} is moved, but not synced yet: repeat the command, or take the move back with --back",
            moved.source
        );
    })?;
    let exit = if report.guard.is_some() {
        Exit::Failed
    } else if report.in_sync() {
        Exit::Good
    } else {
        Exit::Problems
    };
    show::summary(&report, &target::place(&store), start.elapsed());
    let outcome = Outcome::of(&store, &moved, &report).await?;
    outcome.tell(into);
    if args.json {
        terminal::json(&outcome)?;
    }
    Ok(exit)
}

/// Makes the copy that the new Source begins with, unless an earlier command did.
async fn begin(store: &Store, args: &SourceMoveArgs, into: &str, to: &Url) -> Result<SourceMove, Failed> {
    let left = find(store, &args.source).await?;
    let new = SourceId::of_entry(to);
    if new == left.source {
        return Err(usage(format!(
            "{} is harvested from {to} already; pass another URL with --to",
            left.source
        )));
    }
    let moves = store.moves().await?;
    let known = moves.iter().find(|known| known.source == left.source);
    if let Some(other) = known.filter(|known| known.to != new) {
        return Err(usage(format!(
            "{} was moved to {} already; take that back first, with --back",
            left.source, other.to_url
        )));
    }
    if let Some(whole) = known.filter(|known| known.is_whole) {
        return Ok(whole.clone());
    }
    if known.is_none() && (store.source(&new).await?.is_some() || target::has_catalog(store, &new).await?) {
        return Err(usage(format!(
            "{} has a Source of {to} already; nothing can be moved over it",
            target::place(store)
        )));
    }
    if !harvest::may_move(store, &left.source, CatalogConfig::default()).await? {
        return Err(usage(format!(
            "{} has a run that is not finished; finish it first, with `thresher sync {} --into {into}`",
            left.source, left.url
        )));
    }
    // A URL that leads to nothing changes nothing.
    let client = http::client(args.requests.web(&args.http, to)?)?;
    let options = documents::read_options(resourcesync::Mode::Tolerant, jiff::Timestamp::now());
    let wanted = args.spec.oai.clone().into();
    let pages = args.spec.landing_pages;
    let search = discovery::discover_source(&client, to, &options, Vec::new(), &wanted, pages);
    let (found, _) = crawl_delays::print_during(&client, search).await?;
    if found.sets.is_empty() {
        return Err(usage(format!("{to} offers nothing to harvest; `thresher discover {to}` shows why")));
    }
    let moved = harvest::move_source(store, left, to, jiff::Timestamp::now(), CatalogConfig::default());
    Ok(Box::pin(moved).await?)
}

/// The marker of the named Source.
async fn find(store: &Store, named: &str) -> Result<SourceMarker, Failed> {
    let mut found = store.source(&crate::values::source_id(named)?).await?;
    if let Some(found) = &mut found {
        found.url = target::shown_url(&found.url);
    }
    match found {
        Some(found) => Ok(found),
        None => {
            let problem = format!("{} has no Source {named}", target::place(store));
            Err(target::name_one(&problem, &store.sources().await?))
        }
    }
}

/// Whether the last run of a Source wrote files.
async fn had_view(store: &Store, source: &SourceId) -> Result<bool, Failed> {
    let catalog = target::read_catalog(store, source).await?;
    let last = catalog.last_run().await?;
    catalog.close().await.ok();
    Ok(last.is_some_and(|run| run.view))
}
