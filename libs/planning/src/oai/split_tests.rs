use jiff::Timestamp;
use model::{OaiProgress, OaiReadingKind, OaiWindow, SelectionId};
use proptest::prelude::*;

use super::bounds_tests::Repository;
use super::*;

const START: i64 = 1_700_006_400;
pub(super) const DAY: i64 = 86_400;
pub(super) const DAYS: i64 = 200;
const PAGE: usize = 4;

pub(super) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(START * 1_000 + milliseconds).unwrap()
}

pub(super) fn span(by_seconds: bool) -> Span {
    Span { earliest: Some(at(0)), now: at(DAYS * DAY * 1_000), by_seconds }
}

fn begun(repository: &Repository) -> OaiProgress {
    let mut progress = OaiProgress::default();
    let mut list = List::of(&mut progress, span(repository.by_seconds));
    list.begin(OaiReadingKind::Records, SelectionId::of("all"));
    let records = repository.list(&OaiWindow::default()).len();
    let read = PageRead {
        records: PAGE.min(records) as u64,
        token: Some("0:4".to_owned()),
        complete: Some(records as u64),
        response_date: Some(at(DAYS * DAY * 1_000)),
        ..PageRead::default()
    };
    list.page(&OaiWindow::default(), read, at(0));
    progress
}

/// The windows that a repository's list is split into.
fn split(repository: &Repository, most_open: u32) -> Option<Vec<OaiWindow>> {
    let mut progress = begun(repository);
    let mut list = List::of(&mut progress, span(repository.by_seconds));
    let mut split = list.split(&OaiWindow::default(), most_open)?;
    let mut measured = 0;
    while let Some(halves) = split.halve() {
        measured += 1;
        assert!(measured < 100, "it ends");
        let sizes = [0, 1].map(|n| repository.list(&halves[n]).len() as u64);
        split.measured(halves, Some(sizes));
    }
    split.windows()
}

fn evenly(records: i64) -> Vec<i64> {
    (0..records).map(|n| n * (DAYS * DAY * 1_000 / records)).collect()
}

#[test]
fn a_list_of_many_pages_is_split_into_windows_of_about_the_same_size() {
    for by_seconds in [false, true] {
        let repository = Repository::plain(evenly(4_000), by_seconds);
        let windows = split(&repository, 3).unwrap();
        assert!((6..=12).contains(&windows.len()), "{}", windows.len());
        assert_eq!((windows[0].from, windows.last().unwrap().until), (None, None), "open at both ends");
        let largest = windows.iter().map(|window| repository.list(window).len()).max().unwrap();
        assert!(largest <= 4_000 / 3, "{largest}");
    }
}

#[test]
fn old_records_that_came_late_are_split_where_they_are() {
    // A repository of twenty years in which most records are of ten days.
    let mut records = evenly(200);
    records.extend((0..3_800).map(|n| (150 * DAY + n * DAY / 380) * 1_000));
    let repository = Repository::plain(records, true);
    let windows = split(&repository, 3).unwrap();
    let largest = windows.iter().map(|window| repository.list(window).len()).max().unwrap();
    assert!(largest <= 4_000 / 2, "{largest}");
}

#[test]
fn a_list_that_no_date_divides_or_that_hides_records_from_dates_stays_one() {
    let one_day = Repository::plain(vec![70 * DAY * 1_000; 4_000], false);
    assert_eq!(split(&one_day, 3), None, "all are of one day");
    let ignores = Repository { ignores_dates: true, ..Repository::plain(evenly(4_000), true) };
    assert_eq!(split(&ignores, 3), None, "dates are ignored");
    assert!(split(&Repository::plain(evenly(4_000), true), 1).is_none(), "one request at a time");
    let small = Repository::plain(evenly(399), true);
    assert!(split(&small, 3).is_none(), "fewer pages than pay");
}

#[test]
fn sizes_that_are_less_than_the_whole_or_are_not_told_are_not_believed() {
    let repository = Repository::plain(evenly(4_000), true);
    for told in [None, Some([1_000, 2_999])] {
        let mut progress = begun(&repository);
        let mut split = List::of(&mut progress, span(true)).split(&OaiWindow::default(), 3).unwrap();
        let halves = split.halve().unwrap();
        split.measured(halves, told);
        assert_eq!((split.halve(), split.windows()), (None, None), "{told:?}");
    }
}

