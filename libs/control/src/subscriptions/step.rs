//! The state machine of a subscription. Pure functions.
//!
//! | | wanted | pending | active | denied | ending |
//! |---|---|---|---|---|---|
//! | ask, when it is due | pending | pending | active, *renewing* | pending | ending, or the end |
//! | failed | wanted, later | wanted, later | active, *again later* | – | ending, again later |
//! | subscription verified, as asked | active | active | active, longer | refused | refused |
//! | end verified | refused | refused | refused | refused | the end |
//! | denied | denied | denied | denied | denied | the end |
//! | unwanted | the end, or ending | ending | ending | the end | ending |
//! | offered | – | – | – | – | wanted |
//! | missed | – | – | active, *renewing at once*, once an hour at most | – | – |
//!
//! A hub may still verify a request that was given up, within a day, because hubs may take their time. The scheduler
//! records a request before it sends it, so that a hub may verify during the request. A request is refused until it is
//! due, so of several schedulers that find a subscription due only one sends it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::record::{
    AdvertisedChannel, AskedMode, DeliveryStats, HubRequest, Subscription, SubscriptionState,
};
use crate::backoff::{cap_retry_after, later, reason};
use crate::error::ControlError;

/// How long a hub may take to verify before it is asked again.
const SILENCE: Duration = Duration::from_secs(300);
/// How long after a request the hub may verify it.
const VERIFIABLE: SignedDuration = SignedDuration::from_hours(24);
/// The least time between two renewals because of missed changes.
const BETWEEN_REVIVALS: SignedDuration = SignedDuration::from_hours(1);
/// The most requests to end a subscription. After that the hub must notice by itself: its deliveries are refused.
const MOST_FAREWELLS: u32 = 5;

/// A step of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriptionStep {
    /// The request that it [needs](Subscription::asks) is about to be sent to the hub.
    Ask,
    /// The request failed.
    Failed {
        /// When the hub was asked.
        asked_at: Timestamp,
        /// What happened.
        why: String,
        /// Whether the hub understood and refused. Then the retries are less frequent.
        refused: bool,
        /// When the hub allows the next request, if it said so. At most a day counts.
        not_before: Option<Timestamp>,
    },
    /// The hub verifies a request.
    Verify {
        /// The kind of the request.
        mode: AskedMode,
        /// The topic URL.
        topic: String,
        /// For how many seconds it will deliver, if it says so.
        lease_seconds: Option<u64>,
    },
    /// The hub denies the subscription.
    Deny {
        /// The topic URL, if it says so.
        topic: Option<String>,
        /// The reason.
        reason: Option<String>,
    },
    /// The subscription is not wanted any more.
    Unwanted,
    /// Deliveries since the last report.
    Count(DeliveryStats),
    /// Lists contained changes that the hub should have delivered and did not.
    Missed {
        /// How many.
        changes: u64,
    },
}

/// The state of the subscription does not allow the step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the subscription {subscription} is {state}, and {why}")]
pub struct NotRequested {
    subscription: String,
    state: &'static str,
    why: &'static str,
}

impl From<NotRequested> for ControlError {
    fn from(error: NotRequested) -> Self {
        Self::NotRequested(error.to_string())
    }
}

impl Subscription {
    /// The subscription after a step; none when it has ended. An unchanged one means that there is nothing to do.
    ///
    /// # Errors
    /// [`NotRequested`] where the state does not allow the step: the hub was not asked for it, or it is not due.
    pub fn step(&self, step: &SubscriptionStep, now: Timestamp) -> Result<Option<Self>, NotRequested> {
        let refuse = |why| NotRequested { subscription: self.id.to_string(), state: self.status(now), why };
        match step {
            SubscriptionStep::Ask => self.asking(now).map_err(refuse),
            SubscriptionStep::Failed { asked_at, why, refused, not_before } => {
                Ok(Some(self.failed(*asked_at, why, *refused, *not_before, now)))
            }
            SubscriptionStep::Verify { mode, topic, lease_seconds } => {
                self.verified(*mode, topic, *lease_seconds, now).map_err(refuse)
            }
            SubscriptionStep::Deny { topic, reason } => {
                if topic.as_ref().is_some_and(|topic| *topic != self.topic) {
                    return Err(refuse("another channel was asked for"));
                }
                Ok(self.denied(reason.clone(), now))
            }
            SubscriptionStep::Unwanted => Ok(self.unwanted(now)),
            SubscriptionStep::Count(received) => {
                Ok(Some(Self { received: self.received.and(received), ..self.clone() }))
            }
            SubscriptionStep::Missed { changes } => Ok(Some(self.missed(*changes, now))),
        }
    }

    /// The subscription with what its Source offers now.
    pub(super) fn offered(&self, offered: &AdvertisedChannel, now: Timestamp) -> Self {
        let mut next = Self { set: offered.set.clone(), ..self.clone() };
        let knows = |hub: &String| self.hubs.contains(hub);
        if self.hubs.len() != offered.hubs.len() || !offered.hubs.iter().all(knows) {
            next.hubs.clone_from(&offered.hubs);
            if self.hub() != next.hub() {
                // Deliveries of the former hub are accepted as long as they come.
                next.next_at = now;
                next.tries = 0;
                next.trouble = None;
                if !matches!(self.state, SubscriptionState::Active { .. }) {
                    next.state = SubscriptionState::Wanted;
                }
            }
        }
        if self.state == SubscriptionState::Ending {
            next.state = SubscriptionState::Wanted;
            next.next_at = now;
            next.tries = 0;
            next.asked = None;
        }
        next
    }

