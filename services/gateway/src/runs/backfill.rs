//! `/v1/sources/{source}/backfill`: requests earlier versions.

use api::{BackfillRequest, Run};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::{Requested, key_text, submit_once};
use crate::api_error::ApiError;
use crate::extract::{JsonBody, SourcePath};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Requests earlier versions of the stored resources of a Source: from the TimeMaps and versions that entries link to, and
/// from Archives. It is a run of its own, and a sync of the Source interrupts it.
#[utoipa::path(post, path = "/v1/sources/{source}/backfill", tag = "runs",
    params(SourcePath,
        ("Idempotency-Key" = Option<String>, Header, description = "A unique key of 1 to 255 visible characters")),
    request_body = BackfillRequest, responses(
    (status = 201, description = "The run is queued", body = Run, headers(("Location" = String, description = "The URL of the run"))),
    (status = 409, description = "The last backfill has not ended"),
))]
pub(crate) async fn submit(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    headers: HeaderMap,
    JsonBody(request): JsonBody<BackfillRequest>,
) -> Result<Response, ApiError> {
    let key = headers.get("idempotency-key").map(key_text).transpose()?;
    let submitted = submit_once(&gateway, &caller, key, &source, Requested::Backfill(&request)).await?;
    Ok(submitted.into_response(&source))
}
