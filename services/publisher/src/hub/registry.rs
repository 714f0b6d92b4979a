//! The subscribers of a hub: each has a task of its own, and a file at the place of the publication.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use publish::{Admission, PublishError, Subscriber};
use tokio_util::sync::CancellationToken;
use url::Url;
use websub::SubscriptionRequest;

use super::{Hub, deliver};

/// A subscription. Its parts are written to the file while the lock is held.
pub(super) struct Subscription {
    pub(super) callback: Url,
    /// None once it has ended.
    state: tokio::sync::Mutex<Option<Subscriber>>,
    /// Ends its task.
    pub(super) stop: CancellationToken,
}

/// The subscriptions, by callback.
#[derive(Default)]
pub(super) struct Registry {
    all: Mutex<HashMap<Url, Arc<Subscription>>>,
    /// Held from the look for room to the entry in `all`: of requests that are confirmed at the same time, each sees
    /// those before.
    joining: tokio::sync::Mutex<()>,
}

/// Why there is no room for another subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// The hub has as many as it may have.
    #[error("this hub has {0} subscribers, as many as it takes; try again later")]
    Hub(usize),
    /// All hubs of the process have as many as they may have.
    #[error("the hubs of this server have {0} subscribers, as many as they take; try again later")]
    All(usize),
    /// One host has as many as it may have.
    #[error("this hub has {0} subscribers at that host, as many as it takes; unsubscribe another one first")]
    Host(usize),
}

impl Registry {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn find(&self, callback: &Url) -> Option<Arc<Subscription>> {
        self.all().get(callback).cloned()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Url, Arc<Subscription>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// The subscriber. None once it has ended.
    pub(super) async fn now(&self) -> Option<Subscriber> {
        self.state.lock().await.clone()
    }
}

impl Hub {
    /// Whether there is room for this callback; one that is known has its room.
    pub(super) fn has_room(&self, callback: &Url) -> Result<(), Full> {
        let limits = self.0.room.limits();
        let all = self.0.registry.all();
        if all.contains_key(callback) {
            return Ok(());
        }
        if all.len() >= limits.subscribers {
            return Err(Full::Hub(limits.subscribers));
        }
        if self.0.metrics.subscribers.get() >= limits.of_all as i64 {
            return Err(Full::All(limits.of_all));
        }
        let same = all.keys().filter(|known| known.host() == callback.host()).count();
        if same >= limits.per_host { Err(Full::Host(limits.per_host)) } else { Ok(()) }
    }

    /// Whether a callback is that of a subscriber.
    pub(super) fn knows(&self, callback: &Url) -> bool {
        self.0.registry.all().contains_key(callback)
    }

    /// Begins or renews the subscription of a verified request. It is at the place when this returns. The inner error
    /// says that there is no room.
    pub(super) async fn subscribe(
        &self,
        request: &SubscriptionRequest,
        lease: Duration,
        admission: Admission,
    ) -> Result<Result<(), Full>, PublishError> {
        self.hold()?;
        let _joining = self.0.registry.joining.lock().await;
        if let Err(full) = self.has_room(&request.callback) {
            return Ok(Err(full));
        }
        let lease_until = SystemClock.now().saturating_add(lease).unwrap_or(Timestamp::MAX);
        let secret = request.secret.clone();
        if let Some(known) = self.0.registry.find(&request.callback) {
            let renewed = self.change(&known, |subscriber| {
                subscriber.lease_until = lease_until;
                subscriber.secret = secret.clone();
                subscriber.admission.clone_from(&admission);
            });
            if renewed.await? {
                return Ok(Ok(()));
            }
        }
        let subscriber = Subscriber {
            callback: request.callback.clone(),
            secret,
            lease_until,
            told: self.0.payloads.until(),
            failing_since: None,
            admission,
        };
        self.0.shared.publication().put_subscriber(&subscriber).await?;
        self.take(subscriber);
        Ok(Ok(()))
    }

    /// Takes a subscriber, and begins its task.
    pub(crate) fn take(&self, subscriber: Subscriber) {
        let callback = subscriber.callback.clone();
        let subscription = Arc::new(Subscription {
            callback: callback.clone(),
            state: tokio::sync::Mutex::new(Some(subscriber)),
            stop: self.0.stop.child_token(),
        });
        match self.0.registry.all().insert(callback, Arc::clone(&subscription)) {
            Some(former) => former.stop.cancel(),
            None => {
                self.0.metrics.subscribers.inc();
                // It is a hub with subscribers from now on.
                drop(self.0.trial.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
        }
        self.0.tasks.spawn(deliver::deliver(self.clone(), subscription));
    }

    /// Refuses to change subscribers that are another process's by now.
    pub(super) fn hold(&self) -> Result<(), PublishError> {
        if self.is_held() {
            return Ok(());
        }
        Err(PublishError::Busy(self.0.shared.publication().place.name().to_owned()))
    }

    /// Changes a subscriber, here and on the disk. False once it has ended.
    pub(super) async fn change(
        &self,
        subscription: &Subscription,
        change: impl FnOnce(&mut Subscriber),
    ) -> Result<bool, PublishError> {
        self.hold()?;
        let mut state = subscription.state.lock().await;
        let Some(subscriber) = state.as_mut() else { return Ok(false) };
        change(subscriber);
        self.0.shared.publication().put_subscriber(subscriber).await?;
        Ok(true)
    }

    /// Ends the subscription of a callback, if there is one.
    pub(super) async fn unsubscribe(&self, callback: &Url) -> Result<(), PublishError> {
        match self.0.registry.find(callback) {
            Some(known) => self.end(&known, "unsubscribed").await,
            None => Ok(()),
        }
    }

    /// Ends a subscription, here and on the disk.
    pub(super) async fn end(
        &self,
        subscription: &Arc<Subscription>,
        reason: &'static str,
    ) -> Result<(), PublishError> {
        self.hold()?;
        let mut state = subscription.state.lock().await;
        if state.is_none() {
            return Ok(());
        }
        self.0.shared.publication().remove_subscriber(&subscription.callback).await?;
        *state = None;
        {
            let mut all = self.0.registry.all();
            if all.get(&subscription.callback).is_some_and(|known| Arc::ptr_eq(known, subscription)) {
                all.remove(&subscription.callback);
                self.0.metrics.subscribers.dec();
                self.0.metrics.ended(reason);
            }
        }
        subscription.stop.cancel();
        Ok(())
    }
}
