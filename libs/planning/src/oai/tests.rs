use jiff::{SignedDuration, Timestamp};
use model::{OaiProgress, OaiReadingKind, OaiWindow, SelectionId};
use proptest::prelude::*;

use super::*;

fn day(n: i64) -> Timestamp {
    Timestamp::from_second(1_700_006_400 + n * 86_400).unwrap()
}

const DAYS: i64 = 100;

fn span() -> Span {
    Span { earliest: Some(day(0)), now: day(DAYS), by_seconds: false }
}

fn selection() -> SelectionId {
    SelectionId::of("all")
}

fn begun(kind: OaiReadingKind) -> OaiProgress {
    let mut progress = OaiProgress::default();
    assert!(List::of(&mut progress, span()).begin(kind, selection()));
    progress
}

fn read(records: u64, token: Option<&str>, complete: Option<u64>) -> PageRead {
    let token = token.map(str::to_owned);
    PageRead { records, token, complete, response_date: Some(day(DAYS)), ..PageRead::default() }
}

/// The window that is asked for next, if none is open.
fn next_window(list: &List<'_>) -> OaiWindow {
    match list.next(&[]) {
        Next::Page { window, .. } | Next::OneByOne(window) => window,
        Next::Wait | Next::End => panic!("nothing is asked for"),
    }
}

fn page(list: &mut List<'_>, read: PageRead, now: Timestamp) -> PageEnd {
    let window = next_window(list);
    list.page(&window, read, now)
}

fn failed(list: &mut List<'_>, failure: PageFailure) -> PageEnd {
    let window = next_window(list);
    list.failed(&window, failure, "it fails", day(DAYS))
}

fn give_up(list: &mut List<'_>) -> PageEnd {
    let window = next_window(list);
    list.give_up(&window, day(0), "it fails".to_owned())
}

#[test]
fn a_list_of_pages_is_read_by_its_tokens_and_moves_the_cursor_to_its_first_response_date() {
    let mut progress = begun(OaiReadingKind::Records);
    let mut list = List::of(&mut progress, span());
    assert_eq!(list.next(&[]), Next::Page { window: OaiWindow::default(), token: None }, "no from, no until");
    assert_eq!(page(&mut list, read(100, Some("t1"), Some(150)), day(DAYS)), PageEnd::GoesOn);
    assert_eq!(list.next(&[]), Next::Page { window: OaiWindow::default(), token: Some("t1".to_owned()) });
    let last = PageRead { response_date: Some(day(DAYS + 1)), ..read(50, None, None) };
    assert_eq!(page(&mut list, last, day(DAYS)), PageEnd::Window { miscounted: None });
    assert_eq!(list.next(&[]), Next::End);
    assert_eq!(list.end().unwrap().records, 150);
    assert_eq!((progress.cursor, progress.swept_at), (Some(day(DAYS)), Some(day(DAYS))));
}

#[test]
fn the_next_list_begins_a_day_before_the_cursor_and_has_no_end() {
    let mut progress = OaiProgress { cursor: Some(day(7)), ..OaiProgress::default() };
    let mut list = List::of(&mut progress, span());
    assert!(list.begin(OaiReadingKind::Changes, selection()));
    assert!(!list.begin(OaiReadingKind::Changes, selection()), "it goes on");
    let window = OaiWindow { from: Some(day(6)), ..OaiWindow::default() };
    assert_eq!(list.next(&[]), Next::Page { window, token: None });
}

#[test]
fn a_short_list_is_read_again_and_believed_if_the_next_run_finds_it_as_short() {
    let mut progress = begun(OaiReadingKind::Records);
    let mut list = List::of(&mut progress, span());
    assert_eq!(page(&mut list, read(94, None, Some(100)), day(0)), PageEnd::Anew { short: Some((94, 100)) });
    let PageEnd::Gap(gap) = page(&mut list, read(94, None, Some(100)), day(0)) else { panic!("no gap") };
    assert!(gap.why.contains("94") && gap.why.contains("100"), "{gap:?}");
    list.end();
    let mut list = List::of(&mut progress, span());
    list.begin(OaiReadingKind::Changes, selection());
    assert_eq!(
        page(&mut list, read(94, None, Some(100)), day(0)),
        PageEnd::Window { miscounted: Some((94, 100)) }
    );
    // From now on, its numbers are only counted.
    assert_eq!(page(&mut list, read(3, None, Some(9)), day(0)), PageEnd::Window { miscounted: Some((3, 9)) });
    list.end();
    assert!(progress.unread.is_empty() && progress.miscounts);
}

