//! Operator actions on problems.

use std::borrow::Cow;

use control::{ActionKind, ActionSelector, ProblemActionRequest};
use jiff::Timestamp;
use model::ProblemReason;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::schema::{kinds, one_of, reasons};

/// Selects problems that match all given conditions. At least one condition is required.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemSelector {
    /// With these URIs or IDs.
    #[serde(default)]
    pub uris: Vec<String>,
    /// With URIs that begin with this prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub prefix: Option<String>,
    /// With one of these reasons.
    #[serde(default)]
    #[schema(schema_with = reasons)]
    pub reasons: Vec<ProblemReason>,
    /// With one of these kinds of subjects.
    #[serde(default)]
    #[schema(schema_with = kinds)]
    pub kind: Vec<String>,
    /// All problems.
    #[serde(default)]
    pub all: bool,
}

/// Problems to retry.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The problems to select.
    pub select: ProblemSelector,
    /// Also ignored problems that the selection does not name by URI.
    #[serde(default)]
    pub ignored: bool,
}

/// Problems to ignore.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ignore {
    /// The problems to select.
    pub select: ProblemSelector,
    /// Why the operator ignores them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub note: Option<String>,
    /// Stop ignoring them, instead.
    #[serde(default)]
    pub unignore: bool,
}

/// A queued action on problems. The owner of the Source applies it before its next run.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProblemAction {
    /// The ID of the action.
    pub id: String,
    /// The selected problems.
    pub select: ProblemSelector,
    /// The action: `retry`, `ignore` or `unignore`.
    #[schema(schema_with = action)]
    pub action: Cow<'static, str>,
    /// Why, for an action that ignores problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub note: Option<String>,
    /// When the operator requested the action.
    pub requested_at: Timestamp,
}

impl ProblemAction {
    /// Builds the API form of a stored action.
    pub fn new(request: &ProblemActionRequest) -> Self {
        let about = request.about.clone();
        let (action, note) = match &request.word {
            ActionKind::Retry { .. } => ("retry", None),
            ActionKind::Ignore { note } => ("ignore", Some(note.clone())),
            ActionKind::Undo => ("unignore", None),
        };
        let all = about.is_empty();
        let ActionSelector { uris, prefix, reasons, kinds } = about;
        let select = ProblemSelector { uris, prefix, reasons, kind: kinds, all };
        Self {
            id: request.id.to_string(),
            select,
            action: action.into(),
            note,
            requested_at: request.said_at,
        }
    }
}

fn action() -> Schema {
    one_of(&["retry", "ignore", "unignore"])
}
