//! A subscription at a hub, and its state.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use model::{Message, Persisted, SetId, SourceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::kept::Kept;

/// Bytes of the digest that form an ID.
const ID_BYTES: usize = 16;

/// A channel that a Source offers for one of its sets (CN-1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AdvertisedChannel {
    /// The Source.
    pub source: SourceId,
    /// The set whose changes the channel announces.
    pub set: SetId,
    /// The topic URL, as the Source writes it.
    pub topic: String,
    /// Its hubs, in order of preference; not empty.
    pub hubs: Vec<String>,
}

/// The ID of a subscription, derived from its Source, its channel and the push key. So concurrent requests for the same
/// subscription create only one. It is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubscriptionId(String);

/// The text is no subscription ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that is no name of a subscription: 32 digits and letters from a to f")]
pub struct SubscriptionIdError;

/// A subscription to a channel of a Source. It contains neither its secret nor its callback: both are derived from the
/// fleet's push key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its ID.
    pub id: SubscriptionId,
    /// The Source.
    pub source: SourceId,
    /// The set whose changes the channel announces.
    pub set: SetId,
    /// The topic URL, as the Source writes it.
    pub topic: String,
    /// Its hubs; the current one comes first.
    pub hubs: Vec<String>,
    /// The name of the push key from which its secret and its callback are derived.
    pub key: String,
    /// When it was first requested.
    pub made_at: Timestamp,
    /// Its state.
    pub state: SubscriptionState,
    /// When the next request to the hub is due, first or repeated.
    pub next_at: Timestamp,
    /// The last request to the hub, until the hub has denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<HubRequest>,
    /// Consecutive requests that failed or were denied.
    #[serde(default)]
    pub tries: u32,
    /// The last error, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// When its hub last got a renewal because of missed changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revived_at: Option<Timestamp>,
    /// Counts of its deliveries.
    #[serde(default)]
    pub received: DeliveryStats,
}

/// The state of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum SubscriptionState {
    /// The hub is to be asked for it.
    Wanted,
    /// The hub was asked, and has not verified it.
    Pending,
    /// The hub delivers, also during a renewal.
    Active {
        /// When the hub verified it. A renewal before its end keeps this time: all changes since then should have been
        /// delivered.
        since: Timestamp,
        /// When it expires, unless it is renewed.
        until: Timestamp,
    },
    /// The hub has denied it.
    Denied {
        /// When it was denied.
        at: Timestamp,
        /// The hub's reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It is not wanted any more, and the hub is to be told.
    Ending,
}

/// A request to a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubRequest {
    /// What the hub was asked for.
    pub mode: AskedMode,
    /// When it was asked.
    pub at: Timestamp,
}

/// The kind of a request to a hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedMode {
    /// To deliver.
    Subscribe,
    /// To stop delivering.
    Unsubscribe,
}

/// Counts of the deliveries of a subscription. They are written a few seconds after the deliveries arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliveryStats {
    /// Deliveries that were queued.
    pub queued: u64,
    /// Deliveries that were dropped or refused, for whatever reason.
    pub dropped: u64,
    /// When the last queued delivery arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// Missed changes: listed by the Source, but not delivered by the hub.
    pub missed: u64,
}

impl SubscriptionId {
    /// The ID of the subscription to a channel of a Source with a push key.
    pub fn of(source: &SourceId, topic: &str, key: &str) -> Self {
        // Neither a Source ID nor the name of a key contains a line break.
        let digest = Sha256::digest(format!("{source}\n{key}\n{topic}").as_bytes());
        Self(HEXLOWER.encode(&digest[..ID_BYTES]))
    }

    /// The text of the ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Subscription {
    /// A new subscription, which the hub was not asked for yet.
    pub(super) fn wanted(id: SubscriptionId, offered: &AdvertisedChannel, key: &str, now: Timestamp) -> Self {
        let AdvertisedChannel { source, set, topic, hubs } = offered.clone();
        Self {
            id,
            source,
            set,
            topic,
            hubs,
            key: key.to_owned(),
            made_at: now,
            state: SubscriptionState::Wanted,
            next_at: now,
            asked: None,
            tries: 0,
            trouble: None,
            revived_at: None,
            received: DeliveryStats::default(),
        }
    }

    /// The current hub.
    pub fn hub(&self) -> Option<&str> {
        self.hubs.first().map(String::as_str)
    }

    /// The next request to the hub.
    pub fn asks(&self) -> AskedMode {
        match self.state {
            SubscriptionState::Ending => AskedMode::Unsubscribe,
            _ => AskedMode::Subscribe,
        }
    }

    /// Whether the hub delivers at this time, as far as it has promised.
    pub fn is_active(&self, now: Timestamp) -> bool {
        matches!(self.state, SubscriptionState::Active { until, .. } if now < until)
    }

    /// Since when the hub should deliver every change, if it should at this time.
    pub fn tells_since(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            SubscriptionState::Active { since, until } if now < until => Some(since),
            _ => None,
        }
    }

    /// The name of its state at this time, as it is shown. A subscription that was not renewed has expired.
    pub fn status(&self, now: Timestamp) -> &'static str {
        match self.state {
            SubscriptionState::Wanted => "requested",
            SubscriptionState::Pending => "pending",
            SubscriptionState::Active { until, .. } if now >= until => "expired",
            SubscriptionState::Active { .. } => "active",
            SubscriptionState::Denied { .. } => "denied",
            SubscriptionState::Ending => "unsubscribing",
        }
    }
}

impl TryFrom<String> for SubscriptionId {
    type Error = SubscriptionIdError;

    fn try_from(text: String) -> Result<Self, SubscriptionIdError> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == ID_BYTES * 2 && text.bytes().all(is_hex) {
            Ok(Self(text))
        } else {
            Err(SubscriptionIdError)
        }
    }
}

impl FromStr for SubscriptionId {
    type Err = SubscriptionIdError;

    fn from_str(text: &str) -> Result<Self, SubscriptionIdError> {
        text.to_owned().try_into()
    }
}

impl From<SubscriptionId> for String {
    fn from(id: SubscriptionId) -> Self {
        id.0
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Message for Subscription {
    const KIND: &'static str = "subscription";
    const VERSION: u16 = Persisted::Subscriptions.version();
}

impl Kept for Subscription {
    type Id = SubscriptionId;

    fn key(id: &SubscriptionId) -> String {
        id.to_string()
    }
}
