//! Keeps the subscriptions of the Sources that fall to this scheduler: asks their hubs when it is time, and ends what nobody wants any more.
//!
//! What is asked is written down first, so of two schedulers that both think a Source theirs one asks, and a hub that asks back while the
//! request is still open finds a gateway that knows of it.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use control::{
    AskedMode, Control, ControlError, Member, MemberId, Offered, Push as Wish, Revised, Role, SourceSpec,
    Subscription, SubscriptionId, SubscriptionStep, View, assign,
};
use fleet::Push;
use jiff::{SignedDuration, Timestamp};
use model::{Clock, Disposition};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use web::{Client, ErrorKind, PostRequest, Terms, WebError};
use websub::{ASKED_LEASE, FORM, Mode, SubscriptionRequest};

use super::Crew;
use super::metrics::SchedulerMetrics;
use super::places::PlacesWithin;

/// Hubs that are asked at a time.
const AT_A_TIME: usize = 8;
/// Requests open at one hub at a time, of the whole fleet, where no Source's jobs say otherwise.
const PER_HUB: NonZeroUsize = const { NonZeroUsize::new(4).unwrap() };
/// The least time between two looks, and the longest.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// The longest reason that is kept.
const LONGEST_WHY: usize = 500;

/// What keeping subscriptions takes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keeper {
    pub(super) me: MemberId,
    pub(super) control: Control,
    pub(super) push: Push,
    pub(super) sources: View<SourceSpec>,
    pub(super) subscriptions: View<Subscription>,
    pub(super) members: View<Member>,
    /// How hubs are asked: within the places of their origins, and without any credential of a Source.
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) metrics: SchedulerMetrics,
}

impl Keeper {
    /// The keeper of a scheduler; none where hubs cannot reach the fleet.
    ///
    /// # Errors
    /// When hubs cannot be asked within the places of their origins.
    pub(super) fn of(crew: &Crew, members: View<Member>) -> anyhow::Result<Option<Self>> {
        let Some(push) = crew.push.clone() else { return Ok(None) };
        let places = PlacesWithin { places: Arc::clone(&crew.places), limit: PER_HUB };
        let client = crew.client.on(Terms { places: Some(Arc::new(places)), ..Terms::default() })?;
        Ok(Some(Self {
            me: crew.me.clone(),
            control: crew.control.clone(),
            push,
            sources: crew.sources.clone(),
            subscriptions: crew.subscriptions.clone(),
            members,
            client,
            clock: Arc::clone(&crew.clock),
            metrics: crew.metrics.clone(),
        }))
    }

