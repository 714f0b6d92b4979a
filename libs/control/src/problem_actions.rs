//! Operator actions on the problems of a Source. They are queued here for the owner, who alone writes the catalog.

use jiff::Timestamp;
use model::{Message, Persisted, ProblemReason, SourceId, Subject};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::error::ControlError;
use crate::kept::Kept;
use crate::table::Table;
use crate::versioned::Versioned;

/// An action on problems of a Source. Its owner applies and removes it before the next run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemActionRequest {
    /// Its ID; IDs sort by time.
    pub id: Ulid,
    /// The Source.
    pub source: SourceId,
    /// The selected problems.
    pub about: ActionSelector,
    /// The action.
    pub word: ActionKind,
    /// When the operator requested it.
    pub said_at: Timestamp,
}

/// An action on problems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ActionKind {
    /// Queue them again.
    Retry {
        /// Also ignored ones.
        #[serde(default)]
        ignored: bool,
    },
    /// Ignore them.
    Ignore {
        /// Why.
        note: String,
    },
    /// Stop ignoring them.
    Undo,
}

/// Selects the problems that match all given conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionSelector {
    /// With these URIs or IDs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
    /// With URIs that begin with this prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// With one of these reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ProblemReason>,
    /// With one of these kinds of subject, which are [`Subject::KINDS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// The actions that wait for the owners of their Sources.
pub type ProblemActions = Table<ProblemActionRequest>;

impl ProblemActionRequest {
    /// A new action.
    pub fn new(source: SourceId, about: ActionSelector, word: ActionKind, said_at: Timestamp) -> Self {
        Self { id: Ulid::new(), source, about, word, said_at }
    }

    fn table_id(&self) -> (SourceId, Ulid) {
        (self.source.clone(), self.id)
    }
}

impl ActionSelector {
    /// Whether a problem is selected.
    pub fn takes(&self, subject: &Subject, reason: ProblemReason) -> bool {
        (self.uris.is_empty() || self.names(subject))
            && self.prefix.as_ref().is_none_or(|prefix| subject.uri().starts_with(prefix.as_str()))
            && (self.reasons.is_empty() || self.reasons.contains(&reason))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == subject.kind()))
    }

    /// Whether a problem is selected by its exact URI.
    pub fn names(&self, subject: &Subject) -> bool {
        self.uris.iter().any(|uri| uri == subject.uri())
    }

    /// Whether there is no condition, so that all problems match.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Table<ProblemActionRequest> {
    /// Queues an action.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn say(&self, action: &ProblemActionRequest) -> Result<(), ControlError> {
        self.write(&action.table_id(), action, None, None).await.map(drop)
    }

    /// Removes an action that was applied.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, action: &Versioned<ProblemActionRequest>) -> Result<(), ControlError> {
        self.delete_at(&action.table_id(), Some(action.revision)).await
    }

    /// The queued actions on a Source, in the order of their requests.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn of(&self, source: &SourceId) -> Result<Vec<Versioned<ProblemActionRequest>>, ControlError> {
        let all = self.view().await?.all();
        Ok(all.into_iter().filter(|word| word.source == *source).collect())
    }
}

impl Message for ProblemActionRequest {
    const KIND: &'static str = "word-request";
    const VERSION: u16 = Persisted::ProblemActions.version();
}

impl Kept for ProblemActionRequest {
    type Id = (SourceId, Ulid);

    fn key((source, id): &(SourceId, Ulid)) -> String {
        format!("{source}.{}", id.to_string().to_ascii_lowercase())
    }

    fn describe((source, _): &(SourceId, Ulid)) -> String {
        format!("an action on problems of {source}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_about_what_all_of_it_holds_for() {
        let about = ActionSelector {
            prefix: Some("https://e.org/a".to_owned()),
            reasons: vec![ProblemReason::Timeout],
            kinds: vec!["resource".to_owned()],
            ..ActionSelector::default()
        };
        let resource = |uri: &str| Subject::Resource(uri.to_owned());
        assert!(about.takes(&resource("https://e.org/ab"), ProblemReason::Timeout));
        assert!(!about.takes(&resource("https://e.org/b"), ProblemReason::Timeout));
        assert!(!about.takes(&resource("https://e.org/ab"), ProblemReason::Dns));
        assert!(!about.takes(&Subject::Document("https://e.org/ab".to_owned()), ProblemReason::Timeout));
        assert!(ActionSelector::default().is_empty() && !about.is_empty());
        let named = ActionSelector { uris: vec!["https://e.org/ab".to_owned()], ..ActionSelector::default() };
        assert!(named.takes(&resource("https://e.org/ab"), ProblemReason::Dns));
        assert!(!named.takes(&resource("https://e.org/a"), ProblemReason::Dns));
    }
}
