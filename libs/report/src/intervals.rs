//! The time that the change documents of a set cover, and the gaps in it.

use jiff::{SignedDuration, Timestamp};

use crate::card::{ChangeCoverage, Interval};

/// The most gaps in the card. Further ones are only counted.
const SHOWN: usize = 10;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A change document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// `from`.
    pub(crate) from: Timestamp,
    /// `until`; none while the document is open.
    pub(crate) until: Option<Timestamp>,
    /// The latest change in it.
    pub(crate) latest: Option<Timestamp>,
}

/// The time that all of them cover. An open document covers everything that follows, so there is no gap after it.
pub(crate) fn coverage(mut told: Vec<Told>) -> Option<ChangeCoverage> {
    told.sort_by_key(|document| document.from);
    let first = *told.first()?;
    let mut found =
        ChangeCoverage { from: first.from, to: first.from, open: false, gaps: Vec::new(), gap_count: 0 };
    for document in told {
        if !found.open && is_gap(found.to, document.from) {
            found.gap_count += 1;
            if found.gaps.len() < SHOWN {
                found.gaps.push(Interval { from: found.to, until: document.from });
            }
        }
        found.open |= document.until.is_none();
        let end = document.until.or(document.latest).unwrap_or(document.from);
        found.to = found.to.max(end);
    }
    Some(found)
}

/// Whether there certainly is time in between. A timestamp is only a lower bound. An `until` of 23:59:59 may mean all
/// of that second. A date without a time may mean all of that day.
fn is_gap(until: Timestamp, from: Timestamp) -> bool {
    let width = until.duration_until(from);
    let are_dates = [until, from].iter().all(|time| time.as_nanosecond() % DAY.as_nanos() == 0);
    width > if are_dates { DAY } else { SignedDuration::from_secs(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    fn told(from: i64, until: Option<i64>) -> Told {
        Told { from: second(from), until: until.map(second), latest: Some(second(from + 1)) }
    }

    #[test]
    fn documents_that_join_on_leave_no_gap() {
        let found = coverage(vec![told(20, None), told(0, Some(10)), told(10, Some(20))]).unwrap();
        assert_eq!((found.from, found.to, found.open), (second(0), second(21), true));
        assert_eq!(found.gap_count, 0);
    }

    #[test]
    fn time_of_which_no_document_tells_is_a_gap() {
        let found = coverage(vec![told(0, Some(10)), told(2, Some(5)), told(12, Some(20))]).unwrap();
        assert_eq!(found.gaps, [Interval { from: second(10), until: second(12) }]);
        assert!(!found.open);
    }

    #[test]
    fn a_second_or_a_day_that_the_end_itself_may_mean_is_no_gap() {
        const DAY: i64 = 86_400;
        assert_eq!(coverage(vec![told(0, Some(DAY - 1)), told(DAY, None)]).unwrap().gap_count, 0);
        assert_eq!(coverage(vec![told(0, Some(DAY)), told(2 * DAY, None)]).unwrap().gap_count, 0);
        assert_eq!(coverage(vec![told(0, Some(DAY)), told(2 * DAY + 1, None)]).unwrap().gap_count, 1);
        assert_eq!(coverage(vec![told(0, Some(DAY)), told(3 * DAY, None)]).unwrap().gap_count, 1);
    }

    #[test]
    fn nothing_after_an_open_document_is_a_gap() {
        assert_eq!(coverage(vec![told(0, None), told(50, Some(60))]).unwrap().gap_count, 0);
    }

    #[test]
    fn more_gaps_than_are_shown_are_counted() {
        let found = coverage((0..20).map(|n| told(n * 10, Some(n * 10 + 5))).collect()).unwrap();
        assert_eq!((found.gaps.len(), found.gap_count), (10, 19));
    }

    #[test]
    fn without_change_documents_there_is_nothing_to_say() {
        assert_eq!(coverage(Vec::new()), None);
    }
}
