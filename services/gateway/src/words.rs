//! `/v1/sources/{source}/problems/retry`, `/ignore`: the operator's word about problems, written down for the owner of the Source.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use control::{WordAbout, WordKind, WordRequest};
use jiff::Timestamp;
use model::ProblemReason;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, Schema};

use crate::ask::{self, Sent};
use crate::page::Page;
use crate::problems::KINDS;
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;
use crate::wanted::names_of;

/// Which problems: those for which all holds that is said here, and something is to be said.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// With these URIs, or names.
    #[serde(default)]
    uris: Vec<String>,
    /// With URIs that begin with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    prefix: Option<String>,
    /// Of one of these reasons.
    #[serde(default)]
    #[schema(schema_with = reasons)]
    reasons: Vec<ProblemReason>,
    /// About one of these kinds of things.
    #[serde(default)]
    #[schema(schema_with = kinds)]
    about: Vec<String>,
    /// All of them.
    #[serde(default)]
    all: bool,
}

/// Which problems are to be tried again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    /// Which.
    select: About,
    /// Also those that are ignored, and not named by their URIs.
    #[serde(default)]
    ignored: bool,
}

/// Which problems are to be left alone.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ignore {
    /// Which.
    select: About,
    /// Why nothing is to be done about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    note: Option<String>,
    /// They are not ignored any more, instead.
    #[serde(default)]
    undo: bool,
}

/// A word that waits for the owner of the Source, who takes it up before its next run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Word {
    /// Its name.
    id: String,
    /// Which problems are meant.
    select: About,
    /// What is to become of them: `retry`, `ignore`, `undo`.
    word: &'static str,
    /// Why, if they are to be ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    note: Option<String>,
    /// When it was said.
    said_at: Timestamp,
}

fn reasons() -> Schema {
    ArrayBuilder::new().items(names_of(&ProblemReason::ALL.map(ProblemReason::as_str))).build().into()
}

fn kinds() -> Schema {
    ArrayBuilder::new().items(names_of(&KINDS)).build().into()
}

/// Has problems tried again by the next run of the Source.
#[utoipa::path(post, path = "/v1/sources/{source}/problems/retry", tag = "problems",
    params(("source" = String, Path, description = "The Source's name")), request_body = Retry,
    responses((status = 202, description = "The owner takes it up before its next run", body = Word)))]
pub(crate) async fn retry(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Sent(asked): Sent<Retry>,
) -> Result<(StatusCode, Json<Word>), Refusal> {
    say(&gateway, &caller, &source, asked.select, WordKind::Retry { ignored: asked.ignored }).await
}

/// Has problems left alone, as long as the Source says the same of what they are about; or takes that back.
#[utoipa::path(post, path = "/v1/sources/{source}/problems/ignore", tag = "problems",
    params(("source" = String, Path, description = "The Source's name")), request_body = Ignore,
    responses((status = 202, description = "The owner takes it up before its next run", body = Word)))]
pub(crate) async fn ignore(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Sent(asked): Sent<Ignore>,
) -> Result<(StatusCode, Json<Word>), Refusal> {
    let note = asked.note.as_deref().map(str::trim).unwrap_or_default();
    let word = match asked.undo {
        true => WordKind::Undo,
        false if note.is_empty() => {
            let missing = ("note", "it has to say why nothing is to be done about them".to_owned());
            return Err(Refusal::invalid("the note is missing").fields([missing]));
        }
        false => WordKind::Ignore { note: note.to_owned() },
    };
    say(&gateway, &caller, &source, asked.select, word).await
}

/// The words that were said about a Source, and wait for its next run.
#[utoipa::path(get, path = "/v1/sources/{source}/problems/words", tag = "problems",
    params(("source" = String, Path, description = "The Source's name")),
    responses((status = 200, description = "All that wait, in the order in which they were said", body = Page<Word>)))]
pub(crate) async fn waiting(
    State(gateway): State<Gateway>,
    Path(source): Path<String>,
) -> Result<Json<Page<Word>>, Refusal> {
    let words = gateway.control().words().of(&ask::source(&source)?).await?;
    let items = words.iter().map(|word| Word::new(word)).collect();
    Ok(Json(Page { items, next: None }))
}

async fn say(
    gateway: &Gateway,
    caller: &Caller,
    source: &str,
    select: About,
    word: WordKind,
) -> Result<(StatusCode, Json<Word>), Refusal> {
    let source = ask::source(source)?;
    let about = select.read()?;
    // Nobody would ever take it up.
    gateway.control().sources().get(&source).await?;
    let request = WordRequest::new(source, about, word, gateway.now());
    gateway.control().words().say(&request).await?;
    tracing::info!(source.id = %request.source, word.id = %request.id, token = caller.name(), "a word about problems is said");
    Ok((StatusCode::ACCEPTED, Json(Word::new(&request))))
}

impl About {
    fn read(self) -> Result<WordAbout, Refusal> {
        if let Some(other) = self.about.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            let said = format!("{other:?} is none of {}", KINDS.join(", "));
            return Err(Refusal::invalid("that is no kind of thing").fields([("select.about", said)]));
        }
        let about =
            WordAbout { uris: self.uris, prefix: self.prefix, reasons: self.reasons, kinds: self.about };
        if about.is_empty() != self.all {
            let said = "say which problems are meant (uris, prefix, reasons, about), or all of them (all), and not both";
            return Err(Refusal::invalid(said).fields([("select", said.to_owned())]));
        }
        Ok(about)
    }
}

impl Word {
    fn new(request: &WordRequest) -> Self {
        let about = request.about.clone();
        let (word, note) = match &request.word {
            WordKind::Retry { .. } => ("retry", None),
            WordKind::Ignore { note } => ("ignore", Some(note.clone())),
            WordKind::Undo => ("undo", None),
        };
        let all = about.is_empty();
        let WordAbout { uris, prefix, reasons, kinds } = about;
        let select = About { uris, prefix, reasons, about: kinds, all };
        Self { id: request.id.to_string(), select, word, note, said_at: request.said_at }
    }
}
