//! `/v1/sources/{source}/runs/{run}/…`: pauses, resumes, cancels or approves a run.

use api::{Run, RunRequest};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Json};
use model::RunId;

use super::{answer_of, ask_for, created, no_run, present, run_id};
use crate::ask;
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Pauses a run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/pause", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"), ("run" = String, Path, description = "The run ID")),
    responses((status = 200, description = "The run", body = Run), (status = 409, description = "The run has ended")))]
pub(crate) async fn pause(
    State(gateway): State<Gateway>,
    Path((source, run)): Path<(String, String)>,
) -> Result<Json<Run>, Refusal> {
    let run = gateway.control().runs().pause(&ask::source(&source)?, run_id(&run)?, gateway.now()).await?;
    Ok(Json(present(&gateway, &run)))
}

/// Resumes a run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/resume", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"), ("run" = String, Path, description = "The run ID")),
    responses((status = 200, description = "The run", body = Run), (status = 409, description = "The run has ended")))]
pub(crate) async fn resume(
    State(gateway): State<Gateway>,
    Path((source, run)): Path<(String, String)>,
) -> Result<Json<Run>, Refusal> {
    let run = gateway.control().runs().resume(&ask::source(&source)?, run_id(&run)?, gateway.now()).await?;
    Ok(Json(present(&gateway, &run)))
}

/// Cancels a run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/cancel", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"), ("run" = String, Path, description = "The run ID")),
    responses((status = 200, description = "The run", body = Run), (status = 409, description = "The run has ended")))]
pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    Path((source, run)): Path<(String, String)>,
) -> Result<Json<Run>, Refusal> {
    let run = gateway.control().runs().cancel(&ask::source(&source)?, run_id(&run)?, gateway.now()).await?;
    Ok(Json(present(&gateway, &run)))
}

/// Approves the deletions after the deletion guard stopped a run. This requests the same run again, which may delete
/// more than the guard allows.
#[utoipa::path(post, path = "/v1/sources/{source}/runs/{run}/approve", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"), ("run" = String, Path, description = "The run ID")),
    responses((status = 201, description = "The approved run", body = Run, headers(("Location" = String, description = "The URL of the run"))),
        (status = 409, description = "The deletion guard did not stop the run, or a later run exists")))]
pub(crate) async fn approve(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path((source, run)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (source, id) = (ask::source(&source)?, run_id(&run)?);
    let last = gateway.control().runs().get(&source).await?.ok_or_else(|| no_run(&source, id))?;
    let asked = RunRequest::approving(id, &last).map_err(Refusal::conflict)?;
    let run = ask_for(&gateway, &source, RunId::fresh(), &asked).await?;
    tracing::info!(source.id = %source, run.id = %run.spec.id, token = caller.name(), "a run may delete more than the guard allows");
    created(&source, run.spec.id, answer_of(&gateway, &run)?)
}