    fn asking(&self, now: Timestamp) -> Result<Option<Self>, &'static str> {
        if now < self.next_at {
            return Err("its hub is not to be asked yet");
        }
        let mode = self.asks();
        if mode == AskedMode::Unsubscribe && self.tries >= MOST_FAREWELLS {
            return Ok(None);
        }
        let state = match &self.state {
            // An expired subscription counts as a new one.
            SubscriptionState::Active { until, .. } if now < *until => self.state.clone(),
            SubscriptionState::Ending => SubscriptionState::Ending,
            _ => SubscriptionState::Pending,
        };
        let tries = self.tries.saturating_add(1);
        // A hub that accepts the request and never verifies it is asked again after the same pause as after a failure.
        let wait = SILENCE.max(websub::pause_after(tries, false));
        let asked = Some(HubRequest { mode, at: now });
        Ok(Some(Self { state, tries, asked, next_at: later(now, wait), ..self.clone() }))
    }

    fn failed(
        &self,
        asked_at: Timestamp,
        why: &str,
        refused: bool,
        not_before: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        // It was verified, denied or requested again meanwhile, so the failure does not matter.
        if self.asked.is_none_or(|asked| asked.at != asked_at) || self.tries == 0 {
            return self.clone();
        }
        let mut next = Self { trouble: Some(reason(why)), ..self.clone() };
        next.next_at =
            later(now, websub::pause_after(self.tries, refused)).max(cap_retry_after(not_before, now));
        match &self.state {
            SubscriptionState::Active { .. } | SubscriptionState::Ending => {}
            _ => {
                next.state = SubscriptionState::Wanted;
                let next_one = 1.min(next.hubs.len());
                next.hubs.rotate_left(next_one);
            }
        }
        next
    }

    fn verified(
        &self,
        mode: AskedMode,
        topic: &str,
        lease_seconds: Option<u64>,
        now: Timestamp,
    ) -> Result<Option<Self>, &'static str> {
        if *topic != self.topic {
            return Err("another channel was asked for");
        }
        if mode != self.asks() {
            return Err("the opposite is wanted");
        }
        let is_recent = |asked: &HubRequest| asked.mode == mode && now.duration_since(asked.at) <= VERIFIABLE;
        if !self.asked.as_ref().is_some_and(is_recent) {
            return Err("nothing was asked for lately");
        }
        if mode == AskedMode::Unsubscribe {
            return Ok(None);
        }
        let lease = websub::lease_of(lease_seconds);
        let since = self.tells_since(now).unwrap_or(now);
        Ok(Some(Self {
            state: SubscriptionState::Active { since, until: later(now, lease) },
            next_at: websub::renew_at(now, lease, self.id.as_str()),
            tries: 0,
            trouble: None,
            ..self.clone()
        }))
    }

    fn denied(&self, reason: Option<String>, now: Timestamp) -> Option<Self> {
        if self.state == SubscriptionState::Ending {
            return None;
        }
        // A denial without a request counts like the first one.
        let tries = self.tries.max(1);
        Some(Self {
            state: SubscriptionState::Denied { at: now, reason: reason.clone() },
            next_at: later(now, websub::pause_after(tries, true)),
            asked: None,
            tries,
            trouble: Some(reason.map_or_else(
                || "its hub says no, and not why".to_owned(),
                |reason| format!("its hub says no: {reason}"),
            )),
            ..self.clone()
        })
    }

    fn unwanted(&self, now: Timestamp) -> Option<Self> {
        match self.state {
            SubscriptionState::Ending => Some(self.clone()),
            SubscriptionState::Denied { .. } => None,
            _ if self.asked.is_none() => None,
            _ => Some(Self {
                state: SubscriptionState::Ending,
                next_at: now,
                tries: 0,
                trouble: None,
                ..self.clone()
            }),
        }
    }

    fn missed(&self, changes: u64, now: Timestamp) -> Self {
        let missed = DeliveryStats { missed: changes, ..DeliveryStats::default() };
        let mut next = Self { received: self.received.and(&missed), ..self.clone() };
        // A hub with an open request is not asked twice. A hub that verifies and still delivers nothing is asked only
        // once in a while.
        let is_recent = |at: Timestamp| now.duration_since(at) < BETWEEN_REVIVALS;
        if matches!(self.state, SubscriptionState::Active { .. })
            && self.tries == 0
            && !self.revived_at.is_some_and(is_recent)
        {
            next.next_at = now;
            next.revived_at = Some(now);
            next.trouble = Some(format!("{changes} changes were not delivered; its hub is asked anew"));
        }
        next
    }
}

impl DeliveryStats {
    /// The sum of both.
    fn and(&self, more: &Self) -> Self {
        Self {
            queued: self.queued.saturating_add(more.queued),
            dropped: self.dropped.saturating_add(more.dropped),
            last_at: self.last_at.max(more.last_at),
            missed: self.missed.saturating_add(more.missed),
        }
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
