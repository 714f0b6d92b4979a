//! A subscription: what is wanted of a hub, and how that stands.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use model::{Message, SetId, SourceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::table::Kept;

/// Bytes of a digest that make a name.
const ID_BYTES: usize = 16;

/// A channel that a Source offers for one of its sets (CN-1).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Offered {
    /// The Source.
    pub source: SourceId,
    /// The set that the channel tells of.
    pub set: SetId,
    /// The channel, as the Source writes it.
    pub topic: String,
    /// Its hubs, the first one first; not empty.
    pub hubs: Vec<String>,
}

/// The name of a subscription, which follows from its Source, its channel and the push key: whoever wants the same makes the same. It is
/// no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SubscriptionId(String);

/// A text that is no name of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that is no name of a subscription: 32 digits and letters from a to f")]
pub struct SubscriptionIdError;

/// A subscription to a channel of a Source. Neither its secret nor its callback stands here: both follow from the fleet's push key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its name.
    pub id: SubscriptionId,
    /// The Source.
    pub source: SourceId,
    /// The set that the channel tells of.
    pub set: SetId,
    /// The channel, as the Source writes it.
    pub topic: String,
    /// Its hubs; the one that is asked now comes first.
    pub hubs: Vec<String>,
    /// The name of the push key that its secret and its callback follow from.
    pub key: String,
    /// When it was first wanted.
    pub made_at: Timestamp,
    /// How it stands.
    pub state: SubscriptionState,
    /// When something is to be done about it next: the hub is asked, or asked again.
    pub next_at: Timestamp,
    /// What the hub was asked last, until it has said no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Requests in a row that came to nothing, or were denied.
    #[serde(default)]
    pub tries: u32,
    /// What is wrong, as long as something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// When its hub was last asked anew because changes were missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revived_at: Option<Timestamp>,
    /// What came by it.
    #[serde(default)]
    pub received: Received,
}

/// How a subscription stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum SubscriptionState {
    /// The hub is to be asked for it.
    Wanted,
    /// The hub was asked, and has not asked back.
    Pending,
    /// The hub delivers. While it is renewed too.
    Active {
        /// Since the hub has verified it. One that is renewed before its end goes on from there: what was told since then should have come.
        since: Timestamp,
        /// Until then, if it is not renewed.
        until: Timestamp,
    },
    /// The hub has said no.
    Denied {
        /// When.
        at: Timestamp,
        /// Why, in its own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It is not wanted any more, and the hub is to hear that.
    Ending,
}

/// What a hub was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What for.
    pub mode: AskedMode,
    /// When.
    pub at: Timestamp,
}

/// What a hub is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedMode {
    /// That it delivers.
    Subscribe,
    /// That it delivers no more.
    Unsubscribe,
}

/// What came by a subscription. Told a few seconds after it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Received {
    /// Deliveries that were queued.
    pub queued: u64,
    /// Deliveries that were dropped or refused, for whatever reason.
    pub dropped: u64,
    /// When the last one came that was queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
    /// Changes that lists told of, and nothing that was delivered did.
    pub missed: u64,
}

impl SubscriptionId {
    /// The name of the subscription to a channel of a Source under a push key.
    pub fn of(source: &SourceId, topic: &str, key: &str) -> Self {
        // Neither a Source's name nor a key's has a line break.
        let digest = Sha256::digest(format!("{source}\n{key}\n{topic}").as_bytes());
        Self(HEXLOWER.encode(&digest[..ID_BYTES]))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Subscription {
    /// One that nobody has asked for yet.
    pub(super) fn wanted(id: SubscriptionId, offered: &Offered, key: &str, now: Timestamp) -> Self {
        let Offered { source, set, topic, hubs } = offered.clone();
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
            received: Received::default(),
        }
    }

    /// The hub that is asked now.
    pub fn hub(&self) -> Option<&str> {
        self.hubs.first().map(String::as_str)
    }

    /// What the hub is to be asked for next.
    pub fn asks(&self) -> AskedMode {
        match self.state {
            SubscriptionState::Ending => AskedMode::Unsubscribe,
            _ => AskedMode::Subscribe,
        }
    }

    /// Whether the hub delivers at this time, as far as it has said.
    pub fn is_active(&self, now: Timestamp) -> bool {
        matches!(self.state, SubscriptionState::Active { until, .. } if now < until)
    }

    /// Since when the hub should tell of every change, if it should at this time.
    pub fn tells_since(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            SubscriptionState::Active { since, until } if now < until => Some(since),
            _ => None,
        }
    }

    /// The name of its state at this time, as it is shown: one that was not renewed has run out.
    pub fn standing(&self, now: Timestamp) -> &'static str {
        match self.state {
            SubscriptionState::Wanted => "wanted",
            SubscriptionState::Pending => "pending",
            SubscriptionState::Active { until, .. } if now >= until => "run-out",
            SubscriptionState::Active { .. } => "active",
            SubscriptionState::Denied { .. } => "denied",
            SubscriptionState::Ending => "ending",
        }
    }
}

impl TryFrom<String> for SubscriptionId {
    type Error = SubscriptionIdError;

    fn try_from(text: String) -> Result<Self, SubscriptionIdError> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == ID_BYTES * 2 && text.bytes().all(is_hex) {
            true => Ok(Self(text)),
            false => Err(SubscriptionIdError),
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
    const VERSION: u16 = 1;
}

impl Kept for Subscription {
    type Id = SubscriptionId;

    fn key(id: &SubscriptionId) -> String {
        id.to_string()
    }
}
