//! Hints: untrusted reports that a Source changed. They wait for the owner of the Source, one for each Source, however
//! many reports come.

use std::time::Duration;

use jiff::Timestamp;
use model::{Message, Persisted, SourceId};
use serde::{Deserialize, Serialize};

use crate::error::{ControlError, unless_changed};
use crate::kept::Kept;
use crate::table::{Table, Update};
use crate::versioned::Versioned;

/// How long a hint waits for an owner: longer than an operator leaves a fleet stopped.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Untrusted report that a Source changed. It only starts a run; nothing else in it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The Source.
    pub source: SourceId,
    /// When the latest report came.
    pub given_at: Timestamp,
    /// The sender of the latest report, by its name at the gateway, or the inbox that contained the report.
    pub by: String,
    /// Whether the sender has no proof of identity: no token, no signature. While such hints bring no changes, they
    /// start runs ever less often.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproved: bool,
}

/// The hints that wait for the owners of their Sources.
pub type Hints = Table<Hint>;

impl Table<Hint> {
    /// Gives a hint. It replaces a waiting one, and is newer than any run that took that one up. An unproved hint does
    /// not replace a proved one: the run that takes up the proved one has read nothing yet.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`]; [`ControlError::Conflict`] where others write all the time.
    pub async fn give(&self, hint: &Hint) -> Result<(), ControlError> {
        if !hint.unproved {
            return self.write(&hint.source, hint, None, Some(KEPT)).await.map(drop);
        }
        let decide = |found: Option<&Hint>| {
            Ok(match found {
                Some(waiting) if !waiting.unproved => Update::Stays,
                _ => Update::Lasts(hint.clone(), KEPT),
            })
        };
        self.change(&hint.source, decide).await.map(drop)
    }

    /// Removes a hint, because a run is about to begin that has read nothing yet. A hint that was given meanwhile
    /// stays: that run may read the Source before the change that it reports.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn take_up(&self, hint: &Versioned<Hint>) -> Result<(), ControlError> {
        unless_changed(self.delete_at(&hint.source, Some(hint.revision)).await).map(drop)
    }

    /// The waiting hint about a Source.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, source: &SourceId) -> Result<Option<Versioned<Hint>>, ControlError> {
        self.find(source).await
    }
}

impl Message for Hint {
    const KIND: &'static str = "hint";
    const VERSION: u16 = Persisted::Hints.version();
}

impl Kept for Hint {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
