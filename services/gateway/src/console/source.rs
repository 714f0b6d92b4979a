//! One Source: its condition, its runs, its quirks and its spec. The page opens no catalog.

use std::collections::BTreeMap;

use api::{Page, Run};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use control::{Run as FleetRun, RunStatus, SourceSpec};
use jiff::Timestamp;
use maud::{Markup, html};
use model::RunId;
use resourcesync::Quirk;

use super::condition::Condition;
use super::layout::{self, Frame, may};
use super::{HOME, channels, chart, settings, tell};
use crate::ask::{self, Asked};
use crate::refusal::Refusal;
use crate::sources::PageParams;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};
use crate::{runs, subscriptions};

/// The page.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
) -> Result<Markup, Refusal> {
    let id = ask::source(&source)?;
    let spec = gateway.control().sources().get(&id).await?;
    let Json(Page { items: runs, .. }) = runs::list(State(gateway.clone()), Path(source.clone())).await?;
    let all = PageParams { limit: Some(crate::page::MOST), cursor: None };
    let Json(Page { items: subscribed, .. }) =
        subscriptions::list(State(gateway.clone()), Path(source), Asked(all)).await?;
    let now = gateway.now();
    let last = gateway.views().runs.get(&id);
    let tenure = gateway.views().leases.get(&id).map(|lease| lease.tenure());
    let standing = last.as_ref().map(|run| run.standing(tenure.as_ref()));
    let here = format!("{HOME}/sources/{id}");
    let frame = Frame { title: id.as_str(), caller: Some(&caller), path: &[], now };
    Ok(layout::page(
        &frame,
        html! {
            p { a href=(spec.entry) rel="noreferrer" { (spec.entry) } }
            nav aria-label="Pages of this Source" {
                ul.chips {
                    li { a href={ (here) "/resources" } { "Resources" } }
                    li { a href={ (here) "/problems" } { "Problems" } }
                    li { a href={ (here) "/report" } { "Report card" } }
                }
            }
            (status(&spec, last.as_deref(), standing.as_ref(), &here, now))
            @if may(&caller, Role::Operate) { (start_run(&here)) }
            (table(&runs, &here, now))
            (chart::section(&runs))
            (channels::section(&subscribed, now))
            (quirks(runs.first()))
            (settings::section(&spec, may(&caller, Role::Admin)))
        },
    ))
}

fn status(
    spec: &SourceSpec,
    last: Option<&FleetRun>,
    standing: Option<&RunStatus<'_>>,
    here: &str,
    now: Timestamp,
) -> Markup {
    let condition = Condition::of(spec, last, standing, now);
    let before = last.map(FleetRun::leaves).unwrap_or_default();
    let due = spec.schedule.as_ref().filter(|_| spec.enabled);
    let due = due.and_then(|schedule| schedule.next_after(&spec.id, now).ok());
    let why = match standing {
        Some(RunStatus::Failed { why }) => Some(*why),
        _ => last.and_then(|run| run.progress.waits_for.as_deref()),
    };
    html! {
        section aria-labelledby="status" {
            h2 #status { "Status" }
            p role="status" { span class={ "state " (condition.gravity()) } { (condition.words()) } }
            @if let Some(why) = why { p.error { (why) } }
            dl {
                dt { "Last in sync" }
                dd { (tell::ago_or(now, before.in_sync_as_of, "never")) }
                dt { "Open problems" }
                dd { @match before.problems {
                    Some(problems) => {
                        a href={ (here) "/problems" } { (tell::count(problems.open)) }
                        @if problems.ignored > 0 { " (" (tell::count(problems.ignored)) " ignored)" }
                    },
                    None => "not counted yet",
                } }
                dt { "Next run" }
                dd { (tell::ago_or(now, due, "manual")) }
            }
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
    html! {
        section aria-labelledby="runs" {
            h2 #runs { "Runs" }
            @if runs.is_empty() { p { "No runs yet." } } @else {
                div.wide tabindex="0" role="region" aria-label="Runs" {
                    table {
                        caption { "Last runs, newest first" }
                        thead { tr {
                            th scope="col" { "Requested" }
                            th scope="col" { "State" }
                            th scope="col" { "Mode" }
                            th scope="col" { "Requested by" }
                            th scope="col" { "Duration" }
                            th.number scope="col" { "Stored" }
                            th.number scope="col" { "Deleted" }
                            th.number scope="col" { "Failed" }
                        } }
                        tbody { @for run in runs { tr {
                            th scope="row" { a href={ (here) "/runs/" (run.run) } { (tell::ago(now, run.requested_at)) } }
                            td { (state(run)) }
                            td { (chart::name(&run.mode)) }
                            td { (chart::name(&run.requested_by)) }
                            td { (took(run, now)) }
                            td.number { (tell::count(run.counters.stored)) }
                            td.number { (tell::count(run.counters.deleted)) }
                            td.number { (tell::count(run.counters.failed)) }
                        } } }
                    }
                }
            }
        }
    }
}

/// The state of a run.
pub(super) fn state(run: &Run) -> Markup {
    let (gravity, words) = match (&*run.state, run.in_sync) {
        ("finished", Some(true)) => ("good", "finished, in sync"),
        ("finished", _) => ("doubtful", "finished, with problems"),
        ("failed", _) => ("bad", "failed"),
        ("interrupted", _) => ("bad", "interrupted"),
        ("paused", _) => ("doubtful", "paused"),
        (other, _) => ("open", other),
    };
    html! { span class={ "state " (gravity) } { (words) } }
}

/// How long a run took, or has taken so far.
fn took(run: &Run, now: Timestamp) -> String {
    let end = run.finished_at.unwrap_or(now);
    run.started_at.map_or("not started".to_owned(), |began| tell::span(end.duration_since(began).as_secs()))
}

fn quirks(last: Option<&Run>) -> Markup {
    let none = BTreeMap::new();
    let counted = last.map_or(&none, |run| &run.counters.quirks);
    html! {
        section aria-labelledby="quirks" {
            h2 #quirks { "Quirks" }
            @if counted.is_empty() { p { "The last run found no quirks." } } @else {
                div.wide tabindex="0" role="region" aria-label="Quirks" {
                    table {
                        caption { "Quirks in the last run" }
                        thead { tr { th scope="col" { "Name" } th scope="col" { "Meaning" } th.number scope="col" { "Times" } } }
                        tbody { @for (name, times) in counted { tr {
                            th scope="row" { (name) }
                            td { (Quirk::named(name).map_or("unknown to this version", Quirk::meaning)) }
                            td.number { (tell::count(*times)) }
                        } } }
                    }
                }
            }
        }
    }
}
