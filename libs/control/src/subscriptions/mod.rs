//! Subscriptions to channels of Sources, and their state at the hubs.

mod record;
mod step;

use jiff::Timestamp;
use model::SourceId;

use crate::error::ControlError;
use crate::kept::Kept as _;
use crate::table::{Table, Update};
use crate::versioned::Versioned;

pub use record::{
    AdvertisedChannel, AskedMode, DeliveryStats, HubRequest, Subscription, SubscriptionId,
    SubscriptionIdError, SubscriptionState,
};
pub use step::{NotRequested, SubscriptionStep};

/// The subscriptions of the fleet.
pub type Subscriptions = Table<Subscription>;

impl Table<Subscription> {
    /// Requests a subscription to a channel that a Source offers. An existing one goes on, with the hubs that are
    /// offered now. One that was ending is requested again. `key` names the push key from which its secret is derived.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn want(
        &self,
        offered: &AdvertisedChannel,
        key: &str,
        now: Timestamp,
    ) -> Result<Versioned<Subscription>, ControlError> {
        let id = SubscriptionId::of(&offered.source, &offered.topic, key);
        let wanted = |found: Option<&Subscription>| {
            Ok(Update::Becomes(match found {
                None => Subscription::wanted(id.clone(), offered, key, now),
                Some(found) => found.offered(offered, now),
            }))
        };
        self.change(&id, wanted).await?.ok_or_else(|| absent(&id))
    }

    /// Applies a step, and retries if others write at the same time. None if the step ends the subscription, which is
    /// then removed.
    ///
    /// # Errors
    /// [`ControlError::Absent`] where there is none; [`ControlError::NotRequested`] where its state does not allow the
    /// step.
    pub async fn step(
        &self,
        id: &SubscriptionId,
        step: &SubscriptionStep,
        now: Timestamp,
    ) -> Result<Option<Versioned<Subscription>>, ControlError> {
        let stepped = |found: Option<&Subscription>| {
            let found = found.ok_or_else(|| absent(id))?;
            Ok(found.step(step, now)?.map_or(Update::Ends, Update::Becomes))
        };
        self.change(id, stepped).await
    }

    /// A subscription, as it is now.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, id: &SubscriptionId) -> Result<Versioned<Subscription>, ControlError> {
        self.existing(id).await
    }

    /// The subscriptions of a Source, as they are now.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn of(&self, source: &SourceId) -> Result<Vec<Versioned<Subscription>>, ControlError> {
        let all = self.view().await?.all();
        Ok(all.into_iter().filter(|subscription| subscription.source == *source).collect())
    }
}

fn absent(id: &SubscriptionId) -> ControlError {
    ControlError::Absent { what: Subscription::describe(id) }
}
