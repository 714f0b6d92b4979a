//! Whose callback a path is.

use std::sync::Arc;

use control::{ControlError, Subscription, SubscriptionId};
use websub::PushKey;

use super::Callbacks;

/// What is known of a path.
pub(super) enum Known<'a> {
    /// It is the callback of a subscription, under this key.
    Of {
        /// The subscription.
        subscription: Arc<Subscription>,
        /// The key that its secret follows from.
        key: &'a PushKey,
    },
    /// It was the callback of one that is at its end: nobody else could have come to it.
    Gone,
    /// It never was any.
    Nothing,
    /// More come to it than are looked after; the next one is in so many seconds.
    Flooding(u64),
}

impl Callbacks {
    /// Finds the subscription of a path. Nobody is asked for a path that does not have the part that nobody can guess, so that guessing
    /// costs the fleet nothing; for one that has it, no more often than hubs may come, also when the subscription has ended.
    ///
    /// # Errors
    /// When it is not in the view, and what is shared cannot be asked.
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
                    return Ok(Known::Flooding(seconds));
                }
                match self.read(&id).await? {
                    Some(found) => found,
                    None => return Ok(Known::Gone),
                }
            }
        };
        Ok(if is_under(&subscription, key) { Known::Of { subscription, key } } else { Known::Nothing })
    }

    /// The subscription as it is, and not as it was a few milliseconds ago: a hub may come while the request for it is still open.
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
