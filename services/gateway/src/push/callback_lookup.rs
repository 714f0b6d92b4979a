//! Maps callback paths to subscriptions.

use std::sync::Arc;

use control::{ControlError, Subscription, SubscriptionId};
use websub::PushKey;

use super::Callbacks;

/// The lookup result of a path.
pub(super) enum CallbackLookup<'a> {
    /// The callback of a subscription.
    Found {
        /// The subscription.
        subscription: Arc<Subscription>,
        /// The key from which the secret of the subscription is derived.
        key: &'a PushKey,
    },
    /// The callback of an ended subscription. Only its hub could know the path.
    Gone,
    /// Not a callback.
    Nothing,
    /// Too many requests for the path. The next one is accepted in so many seconds.
    RateLimited(u64),
}

impl Callbacks {
    /// Finds the subscription of a path. A path without the unguessable part causes no request to the control store, so
    /// guesses cost the fleet nothing. For a path that has it, lookups are limited to the rate of hubs, even after the
    /// subscription has ended.
    ///
    /// # Errors
    /// When the subscription is not in the view, and the control store cannot be read.
    pub(super) async fn look_up(&self, id: &str, part: &str) -> Result<CallbackLookup<'_>, ControlError> {
        let Ok(id) = id.parse::<SubscriptionId>() else { return Ok(CallbackLookup::Nothing) };
        let keys = self.0.fleet.push.keys();
        let Some(key) = keys.all().find(|key| key.is_callback(id.as_str(), part)) else {
            return Ok(CallbackLookup::Nothing);
        };
        let subscription = match self.0.fleet.view.get(&id) {
            Some(found) => found.value,
            None => {
                if let Err(seconds) = self.0.limiter.count(&id) {
                    return Ok(CallbackLookup::RateLimited(seconds));
                }
                // The view may lag by milliseconds, and a hub may call back while the subscription request is open.
                match self.0.fleet.subscriptions.get(&id).await {
                    Ok(found) => found.value,
                    Err(ControlError::Absent { .. }) => return Ok(CallbackLookup::Gone),
                    Err(error) => return Err(error),
                }
            }
        };
        if subscription.key != key.name() {
            return Ok(CallbackLookup::Nothing);
        }
        Ok(CallbackLookup::Found { subscription, key })
    }
}
