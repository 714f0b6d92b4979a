//! The outbox: notifications that we owe others, until they have accepted them. There is one value for each Source and
//! target, however many runs have made changes meanwhile.

mod record;
#[cfg(test)]
mod record_tests;

use std::time::Duration;

use jiff::Timestamp;
use model::SourceId;
use url::Url;

use crate::error::{ControlError, unless_changed};
use crate::table::{Table, Update};
use crate::versioned::Versioned;

pub use record::{Change, OutboxMessage, OutboxState};

/// How long a refused or abandoned notification stays visible.
const SETTLED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The notifications to send.
pub type Outbox = Table<OutboxMessage>;

impl Table<OutboxMessage> {
    /// Queues a change for a target. It is merged with changes that were not sent yet. Repeating the same run changes
    /// nothing.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn tell(
        &self,
        source: &SourceId,
        target: &Url,
        change: &Change,
        now: Timestamp,
    ) -> Result<(), ControlError> {
        let id = (source.clone(), target.clone());
        let with = |found: Option<&OutboxMessage>| {
            Ok(Update::Becomes(match found {
                None => OutboxMessage::new(source.clone(), target.clone(), change.clone(), now),
                Some(found) => found.and(change, now),
            }))
        };
        self.change(&id, with).await.map(drop)
    }

    /// Claims a notification for sending it now. None if another scheduler has it, or it has changed: the caller must
    /// read it again.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn take(
        &self,
        outgoing: &Versioned<OutboxMessage>,
        now: Timestamp,
    ) -> Result<Option<Versioned<OutboxMessage>>, ControlError> {
        self.failed(outgoing, outgoing.taken(now)).await
    }

    /// Records that sending failed, to retry later or not at all. If the notification has changed meanwhile, the
    /// current one keeps its own schedule.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn failed(
        &self,
        outgoing: &Versioned<OutboxMessage>,
        next: OutboxMessage,
    ) -> Result<Option<Versioned<OutboxMessage>>, ControlError> {
        let id = (outgoing.source.clone(), outgoing.target.clone());
        let lasts = (!next.is_waiting()).then_some(SETTLED);
        let revision = unless_changed(self.write(&id, &next, Some(outgoing.revision), lasts).await)?;
        Ok(revision.map(|revision| Versioned { value: next.into(), revision }))
    }

    /// Removes a notification that was sent or is not wanted any more. If there are more changes meanwhile, all of it
    /// stays: better sent twice than not at all.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, outgoing: &Versioned<OutboxMessage>) -> Result<(), ControlError> {
        let id = (outgoing.source.clone(), outgoing.target.clone());
        unless_changed(self.delete_at(&id, Some(outgoing.revision)).await).map(drop)
    }
}
