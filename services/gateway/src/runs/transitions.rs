//! `/v1/sources/{source}/runs/{run}/…`: pauses, resumes, cancels or approves a run.

use api::{Run, RunRequest};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::RunId;

use super::{Requested, lookup, no_run, present, submit_run};
use crate::api_error::ApiError;
use crate::extract::RunPath;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Pauses a run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/pause", tag = "runs", params(RunPath),
    responses((status = 200, description = "The run", body = Run), (status = 409, description = "The run has ended")))]
pub(crate) async fn pause(
    State(gateway): State<Gateway>,
    RunPath { source, run }: RunPath,
) -> Result<Json<Run>, ApiError> {
    let run = lookup::table(&gateway, &source, run).await?.pause(&source, run, gateway.now()).await?;
    Ok(Json(present(&gateway, &run)))
}

/// Resumes a run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/resume", tag = "runs", params(RunPath),
    responses((status = 200, description = "The run", body = Run), (status = 409, description = "The run has ended")))]
pub(crate) async fn resume(
    State(gateway): State<Gateway>,
    RunPath { source, run }: RunPath,
) -> Result<Json<Run>, ApiError> {
    let run = lookup::table(&gateway, &source, run).await?.resume(&source, run, gateway.now()).await?;
    Ok(Json(present(&gateway, &run)))
}

/// Cancels a run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/cancel", tag = "runs", params(RunPath),
    responses((status = 200, description = "The run", body = Run), (status = 409, description = "The run has ended")))]
pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    RunPath { source, run }: RunPath,
) -> Result<Json<Run>, ApiError> {
    let run = lookup::table(&gateway, &source, run).await?.cancel(&source, run, gateway.now()).await?;
    Ok(Json(present(&gateway, &run)))
}

/// Approves the deletions after the deletion guard stopped a run. This requests the same run again, which may delete
/// more than the guard allows.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/approve", tag = "runs", params(RunPath),
    responses((status = 201, description = "The approved run", body = Run, headers(("Location" = String, description = "The URL of the run"))),
        (status = 409, description = "The deletion guard did not stop the run, or a later run exists")))]
pub(crate) async fn approve(
    State(gateway): State<Gateway>,
    caller: Caller,
    RunPath { source, run }: RunPath,
) -> Result<Response, ApiError> {
    let last = gateway.control.runs().get(&source).await?.ok_or_else(|| no_run(&source, run))?;
    let request = RunRequest::approving(run, &last).map_err(ApiError::conflict)?;
    let request = Requested::Run(&request);
    Ok(submit_run(&gateway, &caller, &source, RunId::fresh(), request).await?.into_response(&source))
}
