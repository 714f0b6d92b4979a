//! The Source's side: Change Notifications as a publisher posts them to its hub (CN-6).

use std::iter::Peekable;

use jiff::Timestamp;
use resourcesync::{Capability, Datetime, Entry, Header, Link, Root, WriteError, Writer, relation};
use url::Url;

use crate::XML;

/// By how many bytes the times of an interval can grow when it is split: a dot and nine decimals each.
const DECIMALS: usize = 20;

/// A topic of a Source, and its hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The topic.
    pub topic: Url,
    /// The hub.
    pub hub: Url,
    /// The Capability List of the set that the topic covers.
    pub capability_list: Option<Url>,
}

/// One Change Notification, ready to be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The notification has every change since then,
    pub from: Timestamp,
    /// up to then.
    pub until: Timestamp,
    /// Its number of changes.
    pub entries: usize,
    /// The payload.
    pub body: Vec<u8>,
}

/// Why changes cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// An entry without the time of its change, or one that has no `change`.
    #[error("{uri} says not what happened, or not when: a notification needs both")]
    Untimed {
        /// The resource.
        uri: String,
    },
    /// An entry that is earlier than the one before it, or outside the interval.
    #[error("the change of {uri} is out of order: changes are told oldest first, between from and until")]
    Unordered {
        /// The resource.
        uri: String,
    },
    /// One moment has more changes than a notification may hold. Splitting it would hide the loss of a part.
    #[error(
        "more than {limit} bytes of changes have the time {at}: give their times more precisely, or allow larger payloads"
    )]
    Crowded {
        /// The moment.
        at: Timestamp,
        /// The most bytes of a payload.
        limit: usize,
    },
    /// An entry that XML cannot hold.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The notifications of an interval; see [`publish`].
pub struct Notifications<I: Iterator<Item = Entry>> {
    channel: Channel,
    entries: Peekable<I>,
    /// Entries that did not fit into the previous notification.
    carried: Vec<Told>,
    from: Timestamp,
    until: Timestamp,
    most_bytes: usize,
    frame_bytes: usize,
    is_over: bool,
}

/// An entry with the values that splitting needs.
struct Told {
    entry: Entry,
    at: Timestamp,
    bytes: usize,
}

impl Channel {
    /// The headers of a payload to the hub, and of the topic itself, by name and value: media type, and the
    /// links to topic, hub and Capability List.
    pub fn headers(&self) -> [(&'static str, String); 2] {
        // A URL holds no angle bracket: they are percent-encoded in it.
        let mut links = format!("<{}>; rel=\"self\", <{}>; rel=\"hub\"", self.topic, self.hub);
        if let Some(list) = &self.capability_list {
            links.push_str(&format!(", <{list}>; rel=\"resourcesync\""));
        }
        [("content-type", XML.to_owned()), ("link", links)]
    }
}

/// Publishes the changes from `from` to `until`, in notifications of at most `most_bytes` each, unless a
/// single change is larger. Their intervals touch and do not overlap, and none begins within a moment, so
/// that a receiver notices a missing one. Without changes it returns one notification without entries. Ends
/// after an error.
pub fn publish<I: IntoIterator<Item = Entry>>(
    channel: &Channel,
    from: Timestamp,
    until: Timestamp,
    entries: I,
    most_bytes: usize,
) -> Notifications<I::IntoIter> {
    let frame_bytes = write(channel, from, until, []).map_or(0, |body| body.len());
    Notifications {
        channel: channel.clone(),
        entries: entries.into_iter().peekable(),
        carried: Vec::new(),
        from,
        until,
        most_bytes,
        frame_bytes,
        is_over: false,
    }
}

impl<I: Iterator<Item = Entry>> Notifications<I> {
    fn take(&mut self) -> Result<Notification, PublishError> {
        let mut told = std::mem::take(&mut self.carried);
        let mut bytes = self.frame_bytes + DECIMALS + told.iter().map(|told| told.bytes).sum::<usize>();
        let mut latest = told.last().map_or(self.from, |told| told.at);
        // Carried entries belong to one moment, and were not counted together before.
        if told.len() > 1 && bytes > self.most_bytes {
            return Err(PublishError::Crowded { at: latest, limit: self.most_bytes });
        }
        loop {
            let Some(entry) = self.entries.next() else {
                self.is_over = true;
                return self.notification(&told, self.until);
            };
            let next = self.told(entry, latest)?;
            latest = next.at;
            bytes += next.bytes;
            if bytes <= self.most_bytes || told.is_empty() {
                told.push(next);
                continue;
            }
            // Entries of one moment stay together.
            let kept = told.iter().take_while(|told| told.at < next.at).count();
            if kept == 0 {
                return Err(PublishError::Crowded { at: next.at, limit: self.most_bytes });
            }
            self.carried = told.split_off(kept);
            self.carried.push(next);
            let until = told.last().map_or(self.from, |told| told.at);
            return self.notification(&told, until);
        }
    }

    fn told(&self, entry: Entry, latest: Timestamp) -> Result<Told, PublishError> {
        let untimed = || PublishError::Untimed { uri: entry.loc.clone() };
        let at = entry.metadata.datetime.filter(|_| entry.metadata.change.is_some());
        let at = at.ok_or_else(untimed)?.instant();
        if at < latest || at > self.until {
            return Err(PublishError::Unordered { uri: entry.loc });
        }
        let alone = write(&self.channel, self.from, self.until, [&entry])?;
        Ok(Told { at, bytes: alone.len().saturating_sub(self.frame_bytes), entry })
    }

    /// A notification of these entries, from the end of the previous one.
    fn notification(&mut self, told: &[Told], until: Timestamp) -> Result<Notification, PublishError> {
        let from = std::mem::replace(&mut self.from, until);
        let body = write(&self.channel, from, until, told.iter().map(|told| &told.entry))?;
        Ok(Notification { from, until, entries: told.len(), body })
    }
}

impl<I: Iterator<Item = Entry>> Iterator for Notifications<I> {
    type Item = Result<Notification, PublishError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let taken = self.take();
        self.is_over |= taken.is_err();
        Some(taken)
    }
}

fn write<'a>(
    channel: &Channel,
    from: Timestamp,
    until: Timestamp,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<Vec<u8>, WriteError> {
    let up = channel.capability_list.as_ref().map(|list| Link::new(relation::UP, list.as_str()));
    let header = Header {
        from: Some(Datetime::from(from)),
        until: Some(Datetime::from(until)),
        links: up.into_iter().collect(),
        ..Header::new(Root::UrlSet, Some(Capability::ChangeNotification))
    };
    let mut writer = Writer::new(Vec::new(), &header)?;
    for entry in entries {
        writer.write(entry)?;
    }
    writer.finish()
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;
