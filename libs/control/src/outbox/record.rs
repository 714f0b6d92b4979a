//! What is to be sent to one target about one Source, and how that stands. Pure.

use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::{SignedDuration, Timestamp};
use model::{Message, RunId, SourceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::table::Kept;
use crate::tries::{later, pause, reason, wish};

/// The pause after the first try that came to nothing; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// How long it is tried, from the moment at which it was first to be told.
const PATIENCE: SignedDuration = SignedDuration::from_hours(72);

/// What a run has changed of what is held of a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The run, by its name in the Source's catalog; of several the first one.
    pub run: RunId,
    /// When it began.
    pub from: Timestamp,
    /// When it was over.
    pub until: Timestamp,
    /// Resources that were stored.
    pub stored: u64,
    /// Resources that were deleted.
    pub deleted: u64,
}

/// What is to be sent to a target about a Source: all that has changed since it was last told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The Source.
    pub source: SourceId,
    /// Whom to tell: what has the inbox, not the inbox.
    pub target: Url,
    /// What the last run has changed.
    pub latest: Change,
    /// What the runs before it have changed, all together, where the target was not told of it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Change>,
    /// Since when it waits: the patience with the target counts from here.
    pub since: Timestamp,
    /// How it stands.
    pub state: OutgoingState,
    /// When it is sent, or tried again.
    pub next_at: Timestamp,
    /// Tries that came to nothing, or are under way.
    #[serde(default)]
    pub tries: u32,
    /// What is wrong, as long as something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// How it stands with what is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutgoingState {
    /// It is sent when it is time.
    Waiting,
    /// The target has understood and said no: it is not asked again before there is more to be told.
    Refused,
    /// It was tried for days.
    GivenUp,
}

impl OutgoingState {
    /// Its name, for metrics and people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::GivenUp => "given-up",
        }
    }
}

impl Change {
    /// Whether anything has changed.
    pub fn is_one(&self) -> bool {
        self.stored > 0 || self.deleted > 0
    }

    /// Both, one after the other.
    fn and(&self, later: &Self) -> Self {
        Self {
            run: self.run,
            from: self.from.min(later.from),
            until: self.until.max(later.until),
            stored: self.stored.saturating_add(later.stored),
            deleted: self.deleted.saturating_add(later.deleted),
        }
    }
}

impl Outgoing {
    /// Something that is to be sent now.
    pub fn new(source: SourceId, target: Url, change: Change, now: Timestamp) -> Self {
        Self {
            source,
            target,
            latest: change,
            earlier: None,
            since: now,
            state: OutgoingState::Waiting,
            next_at: now,
            tries: 0,
            trouble: None,
        }
    }

    /// The same with one more change. What was refused or given up is tried anew with it; a target that is waited for is not asked sooner.
    pub fn and(&self, change: &Change, now: Timestamp) -> Self {
        let is_same = self.latest.run == change.run;
        if is_same && self.latest == *change {
            return self.clone();
        }
        let earlier = match &self.earlier {
            earlier if is_same => earlier.clone(),
            None => Some(self.latest.clone()),
            Some(earlier) => Some(earlier.and(&self.latest)),
        };
        let anew =
            Self { earlier, ..Self::new(self.source.clone(), self.target.clone(), change.clone(), now) };
        match self.is_waiting() {
            true => Self { latest: anew.latest, earlier: anew.earlier, ..self.clone() },
            false => anew,
        }
    }

    /// All that is to be told.
    pub fn change(&self) -> Change {
        match &self.earlier {
            None => self.latest.clone(),
            Some(earlier) => earlier.and(&self.latest),
        }
    }

    /// The name of the notification: the same whenever the same is sent to the same target again.
    pub fn name(&self) -> String {
        let mut digest = Sha256::new();
        let first = self.change().run;
        for part in
            [self.source.as_str(), self.target.as_str(), &first.to_string(), &self.latest.run.to_string()]
        {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let mut bytes: [u8; 16] = digest.finalize()[..16].try_into().unwrap_or_default();
        // A UUID whose bits are somebody's own business (RFC 9562, 5.8).
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = HEXLOWER.encode(&bytes);
        format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Whether it is still to be sent.
    pub fn is_waiting(&self) -> bool {
        self.state == OutgoingState::Waiting
    }

    /// As it is while somebody sends it. Should he not come back, it is tried again after the pause.
    pub fn taken(&self, now: Timestamp) -> Self {
        let tries = self.tries.saturating_add(1);
        Self { tries, next_at: later(now, pause(FIRST_PAUSE, LONGEST_PAUSE, tries)), ..self.clone() }
    }

    /// As it is after a try that came to nothing, of what was [`taken`](Self::taken). `not_before` is the target's own word.
    pub fn failed(&self, why: &str, not_before: Option<Timestamp>, now: Timestamp) -> Self {
        let trouble = Some(reason(why));
        if now.duration_since(self.since) >= PATIENCE {
            return Self { state: OutgoingState::GivenUp, trouble, ..self.clone() };
        }
        let next_at = later(now, pause(FIRST_PAUSE, LONGEST_PAUSE, self.tries)).max(wish(not_before, now));
        Self { next_at, trouble, ..self.clone() }
    }

    /// As it is when the target has understood, and said no.
    pub fn refused(&self, why: &str) -> Self {
        let trouble = Some(reason(why));
        Self { state: OutgoingState::Refused, trouble, ..self.clone() }
    }
}

impl Message for Outgoing {
    const KIND: &'static str = "outgoing";
    const VERSION: u16 = 1;
}

impl Kept for Outgoing {
    type Id = (SourceId, Url);

    fn key((source, target): &(SourceId, Url)) -> String {
        format!("{source}.{}", HEXLOWER.encode(&Sha256::digest(target.as_str())[..16]))
    }
}
