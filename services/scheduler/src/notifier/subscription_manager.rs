//! Keeps the subscriptions of this scheduler's Sources: asks their hubs when due, and ends unwanted subscriptions.
//!
//! Each request is recorded before it is sent. So if two schedulers believe that they own a Source, only one sends
//! it. And a hub that verifies while the request is still open finds a gateway that knows of it.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use control::{
    AdvertisedChannel, AskedMode, Control, ControlError, Member, MemberId, SourceSpec, Subscription,
    SubscriptionId, SubscriptionStep, Versioned, WatchCache,
};
use fleet::Push;
use jiff::Timestamp;
use model::{Clock, Disposition, Push as Wish, SourceId};
use tokio::time::sleep;
use web::{Client, PostRequest, Terms};
use websub::{ASKED_LEASE, FORM, Mode, SubscriptionRequest};

use super::hubs;
use super::periodic::{Feed, Key, Periodic};
use crate::context::SchedulerContext;
use crate::metrics::SchedulerMetrics;
use crate::origin_permits::CappedPermits;

/// Requests open at one hub at a time, of the whole fleet, unless a Source's jobs have another limit.
const PER_HUB: NonZeroUsize = const { NonZeroUsize::new(4).unwrap() };
/// Wait after the control store could not be written.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);

/// Dependencies of keeping subscriptions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SubscriptionManager {
    pub(crate) me: MemberId,
    pub(crate) control: Control,
    pub(crate) push: Push,
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) subscriptions: WatchCache<Subscription>,
    pub(crate) members: WatchCache<Member>,
    /// HTTP client for hubs: with permits of their origins, and without credentials of a Source.
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: SchedulerMetrics,
}

impl SubscriptionManager {
    /// The keeper of a scheduler; none if hubs cannot reach the fleet.
    ///
    /// # Errors
    /// When the client for hubs cannot be built.
    pub(crate) fn of(
        context: &SchedulerContext,
        members: WatchCache<Member>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(push) = context.push.clone() else { return Ok(None) };
        let places = CappedPermits { places: Arc::clone(&context.permits), limit: PER_HUB };
        let client = context.client.on(Terms { places: Some(Arc::new(places)), ..Terms::default() })?;
        Ok(Some(Self {
            me: context.me.clone(),
            control: context.control.clone(),
            push,
            sources: context.sources.clone(),
            subscriptions: context.subscriptions.clone(),
            members,
            client,
            clock: Arc::clone(&context.clock),
            metrics: context.metrics.clone(),
        }))
    }

    /// The task for a subscription now, if any.
    fn task(&self, subscription: &Subscription, now: Timestamp) -> Option<Task> {
        let source = self.sources.get(&subscription.source);
        // A subscription from before the operator forbade it ends.
        let may = |source: &SourceSpec| subscription.hub().is_none_or(|hub| hubs::may_subscribe(source, hub));
        let is_wanted =
            source.is_some_and(|source| source.enabled && source.push != Wish::Off && may(&source));
        if subscription.asks() == AskedMode::Subscribe {
            if !is_wanted {
                return Some(Task::End);
            }
            let current = self.push.keys().current().name();
            if subscription.key != current {
                let next = SubscriptionId::of(&subscription.source, &subscription.topic, current);
                match self.subscriptions.get(&next) {
                    None => return Some(Task::Replace),
                    // A working subscription stays until its replacement works.
                    Some(next) if next.is_active(now) || !subscription.is_active(now) => {
                        return Some(Task::End);
                    }
                    Some(_) => {}
                }
            }
        }
        (subscription.next_at <= now).then_some(Task::Ask)
    }

    async fn work(&self, Errand { subscription, task }: &Errand) -> Result<(), ControlError> {
        match task {
            Task::Ask => self.ask(subscription).await,
            Task::End => self.step(subscription, SubscriptionStep::Unwanted).await.map(drop),
            Task::Replace => {
                let offered = AdvertisedChannel {
                    source: subscription.source.clone(),
                    set: subscription.set.clone(),
                    topic: subscription.topic.clone(),
                    hubs: subscription.hubs.clone(),
                };
                let key = self.push.keys().current().name();
                let now = self.clock.now();
                self.control.subscriptions().want(&offered, key, now).await.map(drop)
            }
        }
    }

