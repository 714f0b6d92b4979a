//! Inboxes of others that are read for Sources: how far each is read.

mod record;
#[cfg(test)]
mod record_tests;

use model::SourceId;

use crate::bucket::WriteError;
use crate::table::Table;
use crate::view::View;
use crate::{ControlError, Revised, Revision};

pub use record::{MOST_SEEN, Reading, Seen};

/// How far inboxes of others are read.
#[derive(Debug, Clone)]
pub struct Readings {
    table: Table<Reading>,
}

impl Readings {
    pub(crate) fn new(table: Table<Reading>) -> Self {
        Self { table }
    }

    /// Writes down how far an inbox is read, over the revision that was [read](Self::get), and gives the new one. None where somebody else has written
    /// meanwhile: what is there now counts.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn note(&self, read: &Reading, before: Revision) -> Result<Option<Revision>, ControlError> {
        match self.table.put(&read.source, read, Some(before), None).await {
            Ok(revision) => Ok(Some(revision)),
            Err(WriteError::Conflict) => Ok(None),
            Err(error) => Err(error.of(|| what(&read.source))),
        }
    }

    /// How far the inbox of a Source is read, and the revision of that even where nothing is known.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, source: &SourceId) -> Result<(Option<Revised<Reading>>, Revision), ControlError> {
        self.table.slot(source).await
    }

    /// Forgets it: nobody reads it any more.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, read: &Revised<Reading>) -> Result<(), ControlError> {
        match self.table.remove(&read.source, Some(read.revision)).await {
            Ok(()) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| what(&read.source))),
        }
    }

    /// A live copy of all of them.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Reading>, ControlError> {
        self.table.view().await
    }
}

fn what(source: &SourceId) -> String {
    format!("inbox that is read for {source}")
}
