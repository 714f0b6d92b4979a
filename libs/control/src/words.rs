//! What the operator has to say about the problems of a Source: written down here for its owner, who alone writes its catalog.

use jiff::Timestamp;
use model::{Message, ProblemReason, SourceId, Subject};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::table::{Kept, Table};
use crate::view::View;
use crate::{ControlError, Revised};

/// A word about problems of a Source. Its owner takes it up before its next run, and then it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordRequest {
    /// Its name; names sort by time.
    pub id: Ulid,
    /// The Source.
    pub source: SourceId,
    /// Which problems are meant.
    pub about: WordAbout,
    /// What is to become of them.
    pub word: WordKind,
    /// When it was said.
    pub said_at: Timestamp,
}

/// What is to become of problems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum WordKind {
    /// They are queued again.
    Retry {
        /// Also those that are ignored.
        #[serde(default)]
        ignored: bool,
    },
    /// Nothing is to be done about them.
    Ignore {
        /// Why.
        note: String,
    },
    /// They are not ignored any more.
    Undo,
}

/// Which problems are meant: those for which all holds that is said here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WordAbout {
    /// About these URIs, or names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
    /// About URIs that begin with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Of one of these reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ProblemReason>,
    /// About one of these kinds of things, which are [`Subject::KINDS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// The words that wait for the owners of their Sources.
#[derive(Debug, Clone)]
pub struct Words {
    table: Table<WordRequest>,
}

impl WordRequest {
    /// A word that is said now.
    pub fn new(source: SourceId, about: WordAbout, word: WordKind, said_at: Timestamp) -> Self {
        Self { id: Ulid::new(), source, about, word, said_at }
    }
}

impl WordAbout {
    /// Whether a problem is meant.
    pub fn takes(&self, subject: &Subject, reason: ProblemReason) -> bool {
        (self.uris.is_empty() || self.names(subject))
            && self.prefix.as_ref().is_none_or(|prefix| subject.uri().starts_with(prefix.as_str()))
            && (self.reasons.is_empty() || self.reasons.contains(&reason))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == subject.kind()))
    }

    /// Whether it is meant by its very URI.
    pub fn names(&self, subject: &Subject) -> bool {
        self.uris.iter().any(|uri| uri == subject.uri())
    }

    /// Whether nothing is said, so that all would be meant.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Words {
    pub(crate) fn new(table: Table<WordRequest>) -> Self {
        Self { table }
    }

    /// Says a word.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn say(&self, word: &WordRequest) -> Result<(), ControlError> {
        let id = (word.source.clone(), word.id);
        let said = self.table.put(&id, word, None, None).await;
        said.map(drop).map_err(|error| error.of(|| format!("a word about {}", word.source)))
    }

    /// Forgets a word that was taken up.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, word: &Revised<WordRequest>) -> Result<(), ControlError> {
        let id = (word.source.clone(), word.id);
        let gone = self.table.remove(&id, Some(word.revision)).await;
        gone.map_err(|error| error.of(|| format!("a word about {}", word.source)))
    }

    /// A live copy of all words that wait.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<WordRequest>, ControlError> {
        self.table.view().await
    }

    /// The words about a Source that wait now, in the order in which they were said.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn of(&self, source: &SourceId) -> Result<Vec<Revised<WordRequest>>, ControlError> {
        let all = self.view().await?.all();
        Ok(all.into_iter().filter(|word| word.source == *source).collect())
    }
}

impl Message for WordRequest {
    const KIND: &'static str = "word-request";
    const VERSION: u16 = 1;
}

impl Kept for WordRequest {
    type Id = (SourceId, Ulid);

    fn key((source, id): &(SourceId, Ulid)) -> String {
        format!("{source}.{}", id.to_string().to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_about_what_all_of_it_holds_for() {
        let about = WordAbout {
            prefix: Some("https://e.org/a".to_owned()),
            reasons: vec![ProblemReason::Timeout],
            kinds: vec!["resource".to_owned()],
            ..WordAbout::default()
        };
        let resource = |uri: &str| Subject::Resource(uri.to_owned());
        assert!(about.takes(&resource("https://e.org/ab"), ProblemReason::Timeout));
        assert!(!about.takes(&resource("https://e.org/b"), ProblemReason::Timeout));
        assert!(!about.takes(&resource("https://e.org/ab"), ProblemReason::Dns));
        assert!(!about.takes(&Subject::Document("https://e.org/ab".to_owned()), ProblemReason::Timeout));
        assert!(WordAbout::default().is_empty() && !about.is_empty());
        let named = WordAbout { uris: vec!["https://e.org/ab".to_owned()], ..WordAbout::default() };
        assert!(named.takes(&resource("https://e.org/ab"), ProblemReason::Dns));
        assert!(!named.takes(&resource("https://e.org/a"), ProblemReason::Dns));
    }
}
