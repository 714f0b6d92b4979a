//! The page of a run. `htmx` refreshes it; without JavaScript the operator reloads it.

use std::sync::Arc;

use api::{Run, RunRequest};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderName;
use axum::response::{IntoResponse, Response};
use control::Run as FleetRun;
use jiff::Timestamp;
use maud::{Markup, html};
use model::{BackfillCounts, Phase};
use serde::Deserialize;

use super::layout::{PageContext, source_url};
use super::{chart, format, source};
use crate::api_error::ApiError;
use crate::extract::{Query, RunPath};
use crate::runs;
use crate::state::Gateway;
use crate::tokens::Role;

/// How often a page polls the progress of a run.
const POLL_EVERY: &str = "every 2s";

/// Parameters of the part that is refreshed.
#[derive(Debug, Deserialize)]
pub(super) struct ProgressParams {
    /// The state of the run when the page was made.
    #[serde(default)]
    seen: String,
}

/// The page.
pub(super) async fn page(context: PageContext, path: RunPath) -> Result<Markup, ApiError> {
    let Json(run) = runs::read(context.state(), path).await?;
    let gateway = &context.gateway;
    let here = url(&run);
    let title = format!("Run of {}", format::plain_time(run.requested_at));
    let content = html! {
        p role="status" { (source::state(&run)) }
        @if let Some(why) = &run.message { p.error { (why) } }
        @if context.may(Role::Operate) { (controls(gateway, &run, &here)) }
        section aria-labelledby="far" {
            h2 #far { "Progress" }
            (figures(gateway, &run, &here, context.now))
            @if !run.is_over() { p { a href=(here) { "Refresh" } } }
        }
        section aria-labelledby="asked" {
            h2 #asked { "Request" }
            dl {
                dt { "Run ID" } dd { code { (run.run) } }
                dt { "Mode" } dd { (source::mode(&run)) }
                dt { "Requested by" } dd { (chart::name(&run.requested_by)) ", " (format::time(run.requested_at)) }
                dt { "Deletions" } dd { (if run.allow_deletes { "approved" } else { "limited by the deletion guard" }) }
                @if let Some(owner) = &run.owner { dt { "Owner" } dd { (owner) } }
            }
        }
    };
    Ok(context.source_page(&run.source, title, content))
}

/// The part of the page that is refreshed. If more than its figures changed, the browser reloads the whole page.
pub(super) async fn progress(
    State(gateway): State<Gateway>,
    path: RunPath,
    Query(params): Query<ProgressParams>,
) -> Result<Response, ApiError> {
    let Json(run) = runs::read(State(gateway.clone()), path).await?;
    if shown_state(&run) != params.seen {
        return Ok(([(HeaderName::from_static("hx-refresh"), "true")], "").into_response());
    }
    Ok(figures(&gateway, &run, &url(&run), gateway.now()).into_response())
}

fn url(run: &Run) -> String {
    format!("{}/runs/{}", source_url(&run.source), run.run)
}

/// The state of the run, and what it waits for.
fn shown_state(run: &Run) -> String {
    let waits = if run.message.is_some() { "+waits" } else { "" };
    format!("{}{waits}", run.state)
}

