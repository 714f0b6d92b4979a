//! The outbox: notifications that we owe others, until they have accepted them. There is one value for each Source and
//! target, however many runs have made changes meanwhile.

mod record;
#[cfg(test)]
mod record_tests;

use std::time::Duration;

use jiff::Timestamp;
use model::SourceId;
use url::Url;

use crate::bucket::WriteError;
use crate::table::{Table, Update};
use crate::watch_cache::WatchCache;
use crate::{ControlError, Versioned};

pub use record::{Change, OutboxMessage, OutboxState};

/// How long a refused or abandoned notification stays visible.
const SETTLED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The notifications to send.
#[derive(Debug, Clone)]
pub struct Outbox {
    table: Table<OutboxMessage>,
}

impl Outbox {
    pub(crate) fn new(table: Table<OutboxMessage>) -> Self {
        Self { table }
    }

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
        self.table.change(&id, || what(source, target), with).await.map(drop)
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
        self.replace(outgoing, outgoing.taken(now)).await
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
        self.replace(outgoing, next).await
    }

    /// Removes a notification that was sent or is not wanted any more. If there are more changes meanwhile, all of it
    /// stays: better sent twice than not at all.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, outgoing: &Versioned<OutboxMessage>) -> Result<(), ControlError> {
        let id = (outgoing.source.clone(), outgoing.target.clone());
        match self.table.remove(&id, Some(outgoing.revision)).await {
            Ok(()) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| what(&outgoing.source, &outgoing.target))),
        }
    }

    /// A view of all notifications that are queued or failed.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<OutboxMessage>, ControlError> {
        self.table.view().await
    }

    async fn replace(
        &self,
        outgoing: &Versioned<OutboxMessage>,
        next: OutboxMessage,
    ) -> Result<Option<Versioned<OutboxMessage>>, ControlError> {
        let id = (outgoing.source.clone(), outgoing.target.clone());
        let lasts = (!next.is_waiting()).then_some(SETTLED);
        match self.table.put(&id, &next, Some(outgoing.revision), lasts).await {
            Ok(revision) => Ok(Some(Versioned { value: next.into(), revision })),
            Err(WriteError::Conflict) => Ok(None),
            Err(error) => Err(error.of(|| what(&next.source, &next.target))),
        }
    }
}

fn what(source: &SourceId, target: &Url) -> String {
    format!("notification of {target} about {source}")
}
