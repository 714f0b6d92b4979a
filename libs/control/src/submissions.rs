//! Requests with an idempotency key, so that a repeated request counts once.

use std::time::Duration;

use model::{Message, RunId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bucket::WriteError;
use crate::table::{Kept, Table};
use crate::{ControlError, Versioned};

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
        Self(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Recent requests with an idempotency key.
#[derive(Debug, Clone)]
pub struct Submissions {
    table: Table<Submission>,
}

impl Submissions {
    pub(crate) fn new(table: Table<Submission>) -> Self {
        Self { table }
    }

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
            let (found, revision) = self.table.slot(key).await?;
            if let Some(found) = found {
                return Ok(found);
            }
            match self.table.put(key, &submission, Some(revision), Some(lasts)).await {
                // Another process was faster, and its submission counts.
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(|| "a submission".to_owned())),
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
        match self.table.put(key, &submission, Some(begun.revision), Some(lasts)).await {
            Ok(_) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| "a submission".to_owned())),
        }
    }
}

impl Message for Submission {
    const KIND: &'static str = "submission";
    const VERSION: u16 = 1;
}

impl Kept for Submission {
    type Id = SubmissionKey;

    fn key(key: &SubmissionKey) -> String {
        key.0.clone()
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