    /// Keeps them until `stop`.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        let mut working = JoinSet::new();
        let mut in_hand: HashSet<SubscriptionId> = HashSet::new();
        while !stop.is_cancelled() {
            let next_look = Instant::now() + BETWEEN_LOOKS;
            self.subscriptions.mark_seen();
            self.sources.mark_seen();
            let now = self.clock.now();
            let (mut next_at, mut held_up) = (None, false);
            let ours = self.ours();
            self.metrics.subscriptions(ours.iter().map(|subscription| subscription.standing(now)));
            for subscription in ours {
                if in_hand.contains(&subscription.id) {
                    continue;
                }
                let Some(errand) = self.errand(&subscription, now) else {
                    next_at = next_at.into_iter().chain([subscription.next_at]).min();
                    continue;
                };
                if working.len() >= AT_A_TIME {
                    held_up = true;
                    break;
                }
                in_hand.insert(subscription.id.clone());
                let keeper = self.clone();
                working.spawn(async move {
                    if let Err(error) = keeper.run(&subscription, errand).await {
                        tracing::warn!(subscription.id = %subscription.id, %error, "a subscription cannot be kept now");
                        sleep(BETWEEN_LOOKS * 4).await;
                    }
                    subscription.id.clone()
                });
            }
            let wait = next_at.map_or(LONGEST_SLEEP, |at| until(at, now));
            tokio::select! {
                () = async {
                    tokio::select! {
                        () = self.subscriptions.changed() => {}
                        () = self.sources.changed() => {}
                        () = self.members.changed() => {}
                    }
                    sleep_until(next_look).await;
                }, if !held_up => {}
                () = sleep(wait), if !held_up => {}
                Some(ended) = working.join_next() => match ended {
                    Ok(id) => drop(in_hand.remove(&id)),
                    // Nobody knows whose it was: all that is not under way is looked at again.
                    Err(error) => {
                        tracing::error!(%error, "keeping a subscription came upon a mistake");
                        in_hand.clear();
                    }
                },
                () = stop.cancelled() => {}
            }
        }
        // A hub that was being asked is asked again when it has been silent for a while.
        working.shutdown().await;
    }

    /// The subscriptions of Sources that fall to this scheduler, also of those that are gone.
    fn ours(&self) -> Vec<Revised<Subscription>> {
        let mut there = self.members.of(Role::Scheduler);
        if !there.contains(&self.me) {
            there.push(self.me.clone());
        }
        let mut ours = self.subscriptions.all();
        ours.retain(|subscription| assign(&there, &subscription.source) == Some(&self.me));
        ours
    }

    /// What is to be done about a subscription now.
    fn errand(&self, subscription: &Subscription, now: Timestamp) -> Option<Errand> {
        let source = self.sources.get(&subscription.source);
        let is_wanted = source.is_some_and(|source| source.enabled && source.push == Wish::Auto);
        if subscription.asks() == AskedMode::Subscribe {
            if !is_wanted {
                return Some(Errand::End);
            }
            let current = self.push.keys().current().name();
            if subscription.key != current {
                let next = SubscriptionId::of(&subscription.source, &subscription.topic, current);
                match self.subscriptions.get(&next) {
                    None => return Some(Errand::Replace),
                    // What works goes on until what replaces it does.
                    Some(next) if next.is_active(now) || !subscription.is_active(now) => {
                        return Some(Errand::End);
                    }
                    Some(_) => {}
                }
            }
        }
        (subscription.next_at <= now).then_some(Errand::Ask)
    }

    async fn run(&self, subscription: &Subscription, errand: Errand) -> Result<(), ControlError> {
        match errand {
            Errand::Ask => self.ask(subscription).await,
            Errand::End => self.step(subscription, SubscriptionStep::Unwanted).await.map(drop),
            Errand::Replace => {
                let offered = Offered {
                    source: subscription.source.clone(),
                    set: subscription.set.clone(),
                    topic: subscription.topic.clone(),
                    hubs: subscription.hubs.clone(),
                };
                let (key, now) = (self.push.keys().current().name(), self.clock.now());
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
            secret: is_subscribing.then(|| key.secret(asking.id.as_str())),
        };
        let answered = self.client.post(PostRequest::new(url, FORM, request.to_form())).await;
        let (standing, source) = (asking.standing(asked.at), &asking.source);
        tracing::info!(source.id = %source, subscription.id = %asking.id, %mode, standing, "a hub is asked");
        match answered {
            Ok(_) => {
                self.metrics.asked_hub(mode.as_str(), "taken");
                Ok(())
            }
            Err(error) => {
                let refused = is_refusal(&error);
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
        // A hub cannot put itself off for more than a day.
        let latest = asked_at.saturating_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        let (why, not_before) =
            (why.chars().take(LONGEST_WHY).collect(), not_before.map(|at| at.min(latest)));
        self.step(subscription, SubscriptionStep::Failed { asked_at, why, refused, not_before })
            .await
            .map(drop)
    }

    /// Takes a step. None where it was somebody else's, or is at its end.
    async fn step(
        &self,
        subscription: &Subscription,
        step: SubscriptionStep,
    ) -> Result<Option<Revised<Subscription>>, ControlError> {
        match self.control.subscriptions().step(&subscription.id, &step, self.clock.now()).await {
            Err(ControlError::NotAsked(_) | ControlError::Absent { .. }) => Ok(None),
            done => done,
        }
    }
}

/// What is to be done about a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    /// Its hub is asked for what it wants.
    Ask,
    /// Nobody wants it any more.
    End,
    /// It is under an earlier push key: another one takes its place.
    Replace,
}

/// Whether a hub has understood and said no: to ask it soon again would be of no use.
fn is_refusal(error: &WebError) -> bool {
    matches!(error.kind(), ErrorKind::Status(status) if (400..500).contains(&status) && !matches!(status, 408 | 425 | 429))
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default().clamp(BETWEEN_LOOKS, LONGEST_SLEEP)
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
