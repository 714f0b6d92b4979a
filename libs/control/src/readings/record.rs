//! How far an inbox of others is read for a Source. Pure.

use std::collections::HashSet;
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use model::{Message, SourceId, Validators};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::table::Kept;
use crate::tries::{later, pause, reason, wish};

/// The most notifications of an inbox that are known to be read. What an inbox lists beyond that is not looked at.
pub const MOST_SEEN: usize = 4_096;
/// Bytes of a digest that stand for a notification.
const MARK_BYTES: usize = 8;
/// The longest pause after a look that came to nothing, unless the usual one is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// How far an inbox of others is read for a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The Source.
    pub source: SourceId,
    /// What is to be read, as the Source's operator has it: an inbox, or a page that tells of one.
    pub page: Url,
    /// The inbox, once it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Url>,
    /// By what the listing is known that was read last, where it was read whole.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// What it lists and was read: the beginnings of digests of URLs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Seen>,
    /// When it is looked at next.
    pub next_at: Timestamp,
    /// When it was read last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// Looks in a row that came to nothing, or are under way.
    #[serde(default)]
    pub tries: u32,
    /// What is wrong, as long as something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What stands for a notification that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seen(String);

impl Seen {
    /// What stands for the notification at a URL.
    pub fn of(notification: &Url) -> Self {
        Self(HEXLOWER.encode(&Sha256::digest(notification.as_str())[..MARK_BYTES]))
    }
}

impl Reading {
    /// An inbox that was never read, and is to be now.
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

    /// Which of the notifications that it lists were not read yet, the last one first: most inboxes list what came last at the end.
    pub fn unseen<'a>(&self, listed: &'a [Url]) -> Vec<&'a Url> {
        let seen: HashSet<_> = self.seen.iter().collect();
        listed.iter().take(MOST_SEEN).rev().filter(|url| !seen.contains(&Seen::of(url))).collect()
    }

    /// As it is while somebody looks. Should he not come back, it is looked at after the pause. `every` is the usual time between two looks.
    pub fn taken(&self, every: Duration, now: Timestamp) -> Self {
        let tries = self.tries.saturating_add(1);
        Self { tries, next_at: later(now, pause_after(every, tries)), ..self.clone() }
    }

    /// As it is after a look. What it does not list any more is forgotten; of what it lists, all is read but for what is `left`. `validators` are
    /// those of the listing, if it is known whole by them.
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

    /// As it is after a look that has found the listing as it was.
    pub fn unchanged(&self, every: Duration, now: Timestamp) -> Self {
        Self { next_at: later(now, every), read_at: Some(now), tries: 0, trouble: None, ..self.clone() }
    }

    /// As it is after a look that came to nothing, of what was [`taken`](Self::taken). `not_before` is the inbox's own word. It is found anew by the
    /// next one: it may have moved.
    pub fn failed(&self, why: &str, not_before: Option<Timestamp>, every: Duration, now: Timestamp) -> Self {
        Self {
            inbox: None,
            validators: Validators::default(),
            next_at: later(now, pause_after(every, self.tries)).max(wish(not_before, now)),
            trouble: Some(reason(why)),
            ..self.clone()
        }
    }
}

/// The pause after so many looks that came to nothing.
fn pause_after(every: Duration, tries: u32) -> Duration {
    pause(every, LONGEST_PAUSE.max(every), tries)
}

impl Message for Reading {
    const KIND: &'static str = "reading";
    const VERSION: u16 = 1;
}

impl Kept for Reading {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
