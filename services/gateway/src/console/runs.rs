//! Forms for runs. They call the functions of the API, then redirect to the page of the run.

use api::RunRequest;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{Redirect, Response};
use axum::{Extension, Json};

use super::HOME;
use super::form::Fields;
use crate::ask::Sent;
use crate::refusal::Refusal;
use crate::runs::{self, steer};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Requests a run.
pub(super) async fn submit(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    fields: Fields,
) -> Result<Redirect, Refusal> {
    let mode = serde_json::from_value(fields.get("mode").unwrap_or("auto").into());
    let mode = mode.map_err(|error| Refusal::bad_request(format!("mode cannot be read: {error}")))?;
    let asked = RunRequest { mode, allow_deletes: fields.has("allow_deletes"), repair: fields.has("repair") };
    let mut headers = HeaderMap::new();
    if let Some(key) = fields.get("key") {
        let key = key.parse().map_err(|_| Refusal::bad_request("the key of the form cannot be read"))?;
        headers.insert("idempotency-key", key);
    }
    let answer = runs::submit(State(gateway), Extension(caller), Path(source), headers, Sent(asked)).await?;
    Ok(to_page(&answer))
}

/// Pauses a run.
pub(super) async fn pause(
    gateway: State<Gateway>,
    Path(run): Path<(String, String)>,
) -> Result<Redirect, Refusal> {
    let page = page_of(&run);
    let Json(_) = steer::pause(gateway, Path(run)).await?;
    Ok(page)
}

/// Resumes a run.
pub(super) async fn resume(
    gateway: State<Gateway>,
    Path(run): Path<(String, String)>,
) -> Result<Redirect, Refusal> {
    let page = page_of(&run);
    let Json(_) = steer::resume(gateway, Path(run)).await?;
    Ok(page)
}

/// Cancels a run.
pub(super) async fn cancel(
    gateway: State<Gateway>,
    Path(run): Path<(String, String)>,
) -> Result<Redirect, Refusal> {
    let page = page_of(&run);
    let Json(_) = steer::cancel(gateway, Path(run)).await?;
    Ok(page)
}

/// Approves the deletions that the deletion guard stopped.
pub(super) async fn approve(
    gateway: State<Gateway>,
    caller: Extension<Caller>,
    run: Path<(String, String)>,
) -> Result<Redirect, Refusal> {
    let answer = steer::approve(gateway, caller, run).await?;
    Ok(to_page(&answer))
}

fn page_of((source, run): &(String, String)) -> Redirect {
    Redirect::to(&format!("{HOME}/sources/{source}/runs/{run}"))
}

/// Redirects to the page of what the API created. Its path follows from the `Location`.
pub(super) fn to_page(answer: &Response) -> Redirect {
    let location = answer.headers().get(header::LOCATION).and_then(|place| place.to_str().ok());
    let below = location.and_then(|place| place.strip_prefix("/v1")).unwrap_or_default();
    Redirect::to(&format!("{HOME}{below}"))
}
