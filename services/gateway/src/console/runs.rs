//! Forms for runs. They call the functions of the API, then redirect to the page of the run.

use api::RunRequest;
use axum::extract::State;
use axum::http::header;
use axum::response::{Redirect, Response};

use super::HOME;
use super::form::Fields;
use crate::api_error::ApiError;
use crate::extract::{IdempotencyKey, JsonBody, RunPath, SourcePath};
use crate::runs::{self, transitions};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Requests a run.
pub(super) async fn submit(
    gateway: State<Gateway>,
    caller: Caller,
    source: SourcePath,
    fields: Fields,
) -> Result<Redirect, ApiError> {
    let mode = serde_json::from_value(fields.get("mode").unwrap_or("auto").into());
    let mode = mode.map_err(|error| ApiError::bad_request(format!("mode cannot be read: {error}")))?;
    let request =
        RunRequest { mode, allow_deletes: fields.has("allow_deletes"), repair: fields.has("repair") };
    let key = IdempotencyKey::of(fields.get("key"))?;
    Ok(to_page(&runs::submit(gateway, caller, source, key, JsonBody(request)).await?))
}

/// Pauses a run.
pub(super) async fn pause(gateway: State<Gateway>, path: RunPath) -> Result<Redirect, ApiError> {
    let page = page_of(&path);
    transitions::pause(gateway, path).await.map(|_| page)
}

/// Resumes a run.
pub(super) async fn resume(gateway: State<Gateway>, path: RunPath) -> Result<Redirect, ApiError> {
    let page = page_of(&path);
    transitions::resume(gateway, path).await.map(|_| page)
}

/// Cancels a run.
pub(super) async fn cancel(gateway: State<Gateway>, path: RunPath) -> Result<Redirect, ApiError> {
    let page = page_of(&path);
    transitions::cancel(gateway, path).await.map(|_| page)
}

/// Approves the deletions that the deletion guard stopped.
pub(super) async fn approve(
    gateway: State<Gateway>,
    caller: Caller,
    path: RunPath,
) -> Result<Redirect, ApiError> {
    Ok(to_page(&transitions::approve(gateway, caller, path).await?))
}

fn page_of(path: &RunPath) -> Redirect {
    Redirect::to(&format!("{HOME}/sources/{}/runs/{}", path.source, path.run))
}

/// Redirects to the page of what the API created. Its path follows from the `Location`.
pub(super) fn to_page(answer: &Response) -> Redirect {
    let location = answer.headers().get(header::LOCATION).and_then(|url| url.to_str().ok());
    let below = location.and_then(|url| url.strip_prefix("/v1")).unwrap_or_default();
    Redirect::to(&format!("{HOME}{below}"))
}
