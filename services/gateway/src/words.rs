//! `/v1/sources/{source}/problems/retry`, `/ignore`: operator actions on problems, queued for the owner of the Source.

use api::{Ignore, Page, ProblemAction, ProblemSelector, Retry};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use control::{ActionKind, ProblemActionRequest, WordAbout};
use model::Subject;

use crate::ask::{self, Sent};
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Queues a retry of problems for the next run of the Source.
#[utoipa::path(post, path = "/v1/sources/{source}/problems/retry", tag = "problems",
    params(("source" = String, Path, description = "The Source ID")), request_body = Retry,
    responses((status = 202, description = "The action is queued", body = ProblemAction)))]
pub(crate) async fn retry(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Sent(asked): Sent<Retry>,
) -> Result<(StatusCode, Json<ProblemAction>), Refusal> {
    say(&gateway, &caller, &source, asked.select, ActionKind::Retry { ignored: asked.ignored }).await
}

/// Ignores problems until the Source changes what it says about their subjects. Or undoes that.
#[utoipa::path(post, path = "/v1/sources/{source}/problems/ignore", tag = "problems",
    params(("source" = String, Path, description = "The Source ID")), request_body = Ignore,
    responses((status = 202, description = "The action is queued", body = ProblemAction)))]
pub(crate) async fn ignore(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Sent(asked): Sent<Ignore>,
) -> Result<(StatusCode, Json<ProblemAction>), Refusal> {
    let note = asked.note.as_deref().map(str::trim).unwrap_or_default();
    let word = match asked.unignore {
        true => ActionKind::Undo,
        false if note.is_empty() => {
            let missing = ("note", "it has to say why nothing is to be done about them".to_owned());
            return Err(Refusal::invalid("the note is missing").fields([missing]));
        }
        false => ActionKind::Ignore { note: note.to_owned() },
    };
    say(&gateway, &caller, &source, asked.select, word).await
}

/// The queued actions of a Source, which wait for its next run.
#[utoipa::path(get, path = "/v1/sources/{source}/problems/actions", tag = "problems",
    params(("source" = String, Path, description = "The Source ID")),
    responses((status = 200, description = "All queued actions, the oldest first", body = Page<ProblemAction>)))]
pub(crate) async fn waiting(
    State(gateway): State<Gateway>,
    Path(source): Path<String>,
) -> Result<Json<Page<ProblemAction>>, Refusal> {
    let words = gateway.control().words().of(&ask::source(&source)?).await?;
    let items = words.iter().map(|word| ProblemAction::new(word)).collect();
    Ok(Json(Page { items, next: None }))
}

async fn say(
    gateway: &Gateway,
    caller: &Caller,
    source: &str,
    select: ProblemSelector,
    word: ActionKind,
) -> Result<(StatusCode, Json<ProblemAction>), Refusal> {
    let source = ask::source(source)?;
    let about = read(select)?;
    // Refuse here, because no scheduler would ever apply an action on a missing Source.
    gateway.control().sources().get(&source).await?;
    let request = ProblemActionRequest::new(source, about, word, gateway.now());
    gateway.control().words().say(&request).await?;
    tracing::info!(source.id = %request.source, word.id = %request.id, token = caller.name(), "a word about problems is said");
    Ok((StatusCode::ACCEPTED, Json(ProblemAction::new(&request))))
}

/// Parses a selection of problems.
fn read(select: ProblemSelector) -> Result<WordAbout, Refusal> {
    if let Some(other) = select.kind.iter().find(|kind| !Subject::KINDS.contains(&kind.as_str())) {
        let said = format!("{other:?} is none of {}", Subject::KINDS.join(", "));
        return Err(Refusal::invalid("that is no kind of thing").fields([("select.kind", said)]));
    }
    let ProblemSelector { uris, prefix, reasons, kind: kinds, all } = select;
    let about = WordAbout { uris, prefix, reasons, kinds };
    if about.is_empty() != all {
        let said =
            "say which problems are meant (uris, prefix, reasons, kind), or all of them (all), and not both";
        return Err(Refusal::invalid(said).fields([("select", said.to_owned())]));
    }
    Ok(about)
}
