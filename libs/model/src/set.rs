//! Sets of resources: one per Capability List.

use jiff::{SignedDuration, Timestamp};
use resourcesync::Capability;
use serde::{Deserialize, Serialize};

/// A set of resources, and how far it is synchronized.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SetRecord {
    /// What the set offers, in the Capability List's order.
    pub capabilities: Vec<CapabilityLink>,
    /// Whether it may offer more than that: its Capability List was cut short, or has an entry that cannot be used. What such a
    /// set's lists do not name may stand in one that nobody found.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
    /// `at` of the last Resource List that was read whole: every change up to it is in it (RS-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_at: Option<Timestamp>,
    /// Whether a baseline was ever completed.
    #[serde(default)]
    pub has_baseline: bool,
    /// Whether resources of it may be held although no baseline was ever completed: a run that could not read all of
    /// one has stored some, or its changes were followed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly_held: bool,
    /// The latest change that is settled or recorded as a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronized_to: Option<Timestamp>,
    /// What only another look at everything that the set has can settle, although its changes are followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Changes that lists told of although a hub should have, and has not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<Untold>,
}

impl SetRecord {
    /// Whether resources of it may be held, so that what its lists do not name can be absent.
    pub fn may_be_held(&self) -> bool {
        self.has_baseline || self.partly_held
    }
}

/// Changes that lists told of before any notification did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untold {
    /// How many.
    pub changes: u64,
    /// When the first of them was made.
    pub oldest: Timestamp,
    /// When the last one was.
    pub latest: Timestamp,
}

/// What waits for another look at the Resource Lists, or dumps, of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Since when something waits.
    pub since: Timestamp,
    /// When it was last looked for it.
    pub looked_at: Timestamp,
    /// Lists were read and could not be compared with what is held, so what they do not name was not even noted. They count as unread: a
    /// server's word that they are as they were says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncompared: bool,
    /// More was absent than might be deleted without a word: so many percent might be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded_percent: Option<u8>,
}

/// One capability of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityLink {
    /// What it is.
    pub capability: Capability,
    /// The document's URI; of notifications, the channel.
    pub uri: String,
    /// The hubs that push it, of notifications (CN-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hubs: Vec<String>,
}

impl CapabilityLink {
    /// A capability that is a document.
    pub fn new(capability: Capability, uri: impl Into<String>) -> Self {
        Self { capability, uri: uri.into(), hubs: Vec::new() }
    }
}

/// The time before something is looked for again, when it has been waited for this long: none while that is a short time.
pub fn wait_again(waited: SignedDuration) -> SignedDuration {
    if waited < SHORT { SignedDuration::ZERO } else { waited.min(LONGEST) }
}

/// A wait that is none.
const SHORT: SignedDuration = SignedDuration::from_hours(1);
/// The longest time between two looks for the same thing.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

impl Waiting {
    /// Whether it is time for another look: an hour after the first one, then when as much time has passed again as something has
    /// waited by then, and at least once a week. So a set of which something waits for ever is not read whole in each run.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let wait = wait_again(self.looked_at.duration_since(self.since)).max(SHORT);
        let since_then = now.duration_since(self.looked_at);
        // A clock that was put back says nothing.
        since_then >= wait || since_then.is_negative()
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
        let waiting = |since, looked_at| Waiting {
            since: at(since),
            looked_at: at(looked_at),
            uncompared: false,
            guarded_percent: None,
        };
        let first_due = |one: Waiting| (0..10_000).find(|hour| one.is_due(at(*hour))).unwrap();
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
