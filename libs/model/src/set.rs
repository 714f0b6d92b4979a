//! Sets of resources: one per Capability List.

use jiff::{SignedDuration, Timestamp};
use resourcesync::Capability;
use serde::{Deserialize, Serialize};

use crate::{OaiList, PageList, SelectionId};

/// A set of resources, and its progress.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SetRecord {
    /// Its capabilities, in the Capability List's order.
    pub capabilities: Vec<CapabilityLink>,
    /// Whether it may offer more than that: its Capability List was truncated, or has an unusable entry. A
    /// resource missing from the lists of such a set may be in a list that was not found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
    /// `at` of the last Resource List that was read to its end: it includes every change until then (RS-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_at: Option<Timestamp>,
    /// Whether a baseline was ever completed.
    #[serde(default)]
    pub has_baseline: bool,
    /// The options with which the last baseline was read; none in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionId>,
    /// Whether resources of it may be stored although no baseline was ever completed: a run that could not
    /// read all of one stored some, or its changes were followed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly_held: bool,
    /// The latest change that is settled or recorded as a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronized_to: Option<Timestamp>,
    /// Work that needs a full rescan of the set, although its changes are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<PendingRescan>,
    /// Missed changes: in lists, but not yet from a hub.
    #[serde(default, rename = "untold", skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedChanges>,
    /// Whether the options no longer choose it, a list of an OAI-PMH repository. Its members are those of other sets
    /// only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// The list of an OAI-PMH repository that the set is, and how far it is harvested; none of ResourceSync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oai: Option<Box<OaiList>>,
    /// How it names its landing pages, if it lists these and not resources (Signposting).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageList>,
}

impl SetRecord {
    /// Whether resources of it may be stored, so that resources that its lists omit can be absent.
    pub fn may_be_held(&self) -> bool {
        self.has_baseline || self.partly_held
    }
}

/// Changes that a list had before any notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedChanges {
    /// Their number.
    pub changes: u64,
    /// The time of the first one.
    pub oldest: Timestamp,
    /// The time of the last one.
    pub latest: Timestamp,
}

/// Work that waits for a rescan of a set's Resource Lists or dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRescan {
    /// Since when it waits.
    pub since: Timestamp,
    /// The last rescan for it.
    pub looked_at: Timestamp,
    /// Lists were read, but could not be compared with the catalog, so that not even absences were recorded.
    /// They count as unread: a 304 says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncompared: bool,
    /// More resources were absent than may be deleted without approval: the limit, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded_percent: Option<u8>,
}

/// One capability of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityLink {
    /// The capability.
    pub capability: Capability,
    /// The document's URI; for notifications, the topic.
    pub uri: String,
    /// For notifications: their hubs (CN-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<String>,
}

impl CapabilityLink {
    /// A capability that is a document.
    pub fn new(capability: Capability, uri: impl Into<String>) -> Self {
        Self { capability, uri: uri.into(), hubs: Vec::new() }
    }
}

/// The time until the next rescan for something that has waited this long: zero while that is short.
pub fn wait_again(waited: SignedDuration) -> SignedDuration {
    if waited < SHORT { SignedDuration::ZERO } else { waited.min(LONGEST) }
}

/// A short wait, which needs no pause.
const SHORT: SignedDuration = SignedDuration::from_hours(1);
/// The longest time between two rescans for the same thing.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

impl PendingRescan {
    /// Whether a rescan is due. The first one is due after an hour, each next one when the wait has doubled,
    /// and at least one per week. So work that waits for ever does not cause a full read in each run.
    pub fn is_due(&self, now: Timestamp) -> bool {
        // A clock that was set back proves nothing.
        now >= self.due_at() || now < self.looked_at
    }

    /// When the next rescan is due.
    pub fn due_at(&self) -> Timestamp {
        let wait = wait_again(self.looked_at.duration_since(self.since)).max(SHORT);
        self.looked_at.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

impl SetRecord {
    /// The documents of one kind.
    pub fn documents(&self, capability: &Capability) -> impl Iterator<Item = &str> {
        self.capabilities.iter().filter(move |c| c.capability == *capability).map(|c| c.uri.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + hour * 3_600).unwrap()
    }

    #[test]
    fn looks_come_an_hour_after_the_first_one_and_then_ever_later_but_once_a_week() {
        let waiting = |since, looked_at| PendingRescan {
            since: at(since),
            looked_at: at(looked_at),
            uncompared: false,
            guarded_percent: None,
        };
        let first_due = |one: PendingRescan| (0..10_000).find(|hour| one.is_due(at(*hour))).unwrap();
        assert_eq!(first_due(waiting(0, 0)), 1);
        let mut looks = vec![0];
        for _ in 0..12 {
            let last = *looks.last().unwrap();
            looks.push((last..).find(|hour| waiting(0, last).is_due(at(*hour))).unwrap());
        }
        assert_eq!(looks, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 424, 592, 760]);
    }

    #[test]
    fn what_failed_only_a_short_time_ago_for_the_first_time_is_tried_at_once() {
        assert_eq!(wait_again(SignedDuration::from_mins(59)), SignedDuration::ZERO);
        assert_eq!(wait_again(SignedDuration::from_hours(3)), SignedDuration::from_hours(3));
        assert_eq!(wait_again(SignedDuration::from_hours(1_000)), LONGEST);
    }

    #[test]
    fn a_set_of_which_nothing_waits_is_written_as_before() {
        assert_eq!(
            serde_json::to_string(&SetRecord::default()).unwrap(),
            r#"{"capabilities":[],"has_baseline":false}"#
        );
    }
}
