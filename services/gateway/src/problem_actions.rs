//! `/v1/sources/{source}/problems/retry`, `/ignore`: operator actions on problems, queued for the owner of the Source.

use api::{Ignore, Page, ProblemAction, ProblemSelector, Retry};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use control::{ActionKind, ActionSelector, ProblemActionRequest};
use model::{SourceId, Subject};

use crate::api_error::ApiError;
use crate::extract::{JsonBody, SourcePath};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Queues a retry of problems for the next run of the Source.
#[utoipa::path(post, path = "/v1/sources/{source}/problems/retry", tag = "problems",
    params(SourcePath), request_body = Retry,
    responses((status = 202, description = "The action is queued", body = ProblemAction)))]
pub(crate) async fn retry(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    JsonBody(asked): JsonBody<Retry>,
) -> Result<(StatusCode, Json<ProblemAction>), ApiError> {
    queue(&gateway, &caller, source, asked.select, ActionKind::Retry { ignored: asked.ignored }).await
}

/// Ignores problems until the Source changes what it says about their subjects. Or undoes that.
#[utoipa::path(post, path = "/v1/sources/{source}/problems/ignore", tag = "problems",
    params(SourcePath), request_body = Ignore,
    responses((status = 202, description = "The action is queued", body = ProblemAction)))]
pub(crate) async fn ignore(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    JsonBody(asked): JsonBody<Ignore>,
) -> Result<(StatusCode, Json<ProblemAction>), ApiError> {
    let note = asked.note.as_deref().map(str::trim).unwrap_or_default();
    let action = if asked.unignore {
        ActionKind::Undo
    } else if note.is_empty() {
        let missing = ("note", "it has to say why nothing is to be done about them".to_owned());
        return Err(ApiError::invalid("the note is missing").fields([missing]));
    } else {
        ActionKind::Ignore { note: note.to_owned() }
    };
    queue(&gateway, &caller, source, asked.select, action).await
}

/// The queued actions of a Source, which wait for its next run.
#[utoipa::path(get, path = "/v1/sources/{source}/problems/actions", tag = "problems", params(SourcePath),
    responses((status = 200, description = "All queued actions, the oldest first", body = Page<ProblemAction>)))]
pub(crate) async fn waiting(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
) -> Result<Json<Page<ProblemAction>>, ApiError> {
    let words = gateway.control.problem_actions().of(&source).await?;
    Ok(Json(Page::all(words.iter().map(|action| ProblemAction::new(action)))))
}

async fn queue(
    gateway: &Gateway,
    caller: &Caller,
    source: SourceId,
    select: ProblemSelector,
    action: ActionKind,
) -> Result<(StatusCode, Json<ProblemAction>), ApiError> {
    let about = parse(select)?;
    // Refuse here, because no scheduler would ever apply an action on a missing Source.
    gateway.control.sources().get(&source).await?;
    let request = ProblemActionRequest::new(source, about, action, gateway.now());
    gateway.control.problem_actions().say(&request).await?;
    tracing::info!(source.id = %request.source, action.id = %request.id, token = caller.name(), "problem action queued");
    Ok((StatusCode::ACCEPTED, Json(ProblemAction::new(&request))))
}

/// Parses a selection of problems.
fn parse(select: ProblemSelector) -> Result<ActionSelector, ApiError> {
    if let Some(other) = select.kind.iter().find(|kind| !Subject::KINDS.contains(&kind.as_str())) {
        let said = format!("{other:?} is none of {}", Subject::KINDS.join(", "));
        return Err(ApiError::invalid("that is no kind of thing").fields([("select.kind", said)]));
    }
    let ProblemSelector { uris, prefix, reasons, kind: kinds, all } = select;
    let about = ActionSelector { uris, prefix, reasons, kinds };
    if about.is_empty() != all {
        let said =
            "say which problems are meant (uris, prefix, reasons, kind), or all of them (all), and not both";
        return Err(ApiError::invalid(said).fields([("select", said.to_owned())]));
    }
    Ok(about)
}
