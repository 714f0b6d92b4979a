//! Why something was done to a resource, and what was tried in vain before: what makes a change log a story.

use jiff::Timestamp;
use resourcesync::Change;
use serde::{Deserialize, Serialize};

use crate::{Failure, ProblemReason};

/// Failed attempts that are kept of one resource and one run, at most: the last ones.
const KEPT: usize = 8;
/// Bytes of an attempt's words that are kept.
const WORDS: usize = 240;

/// How it came to what happened to a resource. Bounded, whatever the Source does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// Why it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// The change that the document told of; absent in Resource Lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// The moment of which the document spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// Attempts of the same run that failed before, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Attempt>,
}

/// Why a resource was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Nothing was held of it.
    New,
    /// Another digest was declared than that of what was held.
    OtherDigest,
    /// Another length was declared than that of what was held.
    OtherLength,
    /// Another last modification was declared than before.
    OtherLastmod,
    /// Nothing was declared that could be compared with what was held.
    NothingToCompare,
    /// It was a problem before.
    Problem,
    /// What was held was not to be relied on.
    Mend,
    /// The Source says it deleted it.
    Deleted,
    /// The Source says it deleted it, and nobody could tell whether that was before what was held, so the server was asked.
    DeletedPerhaps,
    /// Its Source's lists do not name it any more.
    Absent,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was settled.
    pub at: Timestamp,
    /// Why.
    pub reason: ProblemReason,
    /// The same in words, cut where they are many.
    pub message: String,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What the bytes gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<String>,
}

impl Account {
    /// Of a plan.
    pub fn of(why: Why) -> Self {
        Self { why: Some(why), ..Self::default() }
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a failed attempt.
    pub fn tried(&mut self, failure: &Failure, at: Timestamp) {
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
        let mut account = Account::of(Why::New);
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
