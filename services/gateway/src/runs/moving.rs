//! `/v1/sources/{source}/move`: harvests a Source from another entry URL, and takes that back.

use api::{MoveRequest, Run};
use axum::extract::State;
use axum::response::Response;
use control::{ControlError, SourceSpec, Spec};

use super::{Requested, submit_once};
use crate::access;
use crate::api_error::ApiError;
use crate::extract::{IdempotencyKey, JsonBody, SourcePath};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Harvests a Source from another entry URL, with its name and settings. What is stored and is the same there is kept
/// without a request. The Source has another ID then; its first run is requested.
#[utoipa::path(post, path = "/v1/sources/{source}/move", tag = "sources",
    params(SourcePath, IdempotencyKey),
    request_body = MoveRequest, responses(
    (status = 201, description = "The run that moves it is queued", body = Run, headers(("Location" = String, description = "The URL of the run"))),
    (status = 409, description = "There is a Source of that URL, or the last task of the Source has not ended"),
))]
pub(crate) async fn begin(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    key: IdempotencyKey,
    JsonBody(MoveRequest { to }): JsonBody<MoveRequest>,
) -> Result<Response, ApiError> {
    let left = access::visible(&gateway, &caller, &source).await?;
    let to = SourceSpec::from(Spec { entry: to, ..left.spec.clone() });
    to.check().map_err(ControlError::from)?;
    check_free(&gateway, &to).await?;
    let submitted = submit_once(&gateway, &caller, key.get(), &source, Requested::Move { to: &to }).await?;
    Ok(submitted.into_response(&source))
}

/// Takes the move of a Source back: it is harvested from its former URL again, as if it had not moved.
#[utoipa::path(post, path = "/v1/sources/{source}/move/back", tag = "sources",
    params(SourcePath, IdempotencyKey),
    responses(
    (status = 201, description = "The run that takes it back is queued", body = Run, headers(("Location" = String, description = "The URL of the run"))),
    (status = 409, description = "The Source was not moved, or its last task has not ended"),
))]
pub(crate) async fn back(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(named): SourcePath,
    key: IdempotencyKey,
) -> Result<Response, ApiError> {
    let moves = gateway.store.moves().await.map_err(|error| ApiError::internal(error.to_string()))?;
    // By what it is now, or by what it was.
    let of_present = moves.iter().find(|moved| moved.to == named);
    let moved = of_present.or_else(|| moves.iter().find(|moved| moved.source == named));
    let Some(moved) = moved else {
        return Err(ApiError::conflict(format!("{named} was not moved, so no move can be taken back")));
    };
    let present = access::visible(&gateway, &caller, &moved.to).await?;
    let entry = moved.url.parse();
    let entry = entry.map_err(|error| ApiError::internal(format!("the former URL is none: {error}")))?;
    let to = SourceSpec::from(Spec { entry, ..present.spec.clone() });
    let submitted =
        submit_once(&gateway, &caller, key.get(), &moved.to, Requested::MoveBack { back_to: &to }).await?;
    Ok(submitted.into_response(&moved.to))
}

/// Refuses a move to the URL of a Source that the fleet has.
async fn check_free(gateway: &Gateway, to: &SourceSpec) -> Result<(), ApiError> {
    match gateway.control.sources().get(&to.id).await {
        Ok(_) | Err(ControlError::Unreadable { .. }) => Err(ApiError::conflict(format!(
            "the fleet has a Source of {} already; nothing can be moved over it",
            to.entry
        ))),
        Err(ControlError::Absent { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