fn figures(gateway: &Gateway, run: &Run, here: &str, now: Timestamp) -> Markup {
    let polled =
        (!run.is_over()).then(|| format!("{here}/progress?seen={}", format::query(&shown_state(run))));
    let phase = last(gateway, run).filter(|_| !run.is_over()).and_then(|last| last.progress.phase);
    let counted = &run.counters;
    let took = run.started_at.map(|began| run.finished_at.unwrap_or(now).duration_since(began).as_secs());
    if let Some(backfill) = &run.backfill {
        return html! {
            div #progress hx-get=[polled.as_deref()] hx-trigger=[polled.as_ref().map(|_| POLL_EVERY)] hx-swap="outerHTML" {
                (backfill_figures(&backfill.counts, took))
            }
        };
    }
    html! {
        div #progress hx-get=[polled.as_deref()] hx-trigger=[polled.as_ref().map(|_| POLL_EVERY)] hx-swap="outerHTML" {
            @if let Some(phase) = phase { p { (phase_text(phase)) } }
            dl.figures {
                dt { "Duration" } dd { (took.map_or("not started".to_owned(), format::span)) }
                dt { "Listed" } dd { (format::count(counted.listed)) }
                dt { "Planned" } dd { (format::count(counted.planned)) }
                dt { "Stored" } dd { (format::count(counted.stored)) }
                dt { "Unchanged" } dd { (format::count(counted.unchanged)) }
                dt { "Deleted" } dd { (format::count(counted.deleted)) }
                dt { "Failed" } dd { (format::count(counted.failed)) }
                dt { "Received" } dd { (format::bytes(counted.bytes)) }
                dt { "Requests" } dd { (format::count(counted.requests)) }
                @if let Some(seconds) = took.filter(|seconds| *seconds > 0) {
                    dt { "Throughput" }
                    dd { (format!("{:.1} resources/s", counted.stored as f64 / seconds as f64)) }
                }
            }
            @if let Some(found) = &counted.audit {
                h3 { "Audit" }
                dl.figures {
                    dt { "Matching" } dd { (format::count(found.matching)) }
                    dt { "Missing" } dd { (format::count(found.missing)) }
                    dt { "Outdated" } dd { (format::count(found.outdated)) }
                    dt { "Mismatched" } dd { (format::count(found.mismatched)) }
                    dt { "Extra" } dd { (format::count(found.extra)) }
                    dt { "Unverifiable" } dd { (format::count(found.unverifiable)) }
                    dt { "Queued for repair" } dd { (format::count(found.queued)) }
                }
            }
        }
    }
}

fn backfill_figures(counts: &BackfillCounts, took: Option<i64>) -> Markup {
    html! {
        dl.figures {
            dt { "Duration" } dd { (took.map_or("not started".to_owned(), format::span)) }
            dt { "Resources with known versions" } dd { (format::count(counts.resources)) }
            dt { "Known versions" } dd { (format::count(counts.known)) }
            dt { "Stored before" } dd { (format::count(counts.held)) }
            dt { "Added" } dd { (format::count(counts.stored)) }
            dt { "Received" } dd { (format::bytes(counts.bytes)) }
            dt { "Requests" } dd { (format::count(counts.requests)) }
            @for (reason, count) in &counts.failed { dt { "Not usable: " (reason) } dd { (format::count(*count)) } }
        }
    }
}

fn phase_text(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "Planning: documents are read.",
        Phase::Dispatching => "Dispatching: resources are fetched and verified.",
        Phase::Finished => "Finished.",
    }
}

/// The operator's actions on the run in its current state.
fn controls(gateway: &Gateway, run: &Run, here: &str) -> Markup {
    let step = |name: &str, words: &str, class: &str| {
        html! { form method="post" action={ (here) "/" (name) } { button class=(class) type="submit" { (words) } } }
    };
    let may_be_approved =
        last(gateway, run).is_some_and(|last| RunRequest::approving(run.run, &last).is_ok());
    html! {
        @if !run.is_over() || may_be_approved {
            section.steps aria-label="Control this run" {
                @if run.state == "paused" { (step("resume", "Resume", "")) }
                @if !run.is_over() && run.state != "paused" { (step("pause", "Pause", "")) }
                @if !run.is_over() { (step("cancel", "Cancel", "grave")) }
                @if may_be_approved { (approval(here)) }
            }
        }
    }
}

/// The run's record in the control store, unless a newer run of the Source replaced it.
fn last(gateway: &Gateway, run: &Run) -> Option<Arc<FleetRun>> {
    let last = gateway.views.runs.get(&run.source)?;
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
