use model::SetId;
use resourcesync::Root;

use super::*;
use crate::{Horizon, queued_document};

fn time(text: &str) -> resourcesync::Datetime {
    resourcesync::Datetime::parse_lenient(text).unwrap().0
}

fn horizon() -> Horizon {
    Horizon::at("2026-02-01T00:00:00Z".parse().unwrap())
}

/// Hour `n` of a day.
fn hour(n: u32) -> Timestamp {
    format!("2026-01-01T{n:02}:00:00Z").parse().unwrap()
}

/// A Change List that was read, with `from` and `until` as written.
fn list(run: RunId, from: &str, until: &str) -> DocumentRecord {
    let mut record = queued_document(run, &SetId::new("s"), &Capability::ChangeList, None);
    record.state = DocumentState::Done;
    record.root = Some(Root::UrlSet);
    if !from.is_empty() {
        record.from = horizon().certain_instant(&time(from));
    }
    if !until.is_empty() {
        record.until = horizon().certain_instant(&time(until));
        record.until_latest = horizon().latest_instant(&time(until));
    }
    record
}

fn hours(run: RunId, from: u32, until: Option<u32>) -> DocumentRecord {
    let text = |n| hour(n).to_string();
    list(run, &text(from), &until.map(text).unwrap_or_default())
}

/// Without `from`, with the hours of its oldest and latest change.
fn undated(run: RunId, oldest: u32, latest: u32) -> DocumentRecord {
    let mut record = list(run, "", "");
    (record.oldest_change, record.latest_change) = (Some(hour(oldest)), Some(hour(latest)));
    record
}

fn follow_from(reached: Option<u32>, run: RunId, documents: &[DocumentRecord]) -> Coverage {
    follow(reached.map(hour), run, documents.iter())
}

fn gaps(coverage: &Coverage) -> Vec<(Timestamp, Timestamp)> {
    coverage.gaps.iter().map(|gap| (gap.after, gap.before)).collect()
}

/// Asserts the hour that was reached; a closed list ends at the end of its last second.
#[track_caller]
fn reaches(coverage: &Coverage, n: u32) {
    let reached = coverage.reached.unwrap();
    assert!(reached >= hour(n) && reached < hour(n) + SignedDuration::from_secs(1), "{coverage:?}");
}

#[test]
fn lists_that_join_on_reach_to_the_latest_change_in_whatever_order_they_stand() {
    let run = RunId::fresh();
    let mut open = hours(run, 6, None);
    open.latest_change = Some(hour(8));
    let lists = [open, hours(run, 0, Some(4)), hours(run, 4, Some(6))];
    let coverage = follow_from(Some(2), run, &lists);
    assert_eq!(gaps(&coverage), []);
    reaches(&coverage, 8);
}

#[test]
fn a_gap_in_the_middle_is_found_and_what_is_before_it_still_counts() {
    let run = RunId::fresh();
    let lists = [hours(run, 0, Some(4)), hours(run, 6, Some(8)), hours(run, 9, None)];
    let coverage = follow_from(Some(1), run, &lists);
    let found: Vec<Timestamp> = coverage.gaps.iter().map(|gap| gap.before).collect();
    assert_eq!(found, [hour(6), hour(9)]);
    reaches(&coverage, 4);
}

#[test]
fn a_gap_at_the_start_leaves_the_set_where_it_is() {
    let run = RunId::fresh();
    let coverage = follow_from(Some(1), run, &[hours(run, 2, None)]);
    assert_eq!((coverage.reached, gaps(&coverage)), (Some(hour(1)), vec![(hour(1), hour(2))]));
}

#[test]
fn a_later_resource_list_closes_a_gap() {
    let run = RunId::fresh();
    let lists = [hours(run, 0, Some(4)), hours(run, 6, None)];
    assert_eq!(gaps(&follow_from(Some(7), run, &lists)), []);
    assert_eq!(gaps(&follow_from(Some(5), run, &lists)), [(hour(5), hour(6))]);
}

#[test]
fn overlapping_nested_and_empty_intervals_are_no_gaps() {
    let run = RunId::fresh();
    let lists = [hours(run, 0, Some(8)), hours(run, 1, Some(2)), hours(run, 3, Some(3)), hours(run, 7, None)];
    assert_eq!(gaps(&follow_from(Some(0), run, &lists)), []);
}

#[test]
fn an_open_list_tells_everything_from_its_beginning_on() {
    let run = RunId::fresh();
    let lists = [hours(run, 0, None), hours(run, 6, Some(8))];
    assert_eq!(gaps(&follow_from(Some(0), run, &lists)), []);
}

