//! Problems: recorded failures, with a reason and the time of the next retry.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Evidence;
use crate::problem_reason::ProblemReason;
use crate::resource::{Declaration, Listing};

/// The subject of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "subject", content = "uri")]
pub enum Subject {
    /// A resource, by its URI.
    Resource(String),
    /// A document of the Source, by its URI.
    Document(String),
    /// An entry of a document that names no usable resource: `<document>#<line>:<column>`.
    Entry(String),
    /// A dead letter, by the name of its message.
    Message(String),
}

/// A problem: one per resource, document, entry or message, open until it is resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRecord {
    /// The reason.
    pub reason: ProblemReason,
    /// What happened and what to do, as text.
    pub message: String,
    /// First seen.
    pub first_seen: Timestamp,
    /// Last seen.
    pub last_seen: Timestamp,
    /// Attempts in all runs.
    pub attempts: u32,
    /// Whether a retry may end differently. The next run retries the others all the same.
    pub retry: bool,
    /// The earliest time of the next retry, as the server requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The operator's decision to ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// The evidence.
    #[serde(default)]
    pub evidence: Evidence,
    /// What was declared of the resource, so that it can be queued again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declaration: Option<Declaration>,
    /// The entry that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<Listing>,
    /// The stored bytes are not to be relied on, and are replaced even by equal ones.
    #[serde(rename = "mend", default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
}

/// The operator's decision to ignore a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// The operator's note.
    pub note: String,
    /// The time of the decision.
    pub at: Timestamp,
}

impl ProblemRecord {
    /// Whether an entry is about the version that failed. An entry of another version is a reason to retry,
    /// even if the operator ignores this one. A later change means another version, even if nothing is
    /// declared.
    pub fn is_about(&self, declaration: &Declaration, listing: &Listing) -> bool {
        let Some(known) = &self.listing else { return false };
        let is_later = listing.change.is_some()
            && match (listing.change_time, known.as_of) {
                (Some(time), Some(as_of)) => time > as_of,
                (time, _) => time != known.change_time,
            };
        self.declaration.as_ref() == Some(declaration) && !is_later
    }

    /// The operator's decision to ignore, if it applies to the present failure of the same subject. For a
    /// gap, the deletion guard or a list that omits much it applies to the same message; for anything else to
    /// the same reason.
    pub fn still_ignored(&self, reason: ProblemReason, message: &str) -> Option<Ignored> {
        let by_words = matches!(reason, ProblemReason::Gap | ProblemReason::Guard | ProblemReason::NotListed);
        let is_same = self.reason == reason && (!by_words || self.message == message);
        self.ignored.clone().filter(|_| is_same)
    }
}

impl Subject {
    /// The kinds of subjects, by their stable names.
    pub const KINDS: [&str; 4] = ["resource", "document", "entry", "message"];

    /// The subject of this kind with this URI (or name, or position); None for an unknown kind.
    pub fn of(kind: &str, uri: String) -> Option<Self> {
        Some(match kind {
            "resource" => Self::Resource(uri),
            "document" => Self::Document(uri),
            "entry" => Self::Entry(uri),
            "message" => Self::Message(uri),
            _ => return None,
        })
    }

    /// The stable name of its kind, one of [`Self::KINDS`].
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Resource(_) => "resource",
            Self::Document(_) => "document",
            Self::Entry(_) => "entry",
            Self::Message(_) => "message",
        }
    }

    /// The URI (with the position, for an entry; the name, for a message).
    pub fn uri(&self) -> &str {
        match self {
            Self::Resource(uri) | Self::Document(uri) | Self::Entry(uri) | Self::Message(uri) => uri,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.uri())
    }
}

#[cfg(test)]
mod tests {
    use resourcesync::Change;

    use super::*;
    use crate::SetId;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn listing(change: Option<Change>, change_time: Option<i64>, as_of: Option<i64>) -> Listing {
        Listing {
            document: "http://h/list.xml".into(),
            set: SetId::new("http://h/caps.xml"),
            change,
            change_time: change_time.map(at),
            as_of: as_of.map(at),
            latest: None,
            links: None,
            linked: None,
        }
    }

    fn ignored(declaration: Declaration, listing: Listing) -> ProblemRecord {
        ProblemRecord {
            reason: ProblemReason::DigestMismatch,
            message: "another digest".to_owned(),
            first_seen: at(0),
            last_seen: at(0),
            attempts: 2,
            retry: true,
            next_attempt_at: None,
            ignored: Some(Ignored { note: "known".to_owned(), at: at(1) }),
            evidence: Evidence::default(),
            declaration: Some(declaration),
            listing: Some(listing),
            repair: false,
        }
    }

    #[test]
    fn what_a_later_list_says_in_the_same_words_is_the_same_version() {
        let declared = Declaration { length: Some(3), ..Declaration::default() };
        let problem = ignored(declared.clone(), listing(None, None, Some(10)));
        assert!(problem.is_about(&declared, &listing(None, None, Some(20))));
        let other = Declaration { length: Some(4), ..Declaration::default() };
        assert!(!problem.is_about(&other, &listing(None, None, Some(20))));
    }

    #[test]
    fn a_later_change_is_another_version_even_where_nothing_is_declared_and_the_same_change_is_not() {
        let updated = |second| listing(Some(Change::Updated), Some(second), Some(second));
        let nothing = Declaration::default();
        for known in [listing(None, None, Some(10)), updated(10)] {
            let problem = ignored(nothing.clone(), known);
            assert!(problem.is_about(&nothing, &updated(10)));
            assert!(!problem.is_about(&nothing, &updated(11)));
        }
        let undated = ignored(nothing.clone(), listing(Some(Change::Updated), None, None));
        assert!(undated.is_about(&nothing, &listing(Some(Change::Updated), None, None)));
        assert!(!undated.is_about(&nothing, &updated(1)));
    }

    #[test]
    fn the_operators_word_holds_for_the_same_reason_and_for_a_gap_in_the_same_words() {
        let mut problem = ignored(Declaration::default(), listing(None, None, None));
        assert!(problem.still_ignored(ProblemReason::DigestMismatch, "in other words").is_some());
        assert!(problem.still_ignored(ProblemReason::Timeout, "another digest").is_none());
        problem.reason = ProblemReason::Gap;
        assert!(problem.still_ignored(ProblemReason::Gap, "another digest").is_some());
        assert!(problem.still_ignored(ProblemReason::Gap, "between other moments").is_none());
    }

    #[test]
    fn each_kind_is_named_in_records_as_it_is_shown_and_read() {
        for kind in Subject::KINDS {
            let subject = Subject::of(kind, "https://e.org/a b".to_owned()).unwrap();
            assert_eq!((subject.kind(), subject.uri()), (kind, "https://e.org/a b"));
            assert_eq!(serde_json::to_value(&subject).unwrap()["subject"], kind);
            assert_eq!(subject.to_string(), format!("{kind} https://e.org/a b"));
        }
        assert_eq!(Subject::of("planet", "mars".to_owned()), None);
    }
}