#[test]
fn a_list_of_another_length_each_time_is_a_gap() {
    let mut progress = begun(OaiReadingKind::Records);
    let mut list = List::of(&mut progress, span());
    for delivered in [94, 95, 96] {
        assert!(matches!(page(&mut list, read(delivered, None, Some(100)), day(0)), PageEnd::Anew { .. }));
    }
    assert!(matches!(page(&mut list, read(97, None, Some(100)), day(0)), PageEnd::Gap(_)));
    assert_eq!(progress.unread.len(), 1);
}

#[test]
fn a_window_whose_token_dies_is_begun_anew_three_times_and_then_halved() {
    let mut progress = begun(OaiReadingKind::Records);
    let mut list = List::of(&mut progress, span());
    for _ in 0..RESTARTS {
        page(&mut list, read(10, Some("t"), None), day(0));
        assert_eq!(failed(&mut list, PageFailure::Token), PageEnd::Anew { short: None });
        assert!(matches!(list.next(&[]), Next::Page { token: None, .. }));
    }
    assert_eq!(failed(&mut list, PageFailure::Token), PageEnd::Halved);
    let Next::Page { window, .. } = list.next(&[]) else { panic!() };
    assert_eq!((window.from, window.until), (None, Some(day(51))), "halves share two days");
}

#[test]
fn a_token_behind_the_end_of_a_list_ends_it_if_all_that_was_promised_came() {
    for (complete, ends) in [(Some(10), true), (Some(11), false), (Some(9), false), (None, false)] {
        let mut progress = begun(OaiReadingKind::Records);
        let mut list = List::of(&mut progress, span());
        page(&mut list, read(10, Some("t"), complete), day(0));
        let end = failed(&mut list, PageFailure::Token);
        assert_eq!(end == PageEnd::Window { miscounted: None }, ends, "{complete:?} {end:?}");
    }
}

#[test]
fn a_list_of_offsets_that_changed_meanwhile_is_compared_soon() {
    for (is_offset, newest, soon) in
        [(true, DAYS, true), (true, DAYS - 1, false), (false, DAYS, false), (false, DAYS - 1, false)]
    {
        let mut progress = begun(OaiReadingKind::Records);
        let mut list = List::of(&mut progress, span());
        page(&mut list, PageRead { is_offset, ..read(10, Some("10"), Some(20)) }, day(0));
        page(&mut list, PageRead { newest: Some(day(newest)), ..read(10, None, Some(20)) }, day(0));
        list.end();
        assert_eq!(progress.compare_soon, soon, "{is_offset} {newest}");
    }
}

#[test]
fn empty_pages_without_end_make_a_gap() {
    let mut progress = begun(OaiReadingKind::Records);
    let mut list = List::of(&mut progress, span());
    for _ in 1..EMPTY_PAGES {
        assert_eq!(page(&mut list, read(0, Some("t"), None), day(0)), PageEnd::GoesOn);
    }
    assert!(matches!(page(&mut list, read(0, Some("t"), None), day(0)), PageEnd::Gap(_)));
    assert_eq!(list.next(&[]), Next::End);
}

#[test]
fn a_gap_is_tried_again_with_the_next_list_and_closes() {
    let mut progress = begun(OaiReadingKind::Records);
    let mut list = List::of(&mut progress, span());
    page(&mut list, read(1, Some("t"), None), day(0));
    assert!(matches!(give_up(&mut list), PageEnd::Gap(_)));
    list.end();
    assert_eq!(progress.unread.len(), 1);
    assert_eq!(progress.unread[0].until, Some(day(DAYS)), "it is dated");
    let mut list = List::of(&mut progress, span());
    list.begin(OaiReadingKind::Changes, selection());
    let Next::Page { window, .. } = list.next(&[]) else { panic!() };
    assert_eq!(window.until, Some(day(DAYS)));
    page(&mut list, read(1, None, None), day(0));
    assert!(progress.unread.is_empty());
}