#[test]
fn times_join_on_at_the_precision_they_have() {
    let run = RunId::fresh();
    for (until, from, joins) in [
        // A date has no zone, so it orders nothing.
        ("2026-01-01", "2026-01-03", true),
        ("2026-01-01T12:00Z", "2026-01-01T12:01Z", true),
        ("2026-01-01T12:00Z", "2026-01-01T12:02Z", false),
        ("2026-01-01T12:00:05Z", "2026-01-01T12:00:05.7Z", true),
        ("2026-01-01T12:00:05Z", "2026-01-01T12:00:06Z", true),
        ("2026-01-01T12:00:05Z", "2026-01-01T12:00:07Z", false),
        ("2026-01-01T12:00:05.250Z", "2026-01-01T12:00:05.251Z", false),
        ("2026-01-01T14:00:00+02:00", "2026-01-01T12:00:00Z", true),
    ] {
        let lists = [list(run, "2025-12-31T00:00:00Z", until), list(run, from, "")];
        assert_eq!(follow_from(Some(0), run, &lists).gaps.is_empty(), joins, "{until} {from}");
    }
}

#[test]
fn closed_lists_of_earlier_runs_count_and_open_ones_do_not() {
    let before = RunId::fresh();
    let run = RunId::fresh();
    let closed = [hours(before, 0, Some(4)), hours(run, 4, None)];
    assert_eq!(gaps(&follow_from(Some(0), run, &closed)), []);
    // The list was open when it was read; how long it went on since then is unknown.
    let open = [hours(before, 0, None), hours(run, 4, None)];
    assert_eq!(gaps(&follow_from(Some(0), run, &open)), [(hour(0), hour(4))]);
}

#[test]
fn behind_a_list_that_could_not_be_read_no_gap_is_claimed_and_nothing_is_reached() {
    let run = RunId::fresh();
    let mut failed = hours(run, 4, None);
    failed.state = DocumentState::Failed;
    let coverage = follow_from(Some(1), run, &[hours(run, 0, Some(4)), failed, hours(run, 8, None)]);
    assert_eq!(gaps(&coverage), []);
    reaches(&coverage, 4);
}

#[test]
fn an_index_is_no_list_of_its_own() {
    let run = RunId::fresh();
    let mut index = hours(run, 0, None);
    index.root = Some(Root::SitemapIndex);
    let coverage = follow_from(Some(1), run, &[index, hours(run, 4, None)]);
    assert_eq!(gaps(&coverage), [(hour(1), hour(4))]);
}

#[test]
fn an_empty_list_moves_a_set_to_its_beginning() {
    let run = RunId::fresh();
    reaches(&follow_from(None, run, &[hours(run, 3, None)]), 3);
}

#[test]
fn a_list_without_from_moves_a_set_only_where_it_reaches_back() {
    let run = RunId::fresh();
    reaches(&follow_from(None, run, &[undated(run, 3, 5)]), 5);
    reaches(&follow_from(Some(4), run, &[undated(run, 3, 5)]), 5);
    let unproved = follow_from(Some(2), run, &[undated(run, 3, 5)]);
    assert_eq!((unproved.reached, gaps(&unproved)), (Some(hour(2)), vec![]));
}

#[test]
fn a_list_without_from_that_lost_what_it_told_before_has_a_gap_until_a_later_list_closes_it() {
    let run = RunId::fresh();
    let mut torn = undated(run, 6, 8);
    torn.unseen_before = Some(hour(6));
    let coverage = follow_from(Some(4), run, &[torn.clone()]);
    assert_eq!((coverage.reached, gaps(&coverage)), (Some(hour(4)), vec![(hour(4), hour(6))]));
    let closed = follow_from(Some(7), run, &[torn]);
    assert_eq!(gaps(&closed), []);
    reaches(&closed, 8);
}

#[test]
fn a_gap_is_covered_by_as_few_documents_as_possible_or_not_at_all() {
    let covering = |after, before, documents: &[(u32, u32)]| {
        let closed = documents.iter().map(|(from, until)| Closed { from: hour(*from), until: hour(*until) });
        super::covering(Gap { after: hour(after), before: hour(before) }, closed)
    };
    assert_eq!(covering(2, 8, &[(5, 9), (0, 1), (1, 4), (1, 5), (9, 10)]), Some(vec![3, 0]));
    assert_eq!(covering(2, 8, &[(0, 8)]), Some(vec![0]));
    assert_eq!(covering(2, 8, &[(1, 4), (5, 9)]), None, "a hole in the middle");
    assert_eq!(covering(2, 8, &[(3, 9)]), None, "a hole at the start");
    assert_eq!(covering(2, 8, &[(1, 7)]), None, "a hole at the end");
    assert_eq!(covering(2, 8, &[(1, 5), (4, 4), (5, 6), (6, 20)]), Some(vec![0, 2, 3]));
    assert_eq!(covering(2, 8, &[]), None);
}
