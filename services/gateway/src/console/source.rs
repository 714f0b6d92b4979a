//! One Source: its health, its runs, its quirks and its spec. The page opens no catalog.

use std::collections::BTreeMap;

use api::{Page, Run};
use axum::Json;
use control::{Run as FleetRun, RunStatus, SourceSpec};
use jiff::Timestamp;
use maud::{Markup, html};
use model::RunId;

use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext, source_url};
use super::source_health::SourceHealth;
use super::{channels, chart, format, settings, source_query};
use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::sources::PageParams;
use crate::tokens::Role;
use crate::{runs, subscriptions};

/// The page.
pub(super) async fn page(context: PageContext, SourcePath(source): SourcePath) -> Result<Markup, ApiError> {
    let gateway = &context.gateway;
    let spec = gateway.control.sources().get(&source).await?;
    let Json(Page { items: runs, .. }) = runs::list(context.state(), SourcePath(source.clone())).await?;
    let is_sync = |run: &&Run| run.backfill.is_none() && run.moved.is_none();
    let syncs: Vec<Run> = runs.iter().filter(is_sync).cloned().collect();
    let all = PageParams { limit: Some(crate::pagination::MOST), cursor: None };
    let Json(Page { items: subscribed, .. }) =
        subscriptions::list(context.state(), SourcePath(source.clone()), Query(all)).await?;
    let now = context.now;
    let last = gateway.views.runs.get(&source);
    let term = gateway.views.leases.get(&source).map(|lease| lease.term());
    let run_status = last.as_ref().map(|run| run.status(term.as_ref()));
    let here = source_url(&source);
    let content = html! {
        @if let Some(title) = source_query::title(&spec, last.as_deref()) {
            p { strong { (title) } }
        }
        p { a href=(spec.entry) rel="noreferrer" { (spec.entry) } }
        @if spec.name.is_some() { p.hint { "Source ID " code { (source) } } }
        @if !spec.labels.is_empty() { p { "Labels: " (layout::labels(&spec)) } }
        nav aria-label="Pages of this Source" {
            ul.chips {
                li { a href={ (here) "/resources" } { "Resources" } }
                li { a href={ (here) "/problems" } { "Problems" } }
                li { a href={ (here) "/report" } { "Report card" } }
            }
        }
        (status(&spec, last.as_deref(), run_status.as_ref(), &here, now))
        @if context.may(Role::Operate) { (start_run(&here)) }
        (table(&runs, &here, now))
        (chart::section(&syncs))
        (channels::section(&subscribed, now))
        (quirks(syncs.first()))
        (settings::section(&spec, context.may(Role::Admin)))
    };
    Ok(context.page(layout::called(&spec), content))
}

fn status(
    spec: &SourceSpec,
    last: Option<&FleetRun>,
    status: Option<&RunStatus<'_>>,
    here: &str,
    now: Timestamp,
) -> Markup {
    let health = SourceHealth::of(spec, last, status, now);
    let before = last.map(FleetRun::leaves).unwrap_or_default();
    let due = spec.schedule.as_ref().filter(|_| spec.enabled);
    let due = due.and_then(|schedule| schedule.next_after(&spec.id, now).ok());
    let why = match status {
        Some(RunStatus::Failed { why }) => Some(*why),
        Some(RunStatus::Waiting(wait)) => Some(wait.why.as_str()),
        _ => last.and_then(|run| run.progress.waits_for.as_deref()),
    };
    html! {
        section aria-labelledby="status" {
            h2 #status { "Status" }
            p role="status" { span class={ "state " (health.severity()) } { (health.label()) } }
            @if let Some(why) = why { p.error { (why) } }
            dl {
                dt { "Last in sync" }
                dd { (format::ago_or(now, before.in_sync_as_of, "never")) }
                (waiting(last, status, now))
                dt { "Open problems" }
                dd { @match before.problems {
                    Some(problems) => {
                        a href={ (here) "/problems" } { (format::count(problems.open)) }
                        @if problems.ignored > 0 { " (" (format::count(problems.ignored)) " ignored)" }
                    },
                    None => "not counted yet",
                } }
                dt { "Next run" }
                dd { (format::ago_or(now, due, "manual")) }
            }
        }
    }
}

