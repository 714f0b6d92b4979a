//! Problems: recorded failures, with a reason and the time of the next retry.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Declaration, Evidence, Listing};

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

/// The closed list of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemReason {
    /// The server answered with a 4xx status.
    HttpClientError,
    /// The server answered with a 5xx status.
    HttpServerError,
    /// The server requested a pause: 429, or 503 with `Retry-After`.
    Throttled,
    /// A status that is neither success nor an error (an unexpected 1xx or 3xx).
    HttpUnexpected,
    /// The host name has no address.
    Dns,
    /// No connection.
    Connect,
    /// No secure connection.
    Tls,
    /// No answer in time.
    Timeout,
    /// The answer broke off.
    Interrupted,
    /// More redirects than allowed, or one without a usable target.
    Redirect,
    /// A URI that cannot be fetched.
    BadUri,
    /// An address that needs the operator's permission: private, loopback, link-local and the like.
    RefusedAddress,
    /// A port of another service than HTTP, which browsers refuse, too.
    RefusedPort,
    /// The origin's `robots.txt` disallows it, and the configuration obeys it.
    Disallowed,
    /// A bot defence answered in place of the content.
    Challenged,
    /// A login form answered in place of the content.
    LoginPage,
    /// An HTML page came where another media type was declared or stored before.
    UnexpectedHtml,
    /// The bytes have another digest than declared.
    DigestMismatch,
    /// The bytes have another length than declared.
    LengthMismatch,
    /// Not as declared, and certainly a later version: it has changed again since it was listed.
    ChangedAgain,
    /// Larger than allowed.
    TooLarge,
    /// The body was slower than allowed.
    TooSlow,
    /// A document or entry that cannot be parsed.
    Malformed,
    /// A document that ends too early.
    Truncated,
    /// Not the kind of document that was expected.
    WrongKind,
    /// A package that is hostile, or looks so: readers would disagree about its contents, or it exceeds the
    /// limits.
    HostilePackage,
    /// Part of what the Source offers could not be discovered, so it was not harvested.
    Discovery,
    /// A change document leaves a gap after what is synchronized.
    Gap,
    /// More deletions than the operator allows without approval.
    Guard,
    /// A list omits more stored resources than the operator allows to be deleted without approval. All of
    /// them are kept.
    NotListed,
    /// The stored bytes are missing.
    MissingBytes,
    /// The stored bytes are damaged, or incomplete.
    DamagedBytes,
    /// A message that no retry could process.
    Poison,
    /// More levels of indexes than a run reads.
    LimitIndexLevels,
    /// More documents than a run reads.
    LimitDocuments,
    /// More entries than a run reads.
    LimitEntries,
    /// More bytes of documents than a run reads.
    LimitDocumentBytes,
    /// A compressed document that inflates to many times its size.
    LimitInflation,
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mend: bool,
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

impl ProblemReason {
    /// All of them.
    pub const ALL: [Self; 38] = [
        Self::HttpClientError,
        Self::HttpServerError,
        Self::Throttled,
        Self::HttpUnexpected,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Interrupted,
        Self::Redirect,
        Self::BadUri,
        Self::RefusedAddress,
        Self::RefusedPort,
        Self::Disallowed,
        Self::Challenged,
        Self::LoginPage,
        Self::UnexpectedHtml,
        Self::DigestMismatch,
        Self::LengthMismatch,
        Self::ChangedAgain,
        Self::TooLarge,
        Self::TooSlow,
        Self::Malformed,
        Self::Truncated,
        Self::WrongKind,
        Self::HostilePackage,
        Self::Discovery,
        Self::Gap,
        Self::Guard,
        Self::NotListed,
        Self::MissingBytes,
        Self::DamagedBytes,
        Self::Poison,
        Self::LimitIndexLevels,
        Self::LimitDocuments,
        Self::LimitEntries,
        Self::LimitDocumentBytes,
        Self::LimitInflation,
    ];

    /// The reason's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HttpClientError => "http-client-error",
            Self::HttpServerError => "http-server-error",
            Self::Throttled => "throttled",
            Self::HttpUnexpected => "http-unexpected",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::Redirect => "redirect",
            Self::BadUri => "bad-uri",
            Self::RefusedAddress => "refused-address",
            Self::RefusedPort => "refused-port",
            Self::Disallowed => "disallowed",
            Self::Challenged => "challenged",
            Self::LoginPage => "login-page",
            Self::UnexpectedHtml => "unexpected-html",
            Self::DigestMismatch => "digest-mismatch",
            Self::LengthMismatch => "length-mismatch",
            Self::ChangedAgain => "changed-again",
            Self::TooLarge => "too-large",
            Self::TooSlow => "too-slow",
            Self::Malformed => "malformed",
            Self::Truncated => "truncated",
            Self::WrongKind => "wrong-kind",
            Self::HostilePackage => "hostile-package",
            Self::Discovery => "discovery",
            Self::Gap => "gap",
            Self::Guard => "guard",
            Self::NotListed => "not-listed",
            Self::MissingBytes => "missing-bytes",
            Self::DamagedBytes => "damaged-bytes",
            Self::Poison => "poison",
            Self::LimitIndexLevels => "limit-index-levels",
            Self::LimitDocuments => "limit-documents",
            Self::LimitEntries => "limit-entries",
            Self::LimitDocumentBytes => "limit-document-bytes",
            Self::LimitInflation => "limit-inflation",
        }
    }
}

/// A name without a reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} is no reason of a problem; the reasons are: {}", ProblemReason::ALL.map(ProblemReason::as_str).join(", "))]
pub struct UnknownReason {
    given: String,
}

impl FromStr for ProblemReason {
    type Err = UnknownReason;

    fn from_str(given: &str) -> Result<Self, UnknownReason> {
        let found = Self::ALL.into_iter().find(|reason| reason.as_str() == given);
        found.ok_or_else(|| UnknownReason { given: given.to_owned() })
    }
}

impl fmt::Display for ProblemReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
            mend: false,
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
    fn the_name_in_records_is_the_name_shown_and_the_name_read() {
        for reason in ProblemReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(reason.as_str().parse(), Ok(reason));
        }
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

    #[test]
    fn another_name_is_refused_with_all_that_there_are() {
        let said = "bored".parse::<ProblemReason>().unwrap_err().to_string();
        assert!(said.contains("bored") && said.contains("digest-mismatch"), "{said}");
    }
}
