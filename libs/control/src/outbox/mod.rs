//! The outbox: what others are to be told of changes, until they have taken it. One value for each Source and target, however many runs have
//! changed something meanwhile.

mod record;
#[cfg(test)]
mod record_tests;

use std::time::Duration;

use jiff::Timestamp;
use model::SourceId;
use url::Url;

use crate::bucket::WriteError;
use crate::table::{Next, Table};
use crate::view::View;
use crate::{ControlError, Revised};

pub use record::{Change, Outgoing, OutgoingState};

/// How long it stays visible that something was refused or given up.
const SETTLED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What is to be sent.
#[derive(Debug, Clone)]
pub struct Outbox {
    table: Table<Outgoing>,
}

impl Outbox {
    pub(crate) fn new(table: Table<Outgoing>) -> Self {
        Self { table }
    }

    /// Wants a target to be told of a change. What was not sent to it yet goes with it; the same run again is the same change.
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
        let with = |found: Option<&Outgoing>| {
            Ok(Next::Becomes(match found {
                None => Outgoing::new(source.clone(), target.clone(), change.clone(), now),
                Some(found) => found.and(change, now),
            }))
        };
        self.table.change(&id, || what(source, target), with).await.map(drop)
    }

    /// Takes it in hand to be sent now. None where somebody else has it, or it has changed: it is to be looked at again.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn take(
        &self,
        outgoing: &Revised<Outgoing>,
        now: Timestamp,
    ) -> Result<Option<Revised<Outgoing>>, ControlError> {
        self.replace(outgoing, outgoing.taken(now)).await
    }

    /// It could not be sent, and is to be tried again later or not at all. Where it has changed meanwhile, what is there now is tried in its
    /// turn.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn failed(
        &self,
        outgoing: &Revised<Outgoing>,
        next: Outgoing,
    ) -> Result<Option<Revised<Outgoing>>, ControlError> {
        self.replace(outgoing, next).await
    }

    /// It was sent, or nobody wants it any more. Where more is to be told meanwhile, all of it stays: better twice than not at all.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn forget(&self, outgoing: &Revised<Outgoing>) -> Result<(), ControlError> {
        let id = (outgoing.source.clone(), outgoing.target.clone());
        match self.table.remove(&id, Some(outgoing.revision)).await {
            Ok(()) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| what(&outgoing.source, &outgoing.target))),
        }
    }

    /// A live copy of all that is to be sent, or could not be.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Outgoing>, ControlError> {
        self.table.view().await
    }

    async fn replace(
        &self,
        outgoing: &Revised<Outgoing>,
        next: Outgoing,
    ) -> Result<Option<Revised<Outgoing>>, ControlError> {
        let id = (outgoing.source.clone(), outgoing.target.clone());
        let lasts = (!next.is_waiting()).then_some(SETTLED);
        match self.table.put(&id, &next, Some(outgoing.revision), lasts).await {
            Ok(revision) => Ok(Some(Revised { value: next.into(), revision })),
            Err(WriteError::Conflict) => Ok(None),
            Err(error) => Err(error.of(|| what(&next.source, &next.target))),
        }
    }
}

fn what(source: &SourceId, target: &Url) -> String {
    format!("notification of {target} about {source}")
}