#[test]
fn sizes_beyond_measure_do_no_harm() {
    let repository = Repository::plain(evenly(4_000), true);
    let mut progress = begun(&repository);
    let window = OaiWindow::default();
    let page = progress.reading.as_mut().unwrap().waiting[0].page.as_mut().unwrap();
    page.complete = Some(u64::MAX);
    let mut split = List::of(&mut progress, span(true)).split(&window, 3).unwrap();
    while let Some(halves) = split.halve() {
        split.measured(halves, Some([u64::MAX, u64::MAX - 1]));
    }
    assert_eq!(split.windows(), None);
}

#[test]
fn a_server_that_bears_no_more_is_asked_for_fewer_windows() {
    let repository = Repository::plain(evenly(4_000), true);
    let windows = split(&repository, 4);
    let mut progress = begun(&repository);
    let mut list = List::of(&mut progress, span(true));
    assert_eq!((list.most_open(), list.ease()), (1, None), "one stays one");
    list.replace(&OaiWindow::default(), windows, 4);
    assert_eq!((list.most_open(), list.ease(), list.ease(), list.ease()), (4, Some(2), Some(1), None));
    assert!(list.split(&OaiWindow::default(), 4).is_none(), "it is decided once");
}

#[test]
fn the_page_that_an_earlier_version_was_at_goes_on() {
    let repository = Repository::plain(evenly(4_000), true);
    let mut progress = begun(&repository);
    let reading = progress.reading.as_mut().unwrap();
    reading.page = reading.waiting[0].page.take();
    let next = List::of(&mut progress, span(true)).next(&[]);
    assert_eq!(next, Next::Page { window: OaiWindow::default(), token: Some("0:4".to_owned()) });
}

#[test]
fn a_window_that_was_begun_goes_on_before_another_begins_and_the_last_one_is_read_last() {
    let repository = Repository::plain(evenly(4_000), true);
    let windows = split(&repository, 2).unwrap();
    let mut progress = begun(&repository);
    let mut list = List::of(&mut progress, span(true));
    list.replace(&OaiWindow::default(), Some(windows.clone()), 2);
    let mut open = Vec::new();
    for _ in 0..2 {
        let Next::Page { window, token: None } = list.next(&open) else { panic!("one more is open") };
        open.push(window);
    }
    assert_eq!(list.next(&open), Next::Wait);
    let read = PageRead { records: 4, token: Some("t".to_owned()), ..PageRead::default() };
    list.page(&open[1], read, at(0));
    let second = open.pop().unwrap();
    assert_eq!(list.next(&open), Next::Page { window: second, token: Some("t".to_owned()) });
    for window in &windows {
        assert!(matches!(list.next(&[]), Next::Page { window, .. } if !window.last));
        list.page(window, PageRead::default(), at(0));
    }
    let Next::Page { window, .. } = list.next(&[]) else { panic!("one is left") };
    assert_eq!((window.from, window.until, window.last), (Some(at(DAYS * DAY * 1_000 - 1_000)), None, true));
}

/// A record during a harvest: its datestamp, and its version.
#[derive(Debug, Clone, Copy)]
struct Changing {
    datestamp: i64,
    version: u32,
}

/// What happens next in a harvest.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// The page of an open window comes.
    Comes(usize),
    /// The token of a window dies, or its server fails.
    Fails(usize, PageFailure),
    /// A record changes.
    Changes(usize),
    /// The process dies; the next one knows the progress.
    Dies,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        20 => (0..8_usize).prop_map(Happening::Comes),
        1 => (0..8_usize, any::<bool>()).prop_map(|(n, is_token)| {
            Happening::Fails(n, if is_token { PageFailure::Token } else { PageFailure::Server })
        }),
        4 => (0..800_usize).prop_map(Happening::Changes),
        1 => Just(Happening::Dies),
    ]
}

