//! How a subscription goes from state to state. Pure.
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
//! A request that was given up may be verified all the same, for a day: hubs may take their time. Whoever asks writes that down first, so
//! that a hub that asks back while it still has the request is understood; and since what is not due is not asked, of several that find a
//! subscription due one asks.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::record::{Asked, AskedMode, Offered, Received, Subscription, SubscriptionState};
use crate::tries::{later, reason, wish};

/// How long a hub may take to verify before it is asked again.
const SILENCE: Duration = Duration::from_secs(300);
/// How long after a request it may be verified.
const VERIFIABLE: SignedDuration = SignedDuration::from_hours(24);
/// How long a hub that is asked anew because changes were missed is not asked anew for more of them.
const BETWEEN_REVIVALS: SignedDuration = SignedDuration::from_hours(1);
/// How often a hub is asked for an end. Then it is left to notice by itself: what it delivers is not taken any more.
const MOST_FAREWELLS: u32 = 5;

/// What shall happen to a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriptionStep {
    /// Its hub is about to be asked for what it [wants](Subscription::asks).
    Ask,
    /// The request came to nothing.
    Failed {
        /// When the hub was asked.
        asked_at: Timestamp,
        /// What happened.
        why: String,
        /// Whether the hub has understood and refused: it is asked more seldom then.
        refused: bool,
        /// When the hub may be asked again by its own word, if it said so. It cannot put itself off for more than a day.
        not_before: Option<Timestamp>,
    },
    /// The hub asks whether it was asked for this.
    Verify {
        /// For what.
        mode: AskedMode,
        /// For which channel.
        topic: String,
        /// For how long it will deliver, where it says so, in seconds.
        lease_seconds: Option<u64>,
    },
    /// The hub says no.
    Deny {
        /// For which channel, where it says so.
        topic: Option<String>,
        /// Why.
        reason: Option<String>,
    },
    /// Nobody wants it any more.
    Unwanted,
    /// Deliveries have come since this was told last.
    Count(Received),
    /// Lists told of changes that should have been delivered, and were not.
    Missed {
        /// How many.
        changes: u64,
    },
}

/// The step is none from the state that the subscription is in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the subscription {subscription} is {state}, and {why}")]
pub struct NotAsked {
    subscription: String,
    state: &'static str,
    why: &'static str,
}

impl Subscription {
    /// The subscription after a step; none when it is at its end. The very same one means that there is nothing to do.
    ///
    /// # Errors
    /// [`NotAsked`] where the step is none from its state: nothing of the kind was asked for, or it is not due.
    pub fn step(&self, step: &SubscriptionStep, now: Timestamp) -> Result<Option<Self>, NotAsked> {
        let refuse = |why| NotAsked { subscription: self.id.to_string(), state: self.standing(now), why };
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

    /// The same, as what its Source offers now.
    pub(super) fn offered(&self, offered: &Offered, now: Timestamp) -> Self {
        let mut next = Self { set: offered.set.clone(), ..self.clone() };
        let knows = |hub: &String| self.hubs.contains(hub);
        if self.hubs.len() != offered.hubs.len() || !offered.hubs.iter().all(knows) {
            next.hubs.clone_from(&offered.hubs);
            if self.hub() != next.hub() {
                // What the other hub delivers is taken as long as it comes.
                (next.next_at, next.tries, next.trouble) = (now, 0, None);
                if !matches!(self.state, SubscriptionState::Active { .. }) {
                    next.state = SubscriptionState::Wanted;
                }
            }
        }
        if self.state == SubscriptionState::Ending {
            next.state = SubscriptionState::Wanted;
            (next.next_at, next.tries, next.asked) = (now, 0, None);
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
            // One that has run out counts as one that never was.
            SubscriptionState::Active { until, .. } if now < *until => self.state.clone(),
            SubscriptionState::Ending => SubscriptionState::Ending,
            _ => SubscriptionState::Pending,
        };
        let tries = self.tries.saturating_add(1);
        // A hub that takes the request and says no more is asked again like one that does not take it.
        let wait = SILENCE.max(websub::pause_after(tries, false));
        let asked = Some(Asked { mode, at: now });
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
        // Meanwhile it was verified, denied, or asked for anew: the failure is of no consequence.
        if self.asked.is_none_or(|asked| asked.at != asked_at) || self.tries == 0 {
            return self.clone();
        }
        let mut next = Self { trouble: Some(reason(why)), ..self.clone() };
        next.next_at = later(now, websub::pause_after(self.tries, refused)).max(wish(not_before, now));
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
        let is_recent = |asked: &Asked| asked.mode == mode && now.duration_since(asked.at) <= VERIFIABLE;
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
        // A no that nobody has asked for counts like the first.
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
        let missed = Received { missed: changes, ..Received::default() };
        let mut next = Self { received: self.received.and(&missed), ..self.clone() };
        // A hub that is being asked anyway is not asked twice, and one that delivers nothing whatever it has verified not all the time.
        let is_recent = |at: Timestamp| now.duration_since(at) < BETWEEN_REVIVALS;
        if matches!(self.state, SubscriptionState::Active { .. })
            && self.tries == 0
            && !self.revived_at.is_some_and(is_recent)
        {
            (next.next_at, next.revived_at) = (now, Some(now));
            next.trouble = Some(format!("{changes} changes were not delivered; its hub is asked anew"));
        }
        next
    }
}

impl Received {
    /// Both together.
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
