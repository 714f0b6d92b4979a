//! Starts runs of all Sources with the same status, after a page that says how many there are.

use api::RunRequest;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use jiff::Timestamp;
use maud::{Markup, html};
use model::RunId;
use serde::Deserialize;

use super::form::Fields;
use super::layout::PageContext;
use super::source_health::SourceHealth;
use super::{RUNS, SOURCES, format, live};
use crate::api_error::ApiError;
use crate::batch;
use crate::extract::{self, Query};
use crate::state::Gateway;
use crate::tokens::Caller;

/// The path of the page, and of its form: that of the API's batch of runs.
pub(super) const PATH: &str = "/console/runs:batch";
/// Refused Sources that the result lists.
const REFUSALS: usize = 20;

/// Parameters of the page.
#[derive(Debug, Deserialize)]
pub(super) struct Params {
    /// The status of the Sources.
    state: String,
}

/// The link to the page, on the list of Sources with this status.
pub(super) fn link(state: &str) -> Markup {
    html! {
        @if let Some(health) = SourceHealth::named(state) {
            p { a href={ (PATH) "?state=" (state) } { "Start runs of all Sources with the status " (health.label()) } }
        }
    }
}

/// Says how many runs the form starts.
pub(super) async fn page(
    context: PageContext,
    caller: Caller,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let health = health(&params.state)?;
    let count = with(&context.gateway, &caller, health, context.now).len();
    Ok(confirmation(&context, health, count, None))
}

/// Requests the runs. If there are more Sources than the operator has seen, it asks again.
pub(super) async fn submit(
    context: PageContext,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let gateway = &context.gateway;
    let health = health(fields.get("state").unwrap_or_default())?;
    let seen: usize = fields.get("count").and_then(|count| count.parse().ok()).unwrap_or(0);
    let key = fields.get("key").ok_or_else(|| ApiError::bad_request("the form has no key"))?;
    let sources = with(gateway, &caller, health, context.now);
    if sources.len() > seen {
        let page = confirmation(&context, health, sources.len(), Some(seen));
        return Ok((StatusCode::CONFLICT, page).into_response());
    }
    let _permit = extract::batch_permit(gateway)?;
    let request = RunRequest::default();
    let results = batch::submit_runs(gateway, &caller, Some(key), sources, &request);
    let mut results = std::pin::pin!(results);
    let (mut started, mut refused, mut refusals) = (0_u64, 0_u64, Vec::new());
    while let Some(result) = results.next().await {
        match result.problem {
            None => started += 1,
            Some(problem) => {
                refused += 1;
                if refusals.len() < REFUSALS {
                    refusals.push((result.source, problem.detail));
                }
            }
        }
    }
    tracing::info!(started, refused, status = health.name(), token = caller.name(), "runs are requested");
    let content = html! {
        p.good role="status" { (format::counted(started, "run was", "runs were")) " requested." }
        @if refused > 0 {
            p { (format::counted(refused, "Source was", "Sources were")) " refused. The first of them:" }
            ul { @for (source, why) in &refusals { li { (source) ": " (why) } } }
        }
        p { a href={ (RUNS) "?state=queued" } { "Queued runs" } }
    };
    Ok(context.page("Runs requested", content).into_response())
}

fn health(state: &str) -> Result<SourceHealth, ApiError> {
    SourceHealth::named(state)
        .ok_or_else(|| ApiError::bad_request(format!("{state:?} is no status of a Source")))
}

/// The Sources with this health that the caller sees.
fn with(gateway: &Gateway, caller: &Caller, health: SourceHealth, now: Timestamp) -> Vec<String> {
    let mut found = Vec::new();
    live::for_each_source(gateway, Some(caller), |spec, run, term| {
        let status = run.map(|run| run.status(term));
        if SourceHealth::of(spec, run.map(|run| &**run), status.as_ref(), now) == health {
            found.push(spec.id.to_string());
        }
    });
    found
}

fn confirmation(context: &PageContext, health: SourceHealth, count: usize, seen: Option<usize>) -> Markup {
    let label = health.label();
    let sources = format::counted(count as u64, "Source has", "Sources have");
    let content = html! {
        @if let Some(seen) = seen {
            p.error role="alert" { "There are more Sources now than the " (seen) " that you saw. Check the number, and start again." }
        }
        p { (sources) " the status " strong { (label) } ". A Source whose run is not over is left as it is." }
        @if count == 0 { p { a href=(SOURCES) { "All Sources" } } } @else {
            form method="post" action=(PATH) {
                input type="hidden" name="state" value=(health.name());
                input type="hidden" name="count" value=(count);
                // The key makes a repeated submission of the form request each run only once.
                input type="hidden" name="key" value=(RunId::fresh());
                button type="submit" { "Start " (format::counted(count as u64, "run", "runs")) }
            }
            p { a href={ (SOURCES) "?state=" (health.name()) } { "Back to these Sources" } }
        }
    };
    context.page("Start runs", content)
}
