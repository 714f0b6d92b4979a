//! Read positions: how far the inboxes of others are read for Sources.

mod record;
#[cfg(test)]
mod record_tests;

use model::SourceId;

use crate::bucket::WriteError;
use crate::table::Table;
use crate::watch_cache::WatchCache;
use crate::{ControlError, Revision, Versioned};

pub use record::{InboxCursor, MOST_SEEN, Seen};

/// The read positions in inboxes of others.
#[derive(Debug, Clone)]
pub struct InboxCursors {
    table: Table<InboxCursor>,
}

impl InboxCursors {
    pub(crate) fn new(table: Table<InboxCursor>) -> Self {
        Self { table }
    }

    /// Stores the read position of an inbox over the revision that was [read](Self::get), and returns the new one. None
    /// if another scheduler has written meanwhile: its position counts.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn note(&self, read: &InboxCursor, before: Revision) -> Result<Option<Revision>, ControlError> {
        match self.table.put(&read.source, read, Some(before), None).await {
            Ok(revision) => Ok(Some(revision)),
            Err(WriteError::Conflict) => Ok(None),
            Err(error) => Err(error.of(|| what(&read.source))),
        }
    }

    /// The read position in the inbox of a Source, and the revision of its key, even where there is none.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(
        &self,
        source: &SourceId,
    ) -> Result<(Option<Versioned<InboxCursor>>, Revision), ControlError> {
        self.table.slot(source).await
    }

    /// Removes a read position, because no scheduler reads the inbox any more.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, read: &Versioned<InboxCursor>) -> Result<(), ControlError> {
        match self.table.remove(&read.source, Some(read.revision)).await {
            Ok(()) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| what(&read.source))),
        }
    }

    /// A view of all read positions.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<InboxCursor>, ControlError> {
        self.table.view().await
    }
}

fn what(source: &SourceId) -> String {
    format!("inbox that is read for {source}")
}
