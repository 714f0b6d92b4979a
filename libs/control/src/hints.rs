//! Hints: somebody says that a Source is worth a look. They are left here for the Source's owner, one for each Source however many say so.

use std::time::Duration;

use jiff::Timestamp;
use model::{Message, SourceId};
use serde::{Deserialize, Serialize};

use crate::bucket::WriteError;
use crate::table::{Kept, Next, Table};
use crate::view::View;
use crate::{ControlError, Revised};

/// How long a hint waits for an owner: longer than a fleet stands still in which somebody is interested.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Somebody says that a Source is worth a look: that it has changed. It is the word of a stranger, and nothing else of it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The Source.
    pub source: SourceId,
    /// When it was said last.
    pub given_at: Timestamp,
    /// Who said so last, by the name under which the gateway knows them; or the inbox in which it stood.
    pub by: String,
    /// Nothing proves who said so: no token, no signature. Such hints are taken up ever less often while they bring nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproved: bool,
}

/// The hints that wait for the owners of their Sources.
#[derive(Debug, Clone)]
pub struct Hints {
    table: Table<Hint>,
}

impl Hints {
    pub(crate) fn new(table: Table<Hint>) -> Self {
        Self { table }
    }

    /// Gives a hint. It takes the place of one that waits, and is newer than any run that took that one up. Where one waits that is proved, an
    /// unproved one changes nothing: the run that takes up the former has read nothing yet.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`]; [`ControlError::Conflict`] where others write all the time.
    pub async fn give(&self, hint: &Hint) -> Result<(), ControlError> {
        let what = || format!("a hint about {}", hint.source);
        if !hint.unproved {
            return match self.table.put(&hint.source, hint, None, Some(KEPT)).await {
                Ok(_) => Ok(()),
                Err(error) => Err(error.of(what)),
            };
        }
        let decide = |found: Option<&Hint>| {
            Ok(match found {
                Some(waiting) if !waiting.unproved => Next::Stays,
                _ => Next::Lasts(hint.clone(), KEPT),
            })
        };
        self.table.change(&hint.source, what, decide).await.map(drop)
    }

    /// Forgets a hint, since a run is about to begin that has read nothing yet. One that was given meanwhile stays: that run may read the
    /// Source before what it hints at.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn take_up(&self, hint: &Revised<Hint>) -> Result<(), ControlError> {
        match self.table.remove(&hint.source, Some(hint.revision)).await {
            Ok(()) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| format!("a hint about {}", hint.source))),
        }
    }

    /// The hint about a Source that waits now.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, source: &SourceId) -> Result<Option<Revised<Hint>>, ControlError> {
        self.table.get(source).await
    }

    /// A live copy of all hints that wait.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Hint>, ControlError> {
        self.table.view().await
    }
}

impl Message for Hint {
    const KIND: &'static str = "hint";
    const VERSION: u16 = 1;
}

impl Kept for Hint {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
