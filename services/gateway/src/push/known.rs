//! Maps callback paths to subscriptions.

use std::sync::Arc;

use control::{ControlError, Subscription, SubscriptionId};
use websub::PushKey;

use super::Callbacks;

/// The lookup result of a path.
pub(super) enum Known<'a> {
    /// The callback of a subscription.
    Of {
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
    pub(super) async fn known(&self, id: &str, part: &str) -> Result<Known<'_>, ControlError> {
        let Ok(id) = id.parse::<SubscriptionId>() else { return Ok(Known::Nothing) };
        let keys = self.0.push.keys();
        let Some(key) = keys.all().find(|key| key.is_callback(id.as_str(), part)) else {
            return Ok(Known::Nothing);
        };
        let subscription = match self.0.view.get(&id) {
            Some(found) => found.value,
            None => {
                if let Err(seconds) = self.0.hands.count(&id) {
                    return Ok(Known::RateLimited(seconds));
                }
                match self.read(&id).await? {
                    Some(found) => found,
                    None => return Ok(Known::Gone),
                }
            }
        };
        Ok(if is_under(&subscription, key) { Known::Of { subscription, key } } else { Known::Nothing })
    }

    /// Reads the current record from the control store. The view may lag by milliseconds, and a hub may call back while
    /// the subscription request is still open.
    pub(super) async fn read(&self, id: &SubscriptionId) -> Result<Option<Arc<Subscription>>, ControlError> {
        match self.0.subscriptions.get(id).await {
            Ok(found) => Ok(Some(found.value)),
            Err(ControlError::Absent { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_under(subscription: &Subscription, key: &PushKey) -> bool {
    subscription.key == key.name()
}
