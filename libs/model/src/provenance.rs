//! Why something was done to a resource, and which attempts failed before: the history in a change log.

use jiff::Timestamp;
use resourcesync::Change;
use serde::{Deserialize, Serialize};

use crate::ResourceUri;
use crate::failure::Failure;
use crate::mirror::Mirror;
use crate::patch::PatchUse;
use crate::problem_reason::ProblemReason;

/// The most failed attempts that are kept of one resource and one run: the last ones.
const KEPT: usize = 8;
/// Bytes of an attempt's message that are kept.
const WORDS: usize = 240;

/// Why an event of a resource happened. Bounded in size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The reason of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// The change that the document stated; absent in Resource Lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// The time that the document's entry refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// Failed attempts of the same run, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Attempt>,
    /// The mirror that gave the bytes, in place of the resource's own URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
    /// What became of the patches that the change links to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<PatchUse>>,
    /// The stored bytes that were taken after a move of the Source, in place of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adopted>,
}

/// Bytes that were stored before a Source was moved, and that have the digest that the Source declares now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopted {
    /// The resource that they are stored of: the same one, or another.
    pub from: ResourceUri,
    /// When they were stored.
    pub stored_at: Timestamp,
}

/// Why a resource was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// No version of it was stored.
    New,
    /// The declared digest differs from the stored version's.
    OtherDigest,
    /// The declared length differs from the stored version's.
    OtherLength,
    /// The declared last modification differs from the earlier one.
    OtherLastmod,
    /// Nothing was declared that could be compared with the stored version.
    NothingToCompare,
    /// It was a problem before.
    Problem,
    /// The stored version was not to be relied on.
    #[serde(rename = "mend")]
    Repair,
    /// The Source says it deleted it.
    Deleted,
    /// The Source says it deleted it, but it was unclear whether that was before the stored version. So the
    /// server was asked.
    DeletedPerhaps,
    /// Its Source's lists omit it now.
    Absent,
    /// It is of a sample: a record of a repository may change without a new datestamp.
    Sample,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was settled.
    pub at: Timestamp,
    /// The reason.
    pub reason: ProblemReason,
    /// The message, shortened if it is long.
    pub message: String,
    /// The mirror that was requested, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The declared value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The computed value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<String>,
}

impl Provenance {
    /// For a plan with this reason.
    pub fn of(why: Why) -> Self {
        Self { why: Some(why), ..Self::default() }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a failed attempt.
    pub fn tried(&mut self, failure: &Failure, at: Timestamp) {
        self.tried_at(failure, at, None);
    }

    /// Adds a failed attempt at a mirror.
    pub fn tried_at(&mut self, failure: &Failure, at: Timestamp, mirror: Option<&Mirror>) {
        if self.tried.len() >= KEPT {
            self.tried.remove(0);
        }
        let evidence = &failure.evidence;
        let mut message = failure.message.clone();
        message.truncate(message.floor_char_boundary(WORDS));
        self.tried.push(Attempt {
            at,
            reason: failure.reason,
            message,
            mirror: mirror.map(|mirror| mirror.url.to_string()),
            status: evidence.status,
            expected: evidence.expected.clone(),
            computed: evidence.computed.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Disposition;

    #[test]
    fn only_the_last_attempts_and_the_beginning_of_their_words_are_kept() {
        let mut account = Provenance::of(Why::New);
        for second in 0..100 {
            let failure = Failure {
                reason: ProblemReason::Timeout,
                message: "ä".repeat(1_000),
                disposition: Disposition::Retry { after: None },
                evidence: Default::default(),
            };
            account.tried(&failure, Timestamp::from_second(second).unwrap());
        }
        assert_eq!(account.tried.len(), KEPT);
        assert_eq!(account.tried[KEPT - 1].at.as_second(), 99);
        assert!(account.tried.iter().all(|attempt| attempt.message.len() <= WORDS));
    }
}
