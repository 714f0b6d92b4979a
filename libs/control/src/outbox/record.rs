//! The notification to one target about one Source, and its state. Pure functions.

use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::{SignedDuration, Timestamp};
use model::{Message, Persisted, RunId, SourceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::backoff::{cap_retry_after, later, pause, reason};
use crate::kept::Kept;

/// The pause after the first failed attempt. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// How long sending is retried, counted from the time when the notification was first due.
const PATIENCE: SignedDuration = SignedDuration::from_hours(72);

/// The changes that a run has made to the stored resources of a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The ID of the run in the Source's catalog. For several runs, that of the first.
    pub run: RunId,
    /// When it began.
    pub from: Timestamp,
    /// When it ended.
    pub until: Timestamp,
    /// Resources that were stored.
    pub stored: u64,
    /// Resources that were deleted.
    pub deleted: u64,
}

/// A notification to a target about a Source, with all changes since the last one that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxMessage {
    /// The Source.
    pub source: SourceId,
    /// The target: the page that advertises the inbox, not the inbox itself.
    pub target: Url,
    /// The changes of the last run.
    pub latest: Change,
    /// The changes of all earlier runs together that were not sent to the target yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Change>,
    /// Since when it is queued. The retry time of the target counts from here.
    pub since: Timestamp,
    /// Its state.
    pub state: OutboxState,
    /// When it is sent, or retried.
    pub next_at: Timestamp,
    /// Attempts that failed or are under way.
    #[serde(default)]
    pub tries: u32,
    /// The last error, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The state of a notification in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutboxState {
    /// It is sent when it is due.
    Waiting,
    /// The target understood it and refused. It is not sent again before there are more changes.
    Refused,
    /// Retries failed for days.
    DeadLetterSummary,
}

impl OutboxState {
    /// Its name, for metrics and operators.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::DeadLetterSummary => "given-up",
        }
    }
}

impl Change {
    /// Whether anything has changed.
    pub fn is_one(&self) -> bool {
        self.stored > 0 || self.deleted > 0
    }

    /// Merges an earlier change with a later one.
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

impl OutboxMessage {
    /// A notification that is due now.
    pub fn new(source: SourceId, target: Url, change: Change, now: Timestamp) -> Self {
        Self {
            source,
            target,
            latest: change,
            earlier: None,
            since: now,
            state: OutboxState::Waiting,
            next_at: now,
            tries: 0,
            trouble: None,
        }
    }

    /// Adds a change. A refused or abandoned notification becomes due again; a pending retry is not sent sooner.
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
        if self.is_waiting() {
            Self { latest: anew.latest, earlier: anew.earlier, ..self.clone() }
        } else {
            anew
        }
    }

    /// All changes together.
    pub fn change(&self) -> Change {
        match &self.earlier {
            None => self.latest.clone(),
            Some(earlier) => earlier.and(&self.latest),
        }
    }

    /// The ID of the notification. It is the same for the same content to the same target.
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
        // A UUID of version 8, with custom content (RFC 9562, 5.8).
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = HEXLOWER.encode(&bytes);
        format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Whether it is still to be sent.
    pub fn is_waiting(&self) -> bool {
        self.state == OutboxState::Waiting
    }

    /// The state while a scheduler sends it. If that scheduler dies, it is retried after the pause.
    pub fn taken(&self, now: Timestamp) -> Self {
        let tries = self.tries.saturating_add(1);
        Self { tries, next_at: later(now, pause(FIRST_PAUSE, LONGEST_PAUSE, tries)), ..self.clone() }
    }

    /// The state after an attempt that failed, for a notification that was [`taken`](Self::taken). `not_before` is the
    /// target's own request.
    pub fn failed(&self, why: &str, not_before: Option<Timestamp>, now: Timestamp) -> Self {
        let trouble = Some(reason(why));
        if now.duration_since(self.since) >= PATIENCE {
            return Self { state: OutboxState::DeadLetterSummary, trouble, ..self.clone() };
        }
        let next_at =
            later(now, pause(FIRST_PAUSE, LONGEST_PAUSE, self.tries)).max(cap_retry_after(not_before, now));
        Self { next_at, trouble, ..self.clone() }
    }

    /// The state after the target understood it and refused.
    pub fn refused(&self, why: &str) -> Self {
        let trouble = Some(reason(why));
        Self { state: OutboxState::Refused, trouble, ..self.clone() }
    }
}

impl Message for OutboxMessage {
    const KIND: &'static str = "outgoing";
    const VERSION: u16 = Persisted::Outbox.version();
}

impl Kept for OutboxMessage {
    type Id = (SourceId, Url);

    fn key((source, target): &(SourceId, Url)) -> String {
        format!("{source}.{}", HEXLOWER.encode(&Sha256::digest(target.as_str())[..16]))
    }

    fn describe((source, target): &(SourceId, Url)) -> String {
        format!("notification of {target} about {source}")
    }
}
