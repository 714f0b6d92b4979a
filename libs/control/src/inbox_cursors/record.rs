//! The read position in an inbox of others, for a Source. Pure functions.

use std::collections::HashSet;
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use model::{Message, Persisted, SourceId, Validators};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::backoff::{cap_retry_after, later, pause, reason};
use crate::kept::Kept;

/// The most notifications of an inbox that are remembered as read. Entries of the listing beyond that are ignored.
pub const MOST_SEEN: usize = 4_096;
/// Bytes of a digest that stand for a notification.
const MARK_BYTES: usize = 8;
/// The longest pause after a failed poll, unless the usual pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// The read position in an inbox of others, for a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxCursor {
    /// The Source.
    pub source: SourceId,
    /// The URL from the Source's spec: an inbox, or a page that advertises one.
    pub page: Url,
    /// The inbox, once it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Url>,
    /// The HTTP validators of the last listing, if it was read completely.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// The listed notifications that were read: the first bytes of digests of their URLs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// When the next poll is due.
    pub next_at: Timestamp,
    /// When the inbox was last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// Consecutive polls that failed or are under way.
    #[serde(default)]
    pub tries: u32,
    /// The last error, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Stands for a notification that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seen(String);

impl Seen {
    /// The mark of the notification at a URL.
    pub fn of(notification: &Url) -> Self {
        Self(HEXLOWER.encode(&Sha256::digest(notification.as_str())[..MARK_BYTES]))
    }
}

impl InboxCursor {
    /// An inbox that was never read, and is due now.
    pub fn new(source: SourceId, page: Url, now: Timestamp) -> Self {
        Self {
            source,
            page,
            inbox: None,
            validators: Validators::default(),
            seen: Vec::new(),
            next_at: now,
            read_at: None,
            tries: 0,
            trouble: None,
        }
    }

    /// The listed notifications that were not read yet, the last one first, because most inboxes append new ones at the
    /// end.
    pub fn unseen<'a>(&self, listed: &'a [Url]) -> Vec<&'a Url> {
        let seen: HashSet<_> = self.seen.iter().collect();
        listed.iter().take(MOST_SEEN).rev().filter(|url| !seen.contains(&Seen::of(url))).collect()
    }

    /// The state while a scheduler polls. If that scheduler dies, the next poll follows after the pause. `every` is the
    /// usual interval.
    pub fn taken(&self, every: Duration, now: Timestamp) -> Self {
        let tries = self.tries.saturating_add(1);
        Self { tries, next_at: later(now, pause_after(every, tries)), ..self.clone() }
    }

    /// The state after a poll. Notifications that are not listed any more are forgotten; of the listed ones, all but
    /// `left` are read. `validators` are those of the listing, if they cover all of it.
    pub fn read(
        &self,
        inbox: Url,
        listed: &[Url],
        left: &[&Url],
        validators: Validators,
        every: Duration,
        now: Timestamp,
    ) -> Self {
        let left: HashSet<_> = left.iter().copied().collect();
        let seen = listed.iter().take(MOST_SEEN).filter(|url| !left.contains(url)).map(Seen::of).collect();
        Self {
            inbox: Some(inbox),
            validators: if left.is_empty() { validators } else { Validators::default() },
            seen,
            next_at: later(now, every),
            read_at: Some(now),
            tries: 0,
            trouble: None,
            ..self.clone()
        }
    }

    /// The state after a poll that found the listing unchanged.
    pub fn unchanged(&self, every: Duration, now: Timestamp) -> Self {
        Self { next_at: later(now, every), read_at: Some(now), tries: 0, trouble: None, ..self.clone() }
    }

    /// The state after a poll that failed, for a position that was [`taken`](Self::taken). `not_before` is the inbox's
    /// own request. The next poll discovers the inbox again, because it may have moved.
    pub fn failed(&self, why: &str, not_before: Option<Timestamp>, every: Duration, now: Timestamp) -> Self {
        Self {
            inbox: None,
            validators: Validators::default(),
            next_at: later(now, pause_after(every, self.tries)).max(cap_retry_after(not_before, now)),
            trouble: Some(reason(why)),
            ..self.clone()
        }
    }
}

/// The pause after so many failed polls.
fn pause_after(every: Duration, tries: u32) -> Duration {
    pause(every, LONGEST_PAUSE.max(every), tries)
}

impl Message for InboxCursor {
    const KIND: &'static str = "reading";
    const VERSION: u16 = Persisted::InboxCursors.version();
}

impl Kept for InboxCursor {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
