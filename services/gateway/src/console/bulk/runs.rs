//! Starts runs of all Sources of a list.

use api::RunRequest;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use maud::{Markup, html};
use model::RunId;

use super::{Params, Refusals, Selection};
use crate::api_error::ApiError;
use crate::batch;
use crate::console::form::Fields;
use crate::console::layout::PageContext;
use crate::console::{RUNS, format};
use crate::extract::{self, Query};
use crate::tokens::Caller;

/// The path of the page, and of its form: that of the API's batch of runs.
pub(in crate::console) const PATH: &str = "/console/runs:batch";

/// Says how many runs the form starts.
pub(in crate::console) async fn page(
    context: PageContext,
    caller: Caller,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let selection = Selection::of(&context, &caller, params.query().0)?;
    Ok(confirmation(&context, &selection, None))
}

/// Requests the runs. If there are more Sources than the operator has seen, it asks again.
pub(in crate::console) async fn submit(
    context: PageContext,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let gateway = &context.gateway;
    let key = fields.get("key").ok_or_else(|| ApiError::bad_request("the form has no key"))?;
    let (selection, seen) = Selection::of_form(&context, &caller, &fields)?;
    if selection.count() > seen {
        let page = confirmation(&context, &selection, Some(seen));
        return Ok((StatusCode::CONFLICT, page).into_response());
    }
    let _permit = extract::batch_permit(gateway)?;
    let request = RunRequest::default();
    let status = selection.query.state.clone();
    let results = batch::submit_runs(gateway, &caller, Some(key), selection.sources, &request);
    let mut results = std::pin::pin!(results);
    let (mut started, mut refusals) = (0_u64, Refusals::default());
    while let Some(result) = results.next().await {
        match result.problem {
            None => started += 1,
            Some(problem) => refusals.add(result.source, problem.detail),
        }
    }
    tracing::info!(started, refused = refusals.count, status, token = caller.name(), "runs are requested");
    let content = html! {
        p.good role="status" { (format::counted(started, "run was", "runs were")) " requested." }
        (refusals.list())
        p { a href={ (RUNS) "?state=queued" } { "Queued runs" } }
    };
    Ok(context.page("Runs requested", content).into_response())
}

fn confirmation(context: &PageContext, selection: &Selection, seen: Option<usize>) -> Markup {
    let count = selection.count() as u64;
    let content = html! {
        (selection.summary(seen))
        p { "A Source whose run is not over is left as it is." }
        @if count > 0 {
            form method="post" action=(PATH) {
                (selection.hidden())
                // The key makes a repeated submission of the form request each run only once.
                input type="hidden" name="key" value=(RunId::fresh());
                button type="submit" { "Start " (format::counted(count, "run", "runs")) }
            }
        }
        (selection.back())
    };
    context.page("Start runs", content)
}
