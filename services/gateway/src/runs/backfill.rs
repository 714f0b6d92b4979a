//! `/v1/sources/{source}/backfill`: requests earlier versions.

use api::{BackfillRequest, Run};
use axum::extract::State;
use axum::response::Response;

use super::{Requested, submit_once};
use crate::api_error::ApiError;
use crate::extract::{IdempotencyKey, JsonBody, SourcePath};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Requests earlier versions of the stored resources of a Source: from the TimeMaps and versions that entries link to, and
/// from Archives. It is a run of its own, and a sync of the Source interrupts it.
#[utoipa::path(post, path = "/v1/sources/{source}/backfill", tag = "runs",
    params(SourcePath, IdempotencyKey),
    request_body = BackfillRequest, responses(
    (status = 201, description = "The run is queued", body = Run, headers(("Location" = String, description = "The URL of the run"))),
    (status = 409, description = "The last backfill has not ended"),
))]
pub(crate) async fn submit(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    key: IdempotencyKey,
    JsonBody(request): JsonBody<BackfillRequest>,
) -> Result<Response, ApiError> {
    let submitted = submit_once(&gateway, &caller, key.get(), &source, Requested::Backfill(&request)).await?;
    Ok(submitted.into_response(&source))
}
