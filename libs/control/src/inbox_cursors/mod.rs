//! Read positions: how far the inboxes of others are read for Sources.

mod record;
#[cfg(test)]
mod record_tests;

use model::SourceId;

use crate::error::{ControlError, unless_changed};
use crate::table::Table;
use crate::versioned::{Revision, Versioned};

pub use record::{InboxCursor, MOST_SEEN, Seen};

/// The read positions in inboxes of others.
pub type InboxCursors = Table<InboxCursor>;

impl Table<InboxCursor> {
    /// Stores the read position of an inbox over the revision that was [read](Self::get), and returns the new one. None
    /// if another scheduler has written meanwhile: its position counts.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn note(&self, read: &InboxCursor, before: Revision) -> Result<Option<Revision>, ControlError> {
        unless_changed(self.write(&read.source, read, Some(before), None).await)
    }

    /// The read position in the inbox of a Source, and the revision of its key, even where there is none.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(
        &self,
        source: &SourceId,
    ) -> Result<(Option<Versioned<InboxCursor>>, Revision), ControlError> {
        self.slot(source).await
    }

    /// Removes a read position, because no scheduler reads the inbox any more.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, read: &Versioned<InboxCursor>) -> Result<(), ControlError> {
        unless_changed(self.delete_at(&read.source, Some(read.revision)).await).map(drop)
    }
}
