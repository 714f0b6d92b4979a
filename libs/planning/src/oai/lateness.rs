//! How far lists of changes overlap, and which answers are old: an index may show a record later than its datestamp
//! says, and a cache may answer with what it had before.

use std::iter;

use jiff::{SignedDuration, Timestamp};
use model::{OaiProgress, OaiReadingKind};

use super::reading::List;
use super::window::floor;

/// How far the next list begins before the cursor, if no record was later than half of it.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24);
/// The longest overlap.
const LONGEST: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Lists of changes whose lateness is kept.
const LISTS: usize = 30;

/// How far the next list of changes begins before the cursor: twice as far as a record was late in the last lists, and
/// a day at least. An overlap costs a second reading of what did not change, and no writes.
pub fn overlap(progress: &OaiProgress) -> SignedDuration {
    let latest = progress.late.iter().copied().max().unwrap_or(0);
    SignedDuration::from_secs(2 * i64::from(latest)).clamp(OVERLAP, LONGEST)
}

/// Where the next list of changes begins; none before a list was read to its end.
pub fn next_from(progress: &OaiProgress) -> Option<Timestamp> {
    let cursor = progress.cursor?;
    Some(cursor.checked_sub(overlap(progress)).unwrap_or(cursor))
}

impl List<'_> {
    /// Notes the datestamp of a record whose bytes were not known. One of the overlap came late.
    pub fn see_new(&mut self, datestamp: Timestamp) {
        let (Some(cursor), Some(from)) = (self.progress.cursor, next_from(self.progress)) else { return };
        let Some(reading) = &mut self.progress.reading else { return };
        // Within its unit, a datestamp may be earlier than the change.
        let cursor = floor(cursor, self.span.by_seconds);
        if reading.kind != OaiReadingKind::Changes || datestamp >= cursor || datestamp < from {
            return;
        }
        let late = u32::try_from(cursor.duration_since(datestamp).as_secs()).unwrap_or(u32::MAX);
        reading.late = reading.late.max(late);
    }

    /// Notes the newest datestamp of a list that was read. Returns whether the list is old: an earlier one of the same
    /// time had a newer record, as where a cache answers. Nothing follows from what such a list omits, and its changes
    /// are asked for again. The same is believed the next time, since that record may be gone.
    pub fn is_old(&mut self, newest: Option<Timestamp>) -> bool {
        let by_seconds = self.span.by_seconds;
        let known = self.progress.newest;
        let from = next_from(self.progress);
        let Some(reading) = self.progress.reading.as_mut().filter(|reading| !reading.doubtful) else {
            return false;
        };
        let has_all = reading.kind != OaiReadingKind::Changes;
        let floored = |time: Option<Timestamp>| time.map(|time| floor(time, by_seconds));
        let is_asked_for = has_all || from.zip(known).is_some_and(|(from, known)| from <= known);
        let is_old = is_asked_for && floored(newest) < floored(known);
        (reading.old, reading.doubtful) = (is_old, is_old);
        // A datestamp of the future says nothing about the age of an answer.
        let newest = newest.filter(|newest| *newest <= self.clock);
        self.progress.newest = if is_old { newest } else { known.max(newest) };
        is_old
    }

    /// Keeps how late the records of a list of changes were.
    pub(super) fn keep_lateness(progress: &mut OaiProgress, late: u32) {
        let kept = progress.late.len().min(LISTS - 1);
        let before = progress.late.split_off(progress.late.len() - kept);
        progress.late = before.into_iter().chain(iter::once(late)).collect();
        if progress.late.iter().all(|late| *late == 0) {
            progress.late.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::SelectionId;

    use super::*;
    use crate::oai::Span;

    const HOUR: i64 = 3_600;

    /// Our clock, in hours: later than all lists here.
    const NOW: i64 = 24 * 40;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 / 86_400 * 86_400 + hours * HOUR).unwrap()
    }

    fn span(by_seconds: bool) -> Span {
        Span { earliest: None, now: at(NOW), by_seconds }
    }

    /// A list that is being read, without windows.
    fn begun(progress: &mut OaiProgress, kind: OaiReadingKind, by_seconds: bool) -> List<'_> {
        let mut list = List::of(progress, span(by_seconds));
        list.begin(kind, SelectionId::of("all"));
        let reading = list.progress.reading.as_mut().unwrap();
        reading.waiting.clear();
        reading.started = Some(at(5));
        list
    }

    /// Reads a list that began at an hour, with new records of these hours. Returns how late one was.
    fn read(progress: &mut OaiProgress, started: i64, records: &[i64], by_seconds: bool) -> u32 {
        let mut list = begun(progress, OaiReadingKind::Changes, by_seconds);
        records.iter().for_each(|hour| list.see_new(at(*hour)));
        list.progress.reading.as_mut().unwrap().started = Some(at(started));
        list.end().unwrap().late
    }

    #[test]
    fn lists_overlap_by_twice_the_lateness_and_by_a_day_at_least() {
        let mut progress = OaiProgress { cursor: Some(at(0)), ..OaiProgress::default() };
        assert_eq!((overlap(&progress), next_from(&progress)), (OVERLAP, Some(at(-24))));
        assert_eq!(read(&mut progress, 24, &[-20, 3, -30], true), 20 * 3_600, "one of before is of a gap");
        assert_eq!(next_from(&progress), Some(at(24 - 40)));
        for run in 2..=30 {
            assert_eq!(read(&mut progress, 24 * run, &[24 * run - 1], true), 0);
        }
        assert_eq!(overlap(&progress), SignedDuration::from_hours(40));
        read(&mut progress, 24 * 31, &[], true);
        assert_eq!((overlap(&progress), progress.late.len()), (OVERLAP, 0), "thirty lists later");
        progress.late = vec![u32::MAX];
        assert_eq!(overlap(&progress), LONGEST);
    }

    #[test]
    fn a_record_of_the_cursors_day_is_not_late_where_only_days_are_known() {
        let mut progress = OaiProgress { cursor: Some(at(15)), ..OaiProgress::default() };
        assert_eq!(read(&mut progress, 24, &[0], false), 0);
        progress.cursor = Some(at(15));
        assert_eq!(read(&mut progress, 24, &[0], true), 15 * 3_600);
    }

    #[test]
    fn a_list_without_the_newest_record_is_old_once() {
        let mut progress =
            OaiProgress { cursor: Some(at(0)), newest: Some(at(-2)), ..OaiProgress::default() };
        for (newest, is_old) in [(Some(at(-5)), true), (Some(at(-5)), false), (None, true), (None, false)] {
            for kind in [OaiReadingKind::Identifiers, OaiReadingKind::Records] {
                let mut tried = progress.clone();
                let mut list = begun(&mut tried, kind, true);
                assert_eq!(list.is_old(newest), is_old, "{newest:?}");
                assert_eq!(list.end().unwrap().doubtful, is_old);
            }
            let mut list = begun(&mut progress, OaiReadingKind::Changes, true);
            assert_eq!(list.is_old(newest), is_old, "{newest:?}");
            list.end();
        }
    }

    #[test]
    fn changes_of_an_old_answer_are_asked_for_again_and_older_records_prove_nothing() {
        let mut progress =
            OaiProgress { cursor: Some(at(0)), newest: Some(at(-2)), ..OaiProgress::default() };
        let mut list = begun(&mut progress, OaiReadingKind::Changes, true);
        assert!(list.is_old(Some(at(-3))));
        list.end();
        assert_eq!(progress.cursor, Some(at(0)), "the cursor stays");

        // The newest record is older than the list begins.
        progress = OaiProgress { cursor: Some(at(0)), newest: Some(at(-25)), ..OaiProgress::default() };
        let mut list = begun(&mut progress, OaiReadingKind::Changes, true);
        assert!(!list.is_old(None));
        list.end();
        assert_eq!((progress.cursor, progress.newest), (Some(at(5)), Some(at(-25))));
    }

    #[test]
    fn a_datestamp_of_the_future_makes_no_answer_old() {
        let mut progress = OaiProgress::default();
        let mut list = begun(&mut progress, OaiReadingKind::Records, true);
        assert!(!list.is_old(Some(at(NOW + 2))));
        assert_eq!(progress.newest, None);
    }

    #[test]
    fn a_clock_that_is_ahead_moves_the_cursor_no_further_than_ours() {
        let mut progress = OaiProgress { cursor: Some(at(0)), ..OaiProgress::default() };
        read(&mut progress, NOW + 1_000, &[], true);
        assert_eq!(progress.cursor, Some(at(NOW)));
    }
}