#[test]
fn a_time_begins_its_second_and_its_day() {
    let time = day(0) + jiff::SignedDuration::from_secs(3_661);
    assert_eq!(floor(time, false), day(0));
    assert_eq!(floor(time, true), time);
}

/// Reads a list of a repository in which lists that touch a bad day fail, and records of a hopeless day even one by
/// one. Returns the days whose records came, and the requests.
fn harvest(progress: &mut OaiProgress, bad: &[i64], hopeless: &[i64]) -> (Vec<bool>, u32) {
    let mut came = vec![false; DAYS as usize + 1];
    let mut requests = 0;
    loop {
        requests += 1;
        assert!(requests < 10_000, "it ends");
        let mut list = List::of(progress, span());
        let next = list.next(&[]);
        let (Next::Page { window, .. } | Next::OneByOne(window)) = &next else { return (came, requests) };
        let days: Vec<i64> = (0..=DAYS)
            .filter(|n| window.from.is_none_or(|from| day(*n) >= from))
            .filter(|n| window.until.is_none_or(|until| day(*n) <= until))
            .collect();
        let fails = |days: &[i64]| days.iter().any(|day| bad.contains(day) || hopeless.contains(day));
        if let Next::OneByOne(_) = next {
            if days.iter().any(|day| hopeless.contains(day)) {
                list.give_up(window, day(DAYS), "hopeless".to_owned());
                continue;
            }
            list.one_by_one(window, days.len() as u64, Some(day(DAYS)));
        } else if fails(&days) {
            failed(&mut list, PageFailure::Server);
            continue;
        } else {
            page(&mut list, read(days.len() as u64, None, Some(days.len() as u64)), day(DAYS));
        }
        days.iter().for_each(|day| came[*day as usize] = true);
    }
}

/// The days of a gap.
fn days_of(gap: &model::OaiGap) -> impl Iterator<Item = i64> + '_ {
    (0..=DAYS).filter(|n| {
        gap.from.is_none_or(|from| day(*n) >= from) && gap.until.is_none_or(|until| day(*n) <= until)
    })
}

proptest! {
    #[test]
    fn whatever_fails_each_record_comes_or_lies_in_a_gap_and_gaps_close_when_nothing_fails(
        bad in prop::collection::vec(0..=DAYS, 0..6),
        hopeless in prop::collection::vec(0..=DAYS, 0..4),
        inclusive_bounds: bool,
    ) {
        let mut progress = OaiProgress { inclusive_bounds, ..begun(OaiReadingKind::Records) };
        let (came, _) = harvest(&mut progress, &bad, &hopeless);
        List::of(&mut progress, span()).end();
        for n in 0..=DAYS {
            let in_gap = progress.unread.iter().any(|gap| days_of(gap).any(|day| day == n));
            // Gaps that overlap with what was read have days that came.
            prop_assert!(came[n as usize] || in_gap, "day {}", n);
            prop_assert!(!inclusive_bounds || came[n as usize] != in_gap, "day {}", n);
        }
        for gap in &progress.unread {
            prop_assert!(days_of(gap).any(|day| hopeless.contains(&day)), "{:?}", gap);
            prop_assert!(days_of(gap).count() <= if inclusive_bounds { 1 } else { 3 }, "{:?}", gap);
        }
        List::of(&mut progress, span()).begin(OaiReadingKind::Changes, selection());
        let gaps: Vec<_> = progress.unread.clone();
        let (came, _) = harvest(&mut progress, &[], &[]);
        List::of(&mut progress, span()).end();
        prop_assert!(progress.unread.is_empty());
        for n in gaps.iter().flat_map(days_of) {
            prop_assert!(came[n as usize], "day {}", n);
        }
    }

    #[test]
    fn halves_of_inclusive_bounds_are_the_whole_and_do_not_overlap(
        from in 0..DAYS,
        days in 1..DAYS,
        by_seconds: bool,
    ) {
        let span = Span { by_seconds, ..span() };
        let whole = OaiWindow { from: Some(day(from)), until: Some(day(from + days)), ..OaiWindow::default() };
        let [older, newer] = halves(&whole, span, true).unwrap();
        prop_assert_eq!((older.from, newer.until), (whole.from, whole.until));
        let unit = if by_seconds { 1 } else { 86_400 };
        prop_assert_eq!(older.until.unwrap().as_second() + unit, newer.from.unwrap().as_second());
        prop_assert!(older.from <= older.until && newer.from <= newer.until);
        let one = OaiWindow { until: whole.from, ..whole };
        prop_assert!(halves(&one, span, true).is_none());
    }

    #[test]
    fn halves_of_other_bounds_share_two_units_and_are_smaller(from in 0..DAYS, days in 3..DAYS) {
        let whole = OaiWindow { from: Some(day(from)), until: Some(day(from + days)), ..OaiWindow::default() };
        let [older, newer] = halves(&whole, span(), false).unwrap();
        prop_assert_eq!((older.from, newer.until), (whole.from, whole.until));
        prop_assert_eq!(newer.from.unwrap().as_second() + 86_400, older.until.unwrap().as_second());
        prop_assert!(older.until < whole.until && newer.from > whole.from);
        let three_days = OaiWindow { until: Some(day(from + 2)), ..whole };
        prop_assert!(halves(&three_days, span(), false).is_none());
    }
}