/// Since when the current run has waited, and until when.
fn waiting(last: Option<&FleetRun>, status: Option<&RunStatus<'_>>, now: Timestamp) -> Markup {
    html! {
        @match (status, last) {
            (Some(RunStatus::Waiting(wait)), _) => {
                dt { "Waiting" }
                dd {
                    (wait.reason.as_str()) ", since " (format::ago(now, wait.since)) ", "
                    (format::counted(wait.tries.into(), "try", "tries")) ", next " (format::ago(now, wait.until))
                }
            },
            (Some(RunStatus::Queued), Some(run)) => {
                dt { "Waiting" }
                dd { "for a free slot at a scheduler, since " (format::ago(now, run.spec.asked_at)) }
            },
            _ => {}
        }
    }
}

fn start_run(here: &str) -> Markup {
    html! {
        section aria-labelledby="start" {
            h2 #start { "Start run" }
            form.row method="post" action={ (here) "/runs" } {
                // The key makes a repeated submission of the form request only one run.
                input type="hidden" name="key" value=(RunId::fresh());
                p.field {
                    label for="mode" { "Mode" }
                    select #mode name="mode" {
                        option value="auto" { "Automatic" }
                        option value="incremental" { "Changes" }
                        option value="baseline" { "Full" }
                        option value="audit" { "Audit" }
                    }
                }
                p.box { input #repair type="checkbox" name="repair"; label for="repair" { "Repair (audit only)" } }
                button type="submit" { "Start run" }
            }
        }
    }
}

fn table(runs: &[Run], here: &str, now: Timestamp) -> Markup {
    let columns = [
        Text("Requested"),
        Text("State"),
        Text("Mode"),
        Text("Requested by"),
        Text("Duration"),
        Number("Stored"),
        Number("Deleted"),
        Number("Failed"),
    ];
    let row = |run: &Run| {
        html! {
            th scope="row" { a href={ (here) "/runs/" (run.run) } { (format::ago(now, run.requested_at)) } }
            td { (state(run)) }
            td { (mode(run)) }
            td { (chart::name(&run.requested_by)) }
            td { (took(run, now)) }
            td.number { (format::count(run.counters.stored)) }
            td.number { (format::count(run.counters.deleted)) }
            td.number { (format::count(run.counters.failed)) }
        }
    };
    html! {
        section aria-labelledby="runs" {
            h2 #runs { "Runs" }
            @if runs.is_empty() { p { "No runs yet." } } @else {
                (layout::table("Runs", "Last runs, newest first", &columns, runs.iter().map(row)))
            }
        }
    }
}

/// The state of a run.
pub(super) fn state(run: &Run) -> Markup {
    let (severity, words) = match (&*run.state, run.in_sync) {
        ("finished", Some(true)) => ("good", "finished, in sync"),
        ("finished", None) => ("good", "finished"),
        ("finished", _) => ("doubtful", "finished, with problems"),
        ("failed", _) => ("bad", "failed"),
        ("interrupted", _) => ("bad", "interrupted"),
        ("paused", _) => ("doubtful", "paused"),
        (other, _) => ("open", other),
    };
    html! { span class={ "state " (severity) } { (words) } }
}

/// The mode of a run, as tables show it.
pub(super) fn mode(run: &Run) -> String {
    match &run.moved {
        Some(moved) if moved.back => "move back".to_owned(),
        Some(_) => "move".to_owned(),
        None if run.backfill.is_some() => "backfill".to_owned(),
        None => chart::name(&run.mode),
    }
}

/// How long a run took, or has taken so far.
fn took(run: &Run, now: Timestamp) -> String {
    let end = run.finished_at.unwrap_or(now);
    run.started_at.map_or("not started".to_owned(), |began| format::span(end.duration_since(began).as_secs()))
}

fn quirks(last: Option<&Run>) -> Markup {
    let none = BTreeMap::new();
    let counted = last.map_or(&none, |run| &run.counters.quirks);
    let columns = [Text("Name"), Text("Meaning"), Number("Times")];
    let row = |(name, times): (&String, &u64)| {
        html! {
            th scope="row" { (name) }
            td { (quirks::named(name).map_or("unknown to this version", |quirk| quirk.meaning)) }
            td.number { (format::count(*times)) }
        }
    };
    html! {
        section aria-labelledby="quirks" {
            h2 #quirks { "Quirks" }
            @if counted.is_empty() { p { "The last run found no quirks." } } @else {
                (layout::table("Quirks", "Quirks in the last run", &columns, counted.iter().map(row)))
            }
        }
    }
}
