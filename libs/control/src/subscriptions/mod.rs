//! What is subscribed to: the channels of Sources, and how it stands with their hubs.

mod record;
mod step;

use jiff::Timestamp;
use model::SourceId;

use crate::bucket::WriteError;
use crate::table::Table;
use crate::view::View;
use crate::{ControlError, Revised};

pub use record::{
    Asked, AskedMode, Offered, Received, Subscription, SubscriptionId, SubscriptionIdError, SubscriptionState,
};
pub use step::{NotAsked, SubscriptionStep};

/// How often a change is tried anew when others write at the same time.
const TRIES: usize = 20;

/// The subscriptions of the fleet.
#[derive(Debug, Clone)]
pub struct Subscriptions {
    table: Table<Subscription>,
}

impl Subscriptions {
    pub(crate) fn new(table: Table<Subscription>) -> Self {
        Self { table }
    }

    /// Wants what a Source offers: a subscription that is there already goes on, with the hubs that are offered now; one that was about to
    /// end is wanted again. `key` names the push key that its secret follows from.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn want(
        &self,
        offered: &Offered,
        key: &str,
        now: Timestamp,
    ) -> Result<Revised<Subscription>, ControlError> {
        let id = SubscriptionId::of(&offered.source, &offered.topic, key);
        for _ in 0..TRIES {
            let (found, revision) = self.table.slot(&id).await?;
            let next = match &found {
                None => Subscription::wanted(id.clone(), offered, key, now),
                Some(found) => found.offered(offered, now),
            };
            if let Some(found) = found.filter(|found| *found.value == next) {
                return Ok(found);
            }
            match self.table.put(&id, &next, Some(revision), None).await {
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(|| what(&id))),
                Ok(revision) => return Ok(Revised { value: next.into(), revision }),
            }
        }
        Err(ControlError::Conflict { what: what(&id) })
    }

    /// Takes a step, again if others write at the same time. None where the subscription is at its end by it, and forgotten.
    ///
    /// # Errors
    /// [`ControlError::Absent`] where there is none; [`ControlError::NotAsked`] where the step is none from the state that it is in.
    pub async fn step(
        &self,
        id: &SubscriptionId,
        step: &SubscriptionStep,
        now: Timestamp,
    ) -> Result<Option<Revised<Subscription>>, ControlError> {
        for _ in 0..TRIES {
            let found = self.get(id).await?;
            let Some(next) = found.step(step, now)? else {
                match self.table.remove(id, Some(found.revision)).await {
                    Err(WriteError::Conflict) => continue,
                    removed => removed.map_err(|error| error.of(|| what(id)))?,
                }
                return Ok(None);
            };
            if next == *found.value {
                return Ok(Some(found));
            }
            match self.table.put(id, &next, Some(found.revision), None).await {
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(|| what(id))),
                Ok(revision) => return Ok(Some(Revised { value: next.into(), revision })),
            }
        }
        Err(ControlError::Conflict { what: what(id) })
    }

    /// A subscription, as it is now.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, id: &SubscriptionId) -> Result<Revised<Subscription>, ControlError> {
        let found = self.table.get(id).await?;
        found.ok_or_else(|| ControlError::Absent { what: what(id) })
    }

    /// The subscriptions of a Source, as they are now.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn of(&self, source: &SourceId) -> Result<Vec<Revised<Subscription>>, ControlError> {
        let all = self.view().await?.all();
        Ok(all.into_iter().filter(|subscription| subscription.source == *source).collect())
    }

    /// A live copy of all subscriptions.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Subscription>, ControlError> {
        self.table.view().await
    }
}

fn what(id: &SubscriptionId) -> String {
    format!("subscription {id}")
}
