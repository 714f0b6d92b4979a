//! What hubs are still to be told: the published Change Lists are the outbox, and a time per hub is its state.

use std::ops::ControlFlow;

use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::Entry;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::place::{OWN, lasting};
use crate::published::each_entry;
use crate::state::State;
use crate::{Publication, PublishError};

/// Changes of an interval, oldest first. Each is in a published Change List.
#[derive(Debug, Clone)]
pub struct Untold {
    /// Its begin.
    pub from: Timestamp,
    /// Its end: every change of the interval is there.
    pub until: Timestamp,
    /// The entries, as the Change Lists have them.
    pub entries: Vec<Entry>,
}

/// How far a hub was told.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    hub: Url,
    until: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    under_way: Option<UnderWay>,
}

/// The interval of a payload that a hub may have taken: its answer is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnderWay {
    /// Its begin.
    pub from: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

impl Publication {
    /// The changes behind a time, at most so many. None if there are none.
    ///
    /// # Errors
    /// When the place fails, or a Change List is not as it was published.
    pub async fn changes_after(&self, since: Timestamp, most: usize) -> Result<Option<Untold>, PublishError> {
        self.changes_between(since, Timestamp::MAX, most).await
    }

    /// The changes behind a time and up to another one, at most so many. None if there are none.
    ///
    /// # Errors
    /// When the place fails, or a Change List is not as it was published.
    pub async fn changes_between(
        &self,
        since: Timestamp,
        to: Timestamp,
        most: usize,
    ) -> Result<Option<Untold>, PublishError> {
        let Some(state) = State::load(&self.place).await? else { return Ok(None) };
        let last = state.last.min(to);
        if last <= since {
            return Ok(None);
        }
        // What was published anew does not join what was told before: subscribers see the gap.
        let begin = state.lists.first().map_or(since, |list| list.from);
        let mut untold = Untold { from: since.max(begin), until: last, entries: Vec::new() };
        let is_over = |until: Option<Timestamp>| until.is_some_and(|until| until <= since);
        for list in state.lists.iter().filter(|list| !is_over(list.until) && list.from <= last) {
            let copy = self.place.copy(&list.path).await?;
            let copy = copy.ok_or_else(|| PublishError::changed(&list.path, "it is not there"))?;
            let mut left = list.changes;
            each_entry(&list.path, copy, |entry| {
                // A run that was killed may have written more than is published.
                if left == 0 || untold.entries.len() > most {
                    return Ok(ControlFlow::Break(()));
                }
                left -= 1;
                let at = entry.metadata.datetime.map(|at| at.instant());
                if at.is_some_and(|at| at > since && at <= last) {
                    untold.entries.push(entry);
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if left > 0 && untold.entries.len() <= most {
                return Err(PublishError::short(&list.path, list.changes - left, list.changes));
            }
            if untold.entries.len() > most {
                untold.entries.truncate(most);
                let last = untold.entries.last().and_then(|entry| entry.metadata.datetime);
                untold.until = last.map_or(untold.until, |at| at.instant());
                break;
            }
        }
        Ok(Some(untold).filter(|untold| !untold.entries.is_empty()))
    }

    /// The time of the last published change. Nothing was published before the beginning of the epoch.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn published_until(&self) -> Result<Timestamp, PublishError> {
        Ok(State::load(&self.place).await?.map_or(Timestamp::UNIX_EPOCH, |state| state.last))
    }

    /// Until when a hub was told. One that is new is told what changes from now on.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn told_until(&self, hub: &Url) -> Result<Timestamp, PublishError> {
        Ok(self.told_and_under_way(hub).await?.0)
    }

    /// The same, and the payload that was under way to the hub when that was noted. It may have been taken, so it is
    /// sent again with the same interval: those of two payloads touch, and do not overlap.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn told_and_under_way(&self, hub: &Url) -> Result<(Timestamp, Option<UnderWay>), PublishError> {
        let path = path(hub);
        if let Some(bytes) = self.place.read(&path).await? {
            let told: Told =
                serde_json::from_slice(&bytes).map_err(|error| PublishError::changed(&path, error))?;
            return Ok((told.until, told.under_way));
        }
        let until = self.published_until().await?;
        self.note_told(hub, until).await?;
        Ok((until, None))
    }

    /// Notes until when a hub was told, and that nothing is under way.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn note_told(&self, hub: &Url, until: Timestamp) -> Result<(), PublishError> {
        self.note(Told { hub: hub.clone(), until, under_way: None }).await
    }

    /// Notes that a payload is about to be sent to a hub, which was told `until` then.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn note_under_way(
        &self,
        hub: &Url,
        until: Timestamp,
        payload: UnderWay,
    ) -> Result<(), PublishError> {
        self.note(Told { hub: hub.clone(), until, under_way: Some(payload) }).await
    }

    async fn note(&self, told: Told) -> Result<(), PublishError> {
        let path = path(&told.hub);
        let json = serde_json::to_vec(&told).map_err(|error| PublishError::place(&path, error))?;
        self.place.put(&path, json.into(), &lasting()).await
    }
}

fn path(hub: &Url) -> String {
    format!("{OWN}/hubs/{}.json", Sha256::of(hub.as_str().as_bytes()))
}
