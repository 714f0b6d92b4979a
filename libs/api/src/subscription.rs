//! Subscriptions to the channels of a Source.

use std::borrow::Cow;

use control::{Subscription as FleetSubscription, SubscriptionState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::schema::one_of;

/// A channel on which a Source announces changes, and the subscription's state at the hub. The response contains
/// neither its secret nor its callback URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Subscription {
    /// The topic URL, as the Source writes it.
    pub topic: String,
    /// The set whose changes the channel announces.
    pub set: String,
    /// The hub that gets the subscription request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub hub: Option<String>,
    /// The state of the subscription. `expired`: it was not renewed in time.
    #[schema(schema_with = state)]
    pub state: Cow<'static, str>,
    /// While active: the time since which the hub should deliver every change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub since: Option<Timestamp>,
    /// When the subscription expires unless it is renewed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub until: Option<Timestamp>,
    /// What is wrong, or why the hub refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub last_error: Option<String>,
    /// When the next request goes to the hub: a renewal or a retry.
    pub next_at: Timestamp,
    /// Deliveries that were accepted.
    pub accepted: u64,
    /// Deliveries that were dropped or refused.
    pub dropped: u64,
    /// Missed changes: listed by the Source, but not delivered by the hub.
    pub missed: u64,
    /// When the last accepted delivery arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub delivered_at: Option<Timestamp>,
}

fn state() -> Schema {
    one_of(&["requested", "pending", "active", "expired", "denied", "unsubscribing"])
}

impl Subscription {
    /// Builds the API form of a subscription in its current state.
    pub fn new(kept: &FleetSubscription, now: Timestamp) -> Self {
        let until = match kept.state {
            SubscriptionState::Active { until, .. } => Some(until),
            _ => None,
        };
        Self {
            topic: kept.topic.clone(),
            set: kept.set.to_string(),
            hub: kept.hub().map(str::to_owned),
            state: kept.status(now).into(),
            since: kept.tells_since(now),
            until,
            last_error: kept.trouble.clone(),
            next_at: kept.next_at,
            accepted: kept.received.queued,
            dropped: kept.received.dropped,
            missed: kept.received.missed,
            delivered_at: kept.received.last_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(state: &str) -> FleetSubscription {
        let text = format!(
            r#"{{"id": "85eee6c0615cbd9f2d970c86c2fb9064", "source": "example-org-1", "set": "https://example.org/caps.xml",
                "topic": "https://example.org/change/", "hubs": ["https://hub.example/"], "key": "0123456789abcdef",
                "made_at": "2026-03-01T12:00:00Z", "next_at": "2026-03-02T12:00:00Z", "trouble": "its hub says no: full",
                "state": {state}, "received": {{"queued": 7, "dropped": 1, "missed": 2, "last_at": "2026-03-01T13:00:00Z"}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_subscription_is_told_without_its_names_and_keys() {
        let active = r#"{"is": "active", "since": "2026-03-01T12:00:01Z", "until": "2026-03-03T12:00:00Z"}"#;
        let now = |text: &str| text.parse().unwrap();
        let told = Subscription::new(&kept(active), now("2026-03-02T00:00:00Z"));
        assert_eq!((&*told.state, told.since.is_some(), told.until.is_some()), ("active", true, true));
        assert_eq!((told.accepted, told.dropped, told.missed), (7, 1, 2));
        let text = serde_json::to_string(&told).unwrap();
        assert!(!text.contains("85eee6c0") && !text.contains("0123456789abcdef"), "{text}");
        let expired = Subscription::new(&kept(active), now("2026-03-04T00:00:00Z"));
        assert_eq!((&*expired.state, expired.since), ("expired", None));
        let denied = Subscription::new(
            &kept(r#"{"is": "denied", "at": "2026-03-01T12:00:00Z"}"#),
            now("2026-03-04T00:00:00Z"),
        );
        assert_eq!((&*denied.state, denied.last_error.as_deref()), ("denied", Some("its hub says no: full")));
    }
}
