//! The page of a run. `htmx` refreshes it; without JavaScript the operator reloads it.

use std::sync::Arc;

use api::{Run, RunRequest};
use axum::extract::{Path, State};
use axum::http::HeaderName;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use control::Run as FleetRun;
use jiff::Timestamp;
use maud::{Markup, html};
use model::Phase;
use serde::Deserialize;

use super::layout::{self, Frame, may};
use super::{HOME, chart, source, tell};
use crate::ask::Asked;
use crate::refusal::Refusal;
use crate::runs;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// How often a page polls the progress of a run.
const ASKS: &str = "every 2s";

/// Parameters of the part that is refreshed.
#[derive(Debug, Deserialize)]
pub(super) struct ProgressParams {
    /// The state of the run when the page was made.
    #[serde(default)]
    seen: String,
}

/// The page.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(at): Path<(String, String)>,
) -> Result<Markup, Refusal> {
    let Json(run) = runs::read(State(gateway.clone()), Path(at)).await?;
    let now = gateway.now();
    let home = format!("{HOME}/sources/{}", run.source);
    let here = format!("{home}/runs/{}", run.run);
    let frame = Frame {
        title: &format!("Run of {}", tell_plainly(run.requested_at)),
        caller: Some(&caller),
        path: &[(home, run.source.as_str())],
        now,
    };
    Ok(layout::page(
        &frame,
        html! {
            p role="status" { (source::state(&run)) }
            @if let Some(why) = &run.message { p.error { (why) } }
            @if may(&caller, Role::Operate) { (steering(&gateway, &run, &here)) }
            section aria-labelledby="far" {
                h2 #far { "Progress" }
                (told(&gateway, &run, &here, now))
                @if !is_over(&run) { p { a href=(here) { "Refresh" } } }
            }
            section aria-labelledby="asked" {
                h2 #asked { "Request" }
                dl {
                    dt { "Run ID" } dd { code { (run.run) } }
                    dt { "Mode" } dd { (chart::name(&run.mode)) }
                    dt { "Requested by" } dd { (chart::name(&run.requested_by)) ", " (tell::time(run.requested_at)) }
                    dt { "Deletions" } dd { (if run.allow_deletes { "approved" } else { "limited by the deletion guard" }) }
                    @if let Some(owner) = &run.owner { dt { "Owner" } dd { (owner) } }
                }
            }
        },
    ))
}

/// The part of the page that is refreshed. If more than its figures changed, the browser reloads the whole page.
pub(super) async fn progress(
    State(gateway): State<Gateway>,
    Path(at): Path<(String, String)>,
    Asked(params): Asked<ProgressParams>,
) -> Result<Response, Refusal> {
    let Json(run) = runs::read(State(gateway.clone()), Path(at)).await?;
    if seen(&run) != params.seen {
        return Ok(([(HeaderName::from_static("hx-refresh"), "true")], "").into_response());
    }
    let here = format!("{HOME}/sources/{}/runs/{}", run.source, run.run);
    Ok(told(&gateway, &run, &here, gateway.now()).into_response())
}

fn tell_plainly(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn is_over(run: &Run) -> bool {
    run.finished_at.is_some()
}

/// The state of the run, and what it waits for.
fn seen(run: &Run) -> String {
    let waits = if run.message.is_some() { "+waits" } else { "" };
    format!("{}{waits}", run.state)
}

fn told(gateway: &Gateway, run: &Run, here: &str, now: Timestamp) -> Markup {
    let asks = (!is_over(run)).then(|| format!("{here}/progress?seen={}", tell::query(&seen(run))));
    let phase = last(gateway, run).filter(|_| !is_over(run)).and_then(|last| last.progress.phase);
    let counted = &run.counters;
    let took = run.started_at.map(|began| run.finished_at.unwrap_or(now).duration_since(began).as_secs());
    html! {
        div #progress hx-get=[asks.as_deref()] hx-trigger=[asks.as_ref().map(|_| ASKS)] hx-swap="outerHTML" {
            @if let Some(phase) = phase { p { (doing(phase)) } }
            dl.figures {
                dt { "Duration" } dd { (took.map_or("not started".to_owned(), tell::span)) }
                dt { "Listed" } dd { (tell::count(counted.listed)) }
                dt { "Planned" } dd { (tell::count(counted.planned)) }
                dt { "Stored" } dd { (tell::count(counted.stored)) }
                dt { "Unchanged" } dd { (tell::count(counted.unchanged)) }
                dt { "Deleted" } dd { (tell::count(counted.deleted)) }
                dt { "Failed" } dd { (tell::count(counted.failed)) }
                dt { "Received" } dd { (tell::bytes(counted.bytes)) }
                dt { "Requests" } dd { (tell::count(counted.requests)) }
                @if let Some(seconds) = took.filter(|seconds| *seconds > 0) {
                    dt { "Throughput" }
                    dd { (format!("{:.1} resources/s", counted.stored as f64 / seconds as f64)) }
                }
            }
            @if let Some(found) = &counted.audit {
                h3 { "Audit" }
                dl.figures {
                    dt { "Matching" } dd { (tell::count(found.matching)) }
                    dt { "Missing" } dd { (tell::count(found.missing)) }
                    dt { "Outdated" } dd { (tell::count(found.outdated)) }
                    dt { "Mismatched" } dd { (tell::count(found.mismatched)) }
                    dt { "Extra" } dd { (tell::count(found.extra)) }
                    dt { "Unverifiable" } dd { (tell::count(found.unverifiable)) }
                    dt { "Queued for repair" } dd { (tell::count(found.queued)) }
                }
            }
        }
    }
}

fn doing(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "Planning: documents are read.",
        Phase::Dispatching => "Dispatching: resources are fetched and verified.",
        Phase::Finished => "Finished.",
    }
}

/// The operator's actions on the run in its current state.
fn steering(gateway: &Gateway, run: &Run, here: &str) -> Markup {
    let step = |name: &str, words: &str, class: &str| {
        html! { form method="post" action={ (here) "/" (name) } { button class=(class) type="submit" { (words) } } }
    };
    let may_be_approved =
        last(gateway, run).is_some_and(|last| RunRequest::approving(run.run, &last).is_ok());
    html! {
        @if !is_over(run) || may_be_approved {
            section.steps aria-label="Control this run" {
                @if run.state == "paused" { (step("resume", "Resume", "")) }
                @if !is_over(run) && run.state != "paused" { (step("pause", "Pause", "")) }
                @if !is_over(run) { (step("cancel", "Cancel", "grave")) }
                @if may_be_approved { (approval(here)) }
            }
        }
    }
}

/// The run's record in the control store, unless a newer run of the Source replaced it.
fn last(gateway: &Gateway, run: &Run) -> Option<Arc<FleetRun>> {
    let last = gateway.views().runs.get(&run.source)?;
    (last.spec.id == run.run).then_some(last.value)
}

fn approval(here: &str) -> Markup {
    html! {
        form method="post" action={ (here) "/approve" } {
            p #approve-hint .hint { "The deletion guard stopped this run. Approval starts a new run without that limit." }
            button.grave type="submit" aria-describedby="approve-hint" { "Approve deletions" }
        }
    }
}