#[test]
fn a_day_that_fails_costs_few_failed_requests() {
    for (inclusive_bounds, most) in [(true, 30), (false, 60)] {
        let mut progress = OaiProgress { inclusive_bounds, ..begun(OaiReadingKind::Records) };
        let (came, requests) = harvest(&mut progress, &[37], &[]);
        assert!(came.iter().all(|came| *came));
        assert!(requests <= most, "{requests}");
    }
}

#[test]
fn a_list_that_was_read_one_by_one_alone_has_a_cursor() {
    let mut progress = OaiProgress::default();
    let mut list = List::of(&mut progress, span());
    list.begin(OaiReadingKind::Records, SelectionId::of("all"));
    let Next::Page { window, .. } = list.next(&[]) else { panic!("a page is next") };
    list.one_by_one(&window, 3, Some(day(7)));
    list.end();
    assert_eq!(progress.cursor, Some(day(7)), "else no list of changes would ever be asked for");
}

#[test]
fn a_list_of_all_records_goes_on_after_changes_were_read_and_their_gaps_stay() {
    let mut progress = OaiProgress { cursor: Some(day(3)), ..OaiProgress::default() };
    let all = || (OaiReadingKind::Records, SelectionId::of("all"));
    let mut list = List::of(&mut progress, span());
    assert!(list.begin(all().0, all().1));
    page(&mut list, read(10, Some("second"), None), day(DAYS));
    assert!(list.begin(OaiReadingKind::Changes, SelectionId::of("all")));
    let Next::Page { window, .. } = list.next(&[]) else { panic!("a page is next") };
    list.give_up(&window, day(DAYS), "it fails".to_owned());
    list.end();
    let gaps = list.progress.unread.clone();
    assert_eq!(gaps.len(), 1);

    assert!(!list.begin(all().0, all().1), "it goes on");
    assert!(matches!(list.next(&[]), Next::Page { token: Some(token), .. } if token == "second"));
    page(&mut list, read(10, None, None), day(DAYS));
    list.end();
    assert_eq!(progress.unread, gaps, "its first page was read before the changes that were missed");
    assert!(progress.aside.is_none());
}

#[test]
fn a_list_of_all_records_begins_anew_a_week_after_its_interruption() {
    let mut progress = OaiProgress { cursor: Some(day(3)), ..OaiProgress::default() };
    let mut list = List::of(&mut progress, span());
    list.begin(OaiReadingKind::Records, SelectionId::of("all"));
    page(&mut list, read(10, Some("second"), None), day(DAYS));
    list.begin(OaiReadingKind::Changes, SelectionId::of("all"));
    list.end();
    for (after, begins) in [(7, false), (8, true)] {
        let mut later = progress.clone();
        let now = span().now + SignedDuration::from_hours(after * 24);
        let mut list = List::of(&mut later, Span { now, ..span() });
        assert_eq!(list.begin(OaiReadingKind::Records, SelectionId::of("all")), begins, "{after} days");
    }
}
