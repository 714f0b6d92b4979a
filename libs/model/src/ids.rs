//! Identifiers, each of a type of its own, so that they cannot be mixed up.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use ulid::Ulid;
use url::Url;

use crate::text;

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}: {why}")]
pub struct IdError {
    kind: &'static str,
    text: String,
    why: &'static str,
}

/// The id of a Source: part of keys and of message subjects.
///
/// At most 80 characters of `a-z`, `0-9` and `-`; derived from the entry URL. A clone shares the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct SourceId(Arc<str>);

text::serialize!(SourceId);

/// A set of resources of a Source: the URI of its Capability List, or of the document that stands for it. A
/// clone shares the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SetId(Arc<str>);

/// The number of a pending record: a later plan for the same resource has a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(u64);

macro_rules! ulid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Ulid);

        impl $name {
            /// A new, unique one.
            pub fn fresh() -> Self {
                Self(Ulid::new())
            }

            /// Its 16 bytes, the most significant one first.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }

            /// The one with these bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }

            /// When it was issued, by the clock of the issuer, in milliseconds.
            pub fn given_at(&self) -> Timestamp {
                let millis = i64::try_from(self.0.timestamp_ms()).ok();
                millis.and_then(|millis| Timestamp::from_millisecond(millis).ok()).unwrap_or(Timestamp::MAX)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Ulid::from_string(text).map(Self).map_err(|_| IdError {
                    kind: $kind,
                    text: text.to_owned(),
                    why: "a ULID has 26 characters of Crockford's base 32",
                })
            }
        }
    };
}

ulid_id!(
    /// One run: from the operator's request (or the schedule's) until no pending record is left.
    RunId, "run id"
);
ulid_id!(
    /// One job; a redelivered job keeps it.
    JobId, "job id"
);
ulid_id!(
    /// One pack. Each delivery of a job uses a new one, so nothing is ever overwritten.
    PackId, "pack id"
);
ulid_id!(
    /// One upload of a dump's package, or the index of one. A package that is received again, perhaps in
    /// another version, gets a new one, so nothing is ever overwritten.
    PackageId, "package id"
);
ulid_id!(
    /// One damaged object in quarantine.
    DamageId, "damage id"
);

impl SourceId {
    const LONGEST: usize = 80;

    /// The id of the Source with this entry URL: its host and a digest of the whole URL.
    pub fn of_entry(url: &Url) -> Self {
        let host = url.host_str().unwrap_or("local").to_ascii_lowercase();
        let slug: String =
            host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
        let digest = fixity::Sha256::of(url.as_str().as_bytes()).to_string();
        Self(format!("{}-{}", slug.trim_matches('-'), &digest[..12]).into())
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SourceId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        let refuse = |why| IdError { kind: "source id", text: text.clone(), why };
        if text.is_empty() || text.len() > Self::LONGEST {
            return Err(refuse("it has 1 to 80 characters"));
        }
        if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(refuse("only a-z, 0-9 and - may stand in it"));
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for SourceId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.to_owned().try_into()
    }
}

impl From<SourceId> for String {
    fn from(id: SourceId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SetId {
    /// The set of this URI.
    pub fn new(uri: impl Into<Arc<str>>) -> Self {
        Self(uri.into())
    }

    /// The URI.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Seq {
    /// The number `n`.
    pub fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The one after.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_url_gives_a_valid_and_stable_source_id() {
        let url = Url::parse("https://Example.org:8443/rs/capabilitylist.xml").unwrap();
        let id = SourceId::of_entry(&url);
        assert!(id.as_str().starts_with("example-org-"), "{id}");
        assert_eq!(id.as_str().parse::<SourceId>().unwrap(), id);
        assert_eq!(SourceId::of_entry(&url), id);
    }

    #[test]
    fn an_id_tells_when_it_was_given() {
        let before = Timestamp::now() - jiff::SignedDuration::from_millis(1);
        let given = JobId::fresh().given_at();
        assert!(before <= given && given <= Timestamp::now(), "{before} {given}");
        let id: JobId = "01ARYZ6S410000000000000000".parse().unwrap();
        assert_eq!(id.given_at(), "2016-07-30T22:36:16.385Z".parse().unwrap());
    }

    #[test]
    fn an_id_is_its_bytes() {
        let id = PackId::fresh();
        assert_eq!(PackId::from_bytes(id.to_bytes()), id);
        let id: RunId = "01ARYZ6S410000000000000000".parse().unwrap();
        assert_eq!(id.to_bytes()[6..], [0; 10]);
    }

    #[test]
    fn different_documents_of_one_host_are_different_sources() {
        let one = SourceId::of_entry(&Url::parse("http://h/a.xml").unwrap());
        let two = SourceId::of_entry(&Url::parse("http://h/b.xml").unwrap());
        assert_ne!(one, two);
    }

    #[test]
    fn ids_that_could_leave_their_key_or_subject_are_refused() {
        for bad in ["", "a.b", "a/b", "../x", "A", "a b", "*", ">", &"x".repeat(81)] {
            assert!(bad.parse::<SourceId>().is_err(), "{bad}");
        }
    }
}
