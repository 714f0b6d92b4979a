//! The operator's word about problems.

use std::borrow::Cow;

use control::{WordAbout, WordKind, WordRequest};
use jiff::Timestamp;
use model::ProblemReason;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{kinds, reasons};

/// Which problems: those for which all holds that is said here, and something is to be said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// With these URIs, or names.
    #[serde(default)]
    pub uris: Vec<String>,
    /// With URIs that begin with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub prefix: Option<String>,
    /// Of one of these reasons.
    #[serde(default)]
    #[schema(schema_with = reasons)]
    pub reasons: Vec<ProblemReason>,
    /// About one of these kinds of things.
    #[serde(default)]
    #[schema(schema_with = kinds)]
    pub about: Vec<String>,
    /// All of them.
    #[serde(default)]
    pub all: bool,
}

/// Which problems are to be tried again.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Which.
    pub select: About,
    /// Also those that are ignored, and not named by their URIs.
    #[serde(default)]
    pub ignored: bool,
}

/// Which problems are to be left alone.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ignore {
    /// Which.
    pub select: About,
    /// Why nothing is to be done about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub note: Option<String>,
    /// They are not ignored any more, instead.
    #[serde(default)]
    pub undo: bool,
}

/// A word that waits for the owner of the Source, who takes it up before its next run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Word {
    /// Its name.
    pub id: String,
    /// Which problems are meant.
    pub select: About,
    /// What is to become of them: `retry`, `ignore`, `undo`.
    pub word: Cow<'static, str>,
    /// Why, if they are to be ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub note: Option<String>,
    /// When it was said.
    pub said_at: Timestamp,
}

impl Word {
    /// A word as it was written down.
    pub fn new(request: &WordRequest) -> Self {
        let about = request.about.clone();
        let (word, note) = match &request.word {
            WordKind::Retry { .. } => ("retry", None),
            WordKind::Ignore { note } => ("ignore", Some(note.clone())),
            WordKind::Undo => ("undo", None),
        };
        let all = about.is_empty();
        let WordAbout { uris, prefix, reasons, kinds } = about;
        let select = About { uris, prefix, reasons, about: kinds, all };
        Self { id: request.id.to_string(), select, word: word.into(), note, said_at: request.said_at }
    }
}
