//! What was submitted under a key of the submitter's own, so that the same submission twice is one.

use std::time::Duration;

use model::{Message, RunId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bucket::WriteError;
use crate::table::{Kept, Table};
use crate::{ControlError, Revised};

/// A submission that carried a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The SHA-256 of what was submitted, in hexadecimal: the same key with something else is a mistake.
    pub content: String,
    /// The run that it asks for. Whoever is not sure whether it was submitted submits this very run again.
    pub run: RunId,
    /// What was answered, once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The name of a submission: who submitted, and the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionKey(String);

impl SubmissionKey {
    /// The name of the submission with this key of this submitter. Neither stands in it.
    pub fn new(submitter: &str, key: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update((submitter.len() as u64).to_be_bytes());
        hasher.update(submitter.as_bytes());
        hasher.update(key.as_bytes());
        Self(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// What was submitted lately with keys.
#[derive(Debug, Clone)]
pub struct Submissions {
    table: Table<Submission>,
}

impl Submissions {
    pub(crate) fn new(table: Table<Submission>) -> Self {
        Self { table }
    }

    /// Notes a submission, for so long (whole seconds). Where there is one of this name, that one comes back instead.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn begin(
        &self,
        key: &SubmissionKey,
        submission: Submission,
        lasts: Duration,
    ) -> Result<Revised<Submission>, ControlError> {
        loop {
            let (found, revision) = self.table.slot(key).await?;
            if let Some(found) = found {
                return Ok(found);
            }
            match self.table.put(key, &submission, Some(revision), Some(lasts)).await {
                // Somebody else was quicker, and that is the one.
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(|| "a submission".to_owned())),
                Ok(revision) => return Ok(Revised { value: submission.into(), revision }),
            }
        }
    }

    /// Notes what was answered, for so long. Where somebody else has noted it, that stays.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn answered(
        &self,
        key: &SubmissionKey,
        begun: &Revised<Submission>,
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
