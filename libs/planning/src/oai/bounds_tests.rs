//! Repositories that read `from` and `until` in their own way, while requests fail.

use jiff::Timestamp;
use model::{OaiProgress, OaiReadingKind, OaiWindow, SelectionId};
use proptest::prelude::*;

use super::split_tests::{DAY, DAYS, at, span};
use super::*;

/// A repository that reads bounds in its own way.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The datestamp of each record, in milliseconds.
    pub(super) records: Vec<i64>,
    pub(super) by_seconds: bool,
    /// Whether it compares datestamps as exactly as it has them.
    pub(super) is_exact: bool,
    pub(super) leaves_out_from: bool,
    pub(super) leaves_out_until: bool,
    pub(super) ignores_dates: bool,
}

impl Repository {
    pub(super) fn plain(records: Vec<i64>, by_seconds: bool) -> Self {
        let (is_exact, leaves_out_from, leaves_out_until, ignores_dates) = (false, false, false, false);
        Self { records, by_seconds, is_exact, leaves_out_from, leaves_out_until, ignores_dates }
    }

    pub(super) fn has(&self, window: &OaiWindow, record: i64) -> bool {
        let unit = if self.is_exact { 1 } else { self.unit() };
        let units = |time: Timestamp| (time.as_millisecond() - at(0).as_millisecond()).div_euclid(unit);
        let datestamp = record.div_euclid(unit);
        self.ignores_dates
            || window.from.is_none_or(|from| units(from) + i64::from(self.leaves_out_from) <= datestamp)
                && window
                    .until
                    .is_none_or(|until| datestamp + i64::from(self.leaves_out_until) <= units(until))
    }

    pub(super) fn list(&self, window: &OaiWindow) -> Vec<usize> {
        (0..self.records.len()).filter(|record| self.has(window, self.records[*record])).collect()
    }

    /// The unit of its granularity, in milliseconds.
    fn unit(&self) -> i64 {
        1_000 * if self.by_seconds { 1 } else { DAY }
    }

    /// The window of one unit that a record is of.
    fn unit_of(&self, record: i64) -> OaiWindow {
        let time = Some(at(record.div_euclid(self.unit()) * self.unit()));
        OaiWindow { from: time, until: time, ..OaiWindow::default() }
    }
}

/// Reads a whole list in which each page with a bad record fails. A record that came is asked for by its datestamp, as
/// soon as it helps to know how bounds are read. Returns which records came.
fn harvest(repository: &Repository, bad: &[usize], progress: &mut OaiProgress) -> Vec<bool> {
    let mut came = vec![false; repository.records.len()];
    let span = span(repository.by_seconds);
    List::of(progress, span).begin(OaiReadingKind::Records, SelectionId::of("all"));
    for step in 0.. {
        assert!(step < 100_000, "it ends");
        let mut list = List::of(progress, span);
        match list.next(&[]) {
            Next::Page { window, .. } => {
                let records = repository.list(&window);
                if !records.iter().any(|record| bad.contains(record)) {
                    records.iter().for_each(|record| came[*record] = true);
                    list.page(
                        &window,
                        PageRead { records: records.len() as u64, ..PageRead::default() },
                        at(0),
                    );
                    continue;
                }
                if list.asks_for_bounds(&window)
                    && let Some(sample) = came.iter().rposition(|came| *came)
                {
                    let unit = repository.unit_of(repository.records[sample]);
                    progress.inclusive_bounds = repository.list(&unit).contains(&sample);
                }
                List::of(progress, span).failed(&window, PageFailure::Server, "it fails", at(0));
            }
            Next::OneByOne(window) => {
                let records = repository.list(&window);
                records.iter().for_each(|record| came[*record] = true);
                list.one_by_one(&window, records.len() as u64, None);
            }
            Next::Wait | Next::End => break,
        }
    }
    came
}

proptest! {
    #[test]
    fn no_record_is_lost_between_two_halves_however_the_repository_reads_their_bounds(
        records in prop::collection::vec(0..DAYS * DAY, 1..300),
        bad in prop::collection::vec(0..300_usize, 1..5),
        by_seconds: bool,
        is_exact: bool,
        leaves_out_from: bool,
        leaves_out_until: bool,
    ) {
        // An exact repository whose datestamps have no fractions is no exact one.
        let records: Vec<i64> = records.iter().map(|second| second * 1_000 + i64::from(is_exact) * 7).collect();
        let bad: Vec<usize> = bad.iter().map(|bad| bad % records.len()).collect();
        let repository =
            Repository { is_exact, leaves_out_from, leaves_out_until, ..Repository::plain(records, by_seconds) };
        let mut progress = OaiProgress::default();
        let came = harvest(&repository, &bad, &mut progress);
        let lost: Vec<i64> =
            came.iter().zip(&repository.records).filter(|(came, _)| !**came).map(|(_, at)| *at).collect();
        prop_assert!(lost.is_empty(), "{lost:?}");
        prop_assert!(progress.unread.is_empty());
        let hides = is_exact || leaves_out_from || leaves_out_until;
        prop_assert!(!hides || !progress.inclusive_bounds, "no such repository is believed");
    }
}

#[test]
fn a_repository_with_inclusive_bounds_is_believed_after_one_proof() {
    let records: Vec<i64> = (0..200).map(|n| n * DAY * 1_000).collect();
    let mut progress = OaiProgress::default();
    let repository = Repository::plain(records, false);
    assert!(harvest(&repository, &[150], &mut progress).iter().all(|came| *came));
    assert!(progress.inclusive_bounds);
    List::of(&mut progress, span(false)).end();
    // Then its failing day is a window of its own.
    let mut list = List::of(&mut progress, span(false));
    list.begin(OaiReadingKind::Records, SelectionId::of("all"));
    let mut alone = None;
    while let Next::Page { window, .. } | Next::OneByOne(window) = list.next(&[]) {
        let records = repository.list(&window);
        if records.contains(&150) && !window.one_by_one {
            list.failed(&window, PageFailure::Server, "it fails", at(0));
        } else if window.one_by_one {
            alone = Some(records);
            list.one_by_one(&window, 1, None);
        } else {
            list.page(&window, PageRead::default(), at(0));
        }
    }
    assert_eq!(alone, Some(vec![150]));
}
