//! Changes that a hub should have reported, and did not. Pure.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use model::{MissedChanges, PendingRecord, ResourceRecord, SetId};

use crate::decide::Decision;

/// The channels by which hubs should report changes.
#[derive(Debug, Clone)]
pub struct Channels {
    /// Since when the channel of each set is active.
    pub since: HashMap<SetId, Timestamp>,
    /// How long a notification may be in transit.
    pub patience: Duration,
}

impl Default for Channels {
    fn default() -> Self {
        Self { since: HashMap::new(), patience: Duration::from_secs(60) }
    }
}

impl Channels {
    /// Whether the channel of its set should report a change of this time. Clocks differ, and a hub that has just
    /// verified a subscription may not deliver yet.
    pub fn tells(&self, set: &SetId, change: Timestamp) -> bool {
        self.since.get(set).is_some_and(|since| is_past(*since, self.patience, change))
    }
}

/// Whether `patience` has passed at `now` since `then`.
pub fn is_past(then: Timestamp, patience: Duration, now: Timestamp) -> bool {
    then.saturating_add(patience).is_ok_and(|end| end < now)
}

/// Adds one change.
pub fn with(missed: Option<MissedChanges>, change: Timestamp) -> MissedChanges {
    let before = missed.unwrap_or(MissedChanges { changes: 0, oldest: change, latest: change });
    MissedChanges {
        changes: before.changes.saturating_add(1),
        oldest: before.oldest.min(change),
        latest: before.latest.max(change),
    }
}

/// The rest after a notification with this interval and number of entries was read. A notification that begins later
/// does not contain the oldest change. One that ends earlier leaves the later changes, at least one.
pub fn without(
    missed: MissedChanges,
    from: Timestamp,
    until: Timestamp,
    entries: u64,
) -> Option<MissedChanges> {
    if from > missed.oldest || until < missed.oldest {
        Some(missed)
    } else if until >= missed.latest {
        None
    } else {
        let changes = missed.changes.saturating_sub(entries).max(1);
        Some(MissedChanges { changes, oldest: until, ..missed })
    }
}

/// Whether no stored record or plan has this time of a change, or a later one.
pub fn is_news(
    change: Timestamp,
    decision: Decision,
    record: Option<&ResourceRecord>,
    pending: Option<&PendingRecord>,
) -> bool {
    let known = [record.and_then(|record| record.listing.as_of), pending.and_then(|plan| plan.listing.as_of)];
    let is_asked_for = matches!(decision, Decision::Fetch | Decision::Delete | Decision::Ask);
    is_asked_for && known.into_iter().flatten().all(|known| known < change)
}

#[cfg(test)]
mod tests {
    use model::{Action, Declaration, Listing, Provenance, Seq, Why};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn missed(changes: u64, oldest: i64, latest: i64) -> MissedChanges {
        MissedChanges { changes, oldest: at(oldest), latest: at(latest) }
    }

    #[test]
    fn what_was_changed_before_the_channel_works_for_certain_is_not_awaited_from_it() {
        let set = SetId::new("http://h/caps.xml");
        let channels = Channels { since: HashMap::from([(set.clone(), at(100))]), ..Channels::default() };
        assert_eq!([100, 160, 161].map(|second| channels.tells(&set, at(second))), [false, false, true]);
        assert!(!channels.tells(&SetId::new("http://h/other.xml"), at(1_000)));
        assert!(!Channels::default().tells(&set, at(1_000)));
    }

    #[test]
    fn untold_changes_are_counted_with_their_interval() {
        let all = [20, 10, 30].into_iter().fold(None, |missed, second| Some(with(missed, at(second))));
        assert_eq!(all, Some(missed(3, 10, 30)));
    }

    #[test]
    fn a_notification_that_comes_late_takes_back_what_it_tells_and_another_one_does_not() {
        let found = missed(5, 10, 30);
        assert_eq!(without(found, at(10), at(30), 5), None);
        assert_eq!(without(found, at(0), at(40), 0), None, "several changes of one resource are told as one");
        assert_eq!(without(found, at(11), at(40), 5), Some(found), "it may have told all but the oldest");
        assert_eq!(without(found, at(0), at(9), 5), Some(found));
        assert_eq!(without(found, at(0), at(20), 3), Some(missed(2, 20, 30)));
        assert_eq!(without(found, at(0), at(20), 9), Some(missed(1, 20, 30)), "what is later is left");
    }

    #[test]
    fn only_what_nothing_known_speaks_of_is_news() {
        let change = at(10);
        assert!(is_news(change, Decision::Fetch, None, None));
        assert!(is_news(change, Decision::Delete, None, None));
        for decision in [Decision::Unchanged, Decision::Stale] {
            assert!(!is_news(change, decision, None, None));
        }
        for (told, is_new) in [(9, true), (10, false), (11, false)] {
            let held = held(told);
            let planned = planned(told);
            assert_eq!(is_news(change, Decision::Fetch, Some(&held), None), is_new, "held: {told}");
            assert_eq!(is_news(change, Decision::Fetch, None, Some(&planned)), is_new, "planned: {told}");
        }
        let early = held(9);
        let late = planned(11);
        assert!(!is_news(change, Decision::Fetch, Some(&early), Some(&late)), "one of them speaks of it");
    }

    fn listing(as_of: i64) -> Listing {
        Listing {
            document: "http://h/changes.xml".into(),
            set: SetId::new("http://h/caps.xml"),
            change: None,
            change_time: None,
            as_of: Some(at(as_of)),
            latest: None,
            links: None,
            linked: None,
        }
    }

    fn held(as_of: i64) -> ResourceRecord {
        ResourceRecord {
            bitstream: None,
            declaration: Declaration::default(),
            listing: listing(as_of),
            sets: Vec::new(),
            deleted: None,
            collected: None,
            absent: None,
            settled_at: at(0),
        }
    }

    fn planned(as_of: i64) -> PendingRecord {
        PendingRecord {
            seq: Seq::default(),
            action: Action::Delete,
            declaration: Declaration::default(),
            listing: listing(as_of),
            attempts: 0,
            next_attempt_at: None,
            candidate: None,
            repair: false,
            mirror: None,
            patch: None,
            account: Provenance::of(Why::Problem),
        }
    }
}
