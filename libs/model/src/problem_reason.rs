//! Why a problem exists: the closed list of reasons.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// The closed list of reasons.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownReason, parse_err_fn = UnknownReason::of)]
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
    /// An interrupted run read a list or dump, so that it is not known which stored resources it omits. All of
    /// them are kept.
    Uncompared,
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
    /// More links that lead to resources than are followed.
    LimitLinks,
}

impl ProblemReason {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The reason's stable name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A name without a reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} is no reason of a problem; the reasons are: {}", names())]
pub struct UnknownReason {
    given: String,
}

impl UnknownReason {
    fn of(given: &str) -> Self {
        Self { given: given.to_owned() }
    }
}

fn names() -> String {
    ProblemReason::ALL.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ProblemReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_records_is_the_name_shown_and_the_name_read() {
        for reason in ProblemReason::ALL.iter().copied() {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(reason.as_str().parse(), Ok(reason));
        }
    }

    #[test]
    fn another_name_is_refused_with_all_that_there_are() {
        let said = "bored".parse::<ProblemReason>().unwrap_err().to_string();
        assert!(said.contains("bored") && said.contains("digest-mismatch"), "{said}");
    }
}