/// Harvests a list whose pages are a snapshot of when their window began, as lists on a server are. Returns the newest
/// version of each record that came.
fn harvest(
    records: &mut [Changing],
    progress: &mut OaiProgress,
    by_seconds: bool,
    happenings: &[Happening],
) -> Vec<Option<u32>> {
    let mut came = vec![None; records.len()];
    let mut now = DAYS * DAY * 1_000;
    let mut lists: Vec<(OaiWindow, Vec<(usize, u32)>)> = Vec::new();
    let mut open: Vec<(OaiWindow, Option<String>)> = Vec::new();
    let mut happenings = happenings.iter();
    for step in 0.. {
        assert!(step < 100_000, "it ends");
        let mut list = List::of(progress, span(by_seconds));
        let windows: Vec<OaiWindow> = open.iter().map(|(window, _)| window.clone()).collect();
        match list.next(&windows) {
            Next::End => break,
            Next::Page { window, token } => {
                open.push((window, token));
                continue;
            }
            Next::OneByOne(window) => {
                list.one_by_one(&window, 0, None);
                let plain = plain(records, by_seconds);
                plain.list(&window).into_iter().for_each(|n| came[n] = came[n].max(Some(records[n].version)));
                continue;
            }
            Next::Wait => {}
        }
        match happenings.next().copied().unwrap_or(Happening::Comes(step)) {
            Happening::Comes(n) => {
                let (window, token) = open.remove(n % open.len());
                let from: usize = token.as_deref().and_then(|token| token.parse().ok()).unwrap_or(0);
                if token.is_none() {
                    let plain = plain(records, by_seconds);
                    let snapshot = plain.list(&window).into_iter().map(|n| (n, records[n].version)).collect();
                    lists.retain(|(of, _)| !of.is(&window));
                    lists.push((window.clone(), snapshot));
                }
                let (_, snapshot) = lists.iter().find(|(of, _)| of.is(&window)).unwrap();
                let page: Vec<_> = snapshot.iter().skip(from).take(PAGE).copied().collect();
                let end = from + page.len();
                page.iter().for_each(|(n, version)| came[*n] = came[*n].max(Some(*version)));
                let read = PageRead {
                    records: page.len() as u64,
                    token: (end < snapshot.len()).then(|| end.to_string()),
                    complete: Some(snapshot.len() as u64),
                    response_date: Some(at(now)),
                    ..PageRead::default()
                };
                list.page(&window, read, at(now));
            }
            Happening::Fails(n, failure) => {
                let (window, _) = open.remove(n % open.len());
                list.failed(&window, failure, "it fails", at(now));
            }
            Happening::Changes(n) => {
                now += 1_500;
                let n = n % records.len();
                records[n] = Changing { datestamp: now, version: records[n].version + 1 };
            }
            Happening::Dies => {
                open.clear();
                let text = serde_json::to_string(&*progress).unwrap();
                *progress = serde_json::from_str(&text).unwrap();
            }
        }
    }
    came
}

fn plain(records: &[Changing], by_seconds: bool) -> Repository {
    Repository::plain(records.iter().map(|record| record.datestamp).collect(), by_seconds)
}

proptest! {
    #[test]
    fn windows_have_every_record_however_the_repository_reads_their_bounds(
        records in prop::collection::vec(0..DAYS * DAY * 1_000, 400..900),
        crowded in 0..DAYS,
        by_seconds: bool,
        is_exact: bool,
        leaves_out_from: bool,
        leaves_out_until: bool,
    ) {
        let mut records = records;
        // Many records of one hour.
        let hour = crowded * DAY * 1_000;
        records.extend((0..300).map(|n| hour + n * 12_345 % 3_600_000));
        let repository =
            Repository { is_exact, leaves_out_from, leaves_out_until, ..Repository::plain(records, by_seconds) };
        if let Some(windows) = split(&repository, 3) {
            for record in &repository.records {
                prop_assert!(windows.iter().any(|window| repository.has(window, *record)), "{record}");
            }
        }
    }

    #[test]
    fn windows_that_are_read_at_the_same_time_lose_nothing_whatever_fails_changes_and_dies(
        by_seconds: bool,
        happenings in prop::collection::vec(happening(), 0..600),
    ) {
        let mut records: Vec<Changing> =
            evenly(800).into_iter().map(|datestamp| Changing { datestamp, version: 0 }).collect();
        let repository = plain(&records, by_seconds);
        let windows = split(&repository, 3);
        prop_assert!(windows.is_some());
        let mut progress = begun(&repository);
        List::of(&mut progress, span(by_seconds)).replace(&OaiWindow::default(), windows, 3);
        let came = harvest(&mut records, &mut progress, by_seconds, &happenings);
        List::of(&mut progress, span(by_seconds)).end();
        let now = plain(&records, by_seconds);
        for (n, record) in records.iter().enumerate() {
            let is_in_gap = progress.unread.iter().any(|gap| {
                let window = OaiWindow { from: gap.from, until: gap.until, ..OaiWindow::default() };
                now.has(&window, record.datestamp)
            });
            let is_of_next_list = progress.cursor.is_some_and(|cursor| at(record.datestamp) >= cursor);
            prop_assert!(
                came[n] == Some(record.version) || is_in_gap || is_of_next_list,
                "record {n} {record:?} came as {:?}: {progress:?}", came[n]
            );
            // A record that never came would count as absent.
            prop_assert!(
                came[n].is_some() || !progress.unread.is_empty(),
                "record {n} {record:?} never came: {progress:?}"
            );
        }
    }
}
