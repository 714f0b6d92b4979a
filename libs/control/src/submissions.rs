//! Requests with an idempotency key, so that a repeated request counts once.

use std::time::Duration;

use data_encoding::HEXLOWER;
use model::{Message, Persisted, RunId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{ControlError, unless_changed};
use crate::kept::Kept;
use crate::table::Table;
use crate::versioned::Versioned;

/// A request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The SHA-256 of the request, in hexadecimal. The same key with another request is an error.
    pub content: String,
    /// The run that it requests. A client that does not know whether it was submitted submits this very run again.
    pub run: RunId,
    /// The response, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The key of a submission, derived from the submitter and the idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionKey(String);

impl SubmissionKey {
    /// The key of the submission. It contains neither the submitter nor the idempotency key.
    pub fn new(submitter: &str, key: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update((submitter.len() as u64).to_be_bytes());
        hasher.update(submitter.as_bytes());
        hasher.update(key.as_bytes());
        Self(HEXLOWER.encode(&hasher.finalize()))
    }
}

/// Recent requests with an idempotency key.
pub type Submissions = Table<Submission>;

impl Table<Submission> {
    /// Stores a submission for this time (whole seconds). If one with this key exists, it is returned instead.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn begin(
        &self,
        key: &SubmissionKey,
        submission: Submission,
        lasts: Duration,
    ) -> Result<Versioned<Submission>, ControlError> {
        loop {
            let (found, revision) = self.slot(key).await?;
            if let Some(found) = found {
                return Ok(found);
            }
            match self.write(key, &submission, Some(revision), Some(lasts)).await {
                // Another process was faster, and its submission counts.
                Err(ControlError::Conflict { .. }) => {}
                Err(error) => return Err(error),
                Ok(revision) => return Ok(Versioned { value: submission.into(), revision }),
            }
        }
    }

    /// Stores the response for this time. If another process has stored one, that one stays.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn answered(
        &self,
        key: &SubmissionKey,
        begun: &Versioned<Submission>,
        answer: String,
        lasts: Duration,
    ) -> Result<(), ControlError> {
        let submission = Submission { answer: Some(answer), ..Submission::clone(begun) };
        let written = self.write(key, &submission, Some(begun.revision), Some(lasts)).await;
        unless_changed(written).map(drop)
    }
}

impl Message for Submission {
    const KIND: &'static str = "submission";
    const VERSION: u16 = Persisted::Submissions.version();
}

impl Kept for Submission {
    type Id = SubmissionKey;

    fn key(key: &SubmissionKey) -> String {
        key.0.clone()
    }

    fn describe(_: &SubmissionKey) -> String {
        "a submission".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_submitter_has_keys_of_its_own() {
        let name = |submitter, key| SubmissionKey::new(submitter, key);
        assert_eq!(name("a", "1"), name("a", "1"));
        assert_ne!(name("a", "1"), name("b", "1"));
        assert_ne!(name("ab", "c"), name("a", "bc"));
        assert_eq!(name("a", "1").0.len(), 64);
    }
}