    async fn ask(&self, subscription: &Subscription) -> Result<(), ControlError> {
        let Some(asking) = self.step(subscription, SubscriptionStep::Ask).await? else { return Ok(()) };
        let (Some(asked), Some(hub)) = (asking.asked, asking.hub()) else { return Ok(()) };
        let Some(key) = self.push.keys().named(&asking.key) else {
            let why =
                "the fleet does not have its push key any more, so nobody knows its callback".to_owned();
            return self.failed(&asking, asked.at, why, false, None).await;
        };
        let Ok(url) = hub.parse() else {
            return self.failed(&asking, asked.at, format!("its hub {hub} is no URL"), true, None).await;
        };
        let mode = match asked.mode {
            AskedMode::Subscribe => Mode::Subscribe,
            AskedMode::Unsubscribe => Mode::Unsubscribe,
        };
        let is_subscribing = mode == Mode::Subscribe;
        let request = SubscriptionRequest {
            mode,
            topic: asking.topic.clone(),
            callback: self.push.callback(key, asking.id.as_str()),
            lease: is_subscribing.then_some(ASKED_LEASE),
            // Over plain HTTP the secret would be readable on the way, and every reader could sign deliveries.
            secret: (is_subscribing && hubs::keeps_a_secret(hub)).then(|| key.secret(asking.id.as_str())),
        };
        let answered = self.client.post(PostRequest::new(url, FORM, request.to_form())).await;
        let status = asking.status(asked.at);
        let source = &asking.source;
        tracing::info!(source.id = %source, subscription.id = %asking.id, %mode, status, "a hub is asked");
        match answered {
            Ok(_) => {
                self.metrics.asked_hub(mode.as_str(), "accepted");
                Ok(())
            }
            Err(error) => {
                let refused = error.is_denial();
                self.metrics.asked_hub(mode.as_str(), if refused { "refused" } else { "failed" });
                let not_before = match error.disposition() {
                    Disposition::Retry { after: Some(wait) } => asked.at.checked_add(wait).ok(),
                    _ => None,
                };
                self.failed(&asking, asked.at, error.to_string(), refused, not_before).await
            }
        }
    }

    async fn failed(
        &self,
        subscription: &Subscription,
        asked_at: Timestamp,
        why: String,
        refused: bool,
        not_before: Option<Timestamp>,
    ) -> Result<(), ControlError> {
        tracing::warn!(subscription.id = %subscription.id, source.id = %subscription.source, why, "a hub did not take a request");
        self.step(subscription, SubscriptionStep::Failed { asked_at, why, refused, not_before })
            .await
            .map(drop)
    }

    /// Records a transition. None if another scheduler made it, or the subscription has ended.
    async fn step(
        &self,
        subscription: &Subscription,
        step: SubscriptionStep,
    ) -> Result<Option<Versioned<Subscription>>, ControlError> {
        match self.control.subscriptions().step(&subscription.id, &step, self.clock.now()).await {
            Err(ControlError::NotRequested(_) | ControlError::Absent { .. }) => Ok(None),
            done => done,
        }
    }
}

impl Periodic for SubscriptionManager {
    type Errand = Errand;

    fn feed(&self) -> Feed {
        Feed::new(&self.sources, self.subscriptions.changed_keys(), &self.me, &self.members)
    }

    /// Also those of removed Sources.
    fn rows(&self) -> Vec<Key> {
        self.subscriptions.keys()
    }

    fn source_of(&self, row: &str) -> Option<SourceId> {
        self.subscriptions.row(row).map(|subscription| subscription.source.clone())
    }

    fn due(&self, row: &str, now: Timestamp) -> Option<(Timestamp, Errand)> {
        let subscription = self.subscriptions.row(row)?;
        let (at, task) = match self.task(&subscription, now) {
            Some(task) => (now, task),
            None => (subscription.next_at, Task::Ask),
        };
        Some((at, Errand { subscription, task }))
    }

    fn count(&self, is_ours: &dyn Fn(&SourceId) -> bool, now: Timestamp) {
        let mut states = Vec::new();
        self.subscriptions.for_each(|subscription| {
            if is_ours(&subscription.source) {
                states.push(subscription.status(now));
            }
        });
        self.metrics.subscriptions(states.into_iter());
    }

    async fn run(&self, errand: Errand) {
        if let Err(error) = self.work(&errand).await {
            let id = &errand.subscription.id;
            tracing::warn!(subscription.id = %id, %error, "a subscription cannot be kept now");
            sleep(AFTER_TROUBLE).await;
        }
    }
}

/// A subscription with a task.
pub(crate) struct Errand {
    subscription: Versioned<Subscription>,
    task: Task,
}

/// Task for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Send a request to its hub.
    Ask,
    /// End it: it is no longer wanted.
    End,
    /// It is under an earlier push key: a new subscription replaces it.
    Replace,
}

#[cfg(test)]
#[path = "subscription_manager_tests.rs"]
mod tests;
