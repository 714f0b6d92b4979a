use jiff::Timestamp;
use model::RunId;
use proptest::prelude::*;

use super::record::*;

const HOUR: i64 = 3_600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

fn run(n: u8) -> RunId {
    format!("01ARZ3NDEKTSV4RRFFQ69G5FA{}", char::from(b'A' + n)).parse().unwrap()
}

fn change(n: u8, stored: u64) -> Change {
    let from = at(i64::from(n) * 100);
    Change { run: run(n), from, until: at(i64::from(n) * 100 + 10), stored, deleted: 1 }
}

fn outgoing() -> OutboxMessage {
    let source = "example-org-1".parse().unwrap();
    OutboxMessage::new(source, "https://index.example.com/".parse().unwrap(), change(0, 5), at(10))
}

#[test]
fn what_was_not_sent_yet_goes_with_the_next_and_a_run_that_ends_again_counts_once() {
    let two = outgoing().and(&change(1, 3), at(110));
    assert_eq!(two.change(), Change { until: at(110), stored: 8, deleted: 2, ..change(0, 0) });
    // Its scheduler was killed after it had written this, and the next scheduler found one more change.
    let again = two.and(&change(1, 4), at(111));
    assert_eq!((again.change().stored, again.change().deleted), (9, 2));
    assert_eq!(again.and(&change(1, 4), at(500)), again);
    let three = again.and(&change(2, 1), at(210));
    assert_eq!((three.change().stored, three.change().from, three.change().until), (10, at(0), at(210)));
    assert_eq!((three.since, three.next_at), (at(10), at(10)));
}

#[test]
fn the_name_follows_from_what_is_told_and_to_whom() {
    let one = outgoing();
    let parts: Vec<_> = one.name().strip_prefix("urn:uuid:").unwrap().split('-').map(str::len).collect();
    assert_eq!((parts, &one.name()[23..24]), (vec![8, 4, 4, 4, 12], "8"));
    assert_eq!(one.name(), one.taken(at(50)).name(), "a try changes nothing");
    let elsewhere = OutboxMessage { target: "https://other.example.com/".parse().unwrap(), ..one.clone() };
    assert_ne!(one.name(), elsewhere.name());
    assert_ne!(one.name(), one.and(&change(1, 1), at(0)).name());
}

#[test]
fn pauses_double_up_to_an_hour_and_after_three_days_it_is_given_up() {
    let mut outgoing = outgoing();
    let mut now = at(10);
    let mut pauses = Vec::new();
    while outgoing.is_waiting() {
        let taken = outgoing.taken(now);
        assert!(taken.next_at > now, "nobody else has it meanwhile");
        outgoing = taken.failed("503", None, now);
        if outgoing.is_waiting() {
            pauses.push(outgoing.next_at.duration_since(now).as_secs());
            now = outgoing.next_at;
        }
    }
    assert_eq!(pauses[..11], [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600]);
    assert_eq!(outgoing.state, OutboxState::DeadLetterSummary);
    let took = now.duration_since(at(10)).as_secs();
    assert!((72 * HOUR..74 * HOUR).contains(&took), "{took}");
    assert_eq!(outgoing.trouble.as_deref(), Some("503"));
}

#[test]
fn a_target_is_left_alone_as_long_as_it_asks_for_but_not_for_ever() {
    let waits = |until| outgoing().taken(at(10)).failed("429", Some(at(until)), at(10)).next_at;
    assert_eq!((waits(5), waits(10 + HOUR)), (at(15), at(10 + HOUR)));
    assert_eq!(waits(999 * HOUR), at(10 + 24 * HOUR));
}

#[test]
fn what_was_refused_is_tried_again_when_there_is_more_to_be_told() {
    let refused = outgoing().taken(at(10)).refused("403");
    assert_eq!((refused.state, refused.is_waiting()), (OutboxState::Refused, false));
    let again = refused.and(&change(1, 3), at(900));
    assert_eq!((again.state, again.next_at, again.since), (OutboxState::Waiting, at(900), at(900)));
    assert_eq!((again.tries, again.trouble.clone(), again.change().stored), (0, None, 8));
    // More changes do not bring a pending retry forward.
    let failed = outgoing().taken(at(10)).failed("503", None, at(10));
    assert_eq!(failed.and(&change(1, 3), at(11)).next_at, failed.next_at);
}

proptest! {
    #[test]
    fn whatever_order_runs_and_tries_come_in_nothing_is_counted_twice_or_lost(
        steps in prop::collection::vec((0_u8..6, 1_u64..9, any::<bool>()), 1..30),
    ) {
        // Runs of a Source follow each other. Each may be reported several times while it is the last one.
        let mut steps = steps;
        steps.sort_by_key(|(run, _, _)| *run);
        let mut told = OutboxMessage { latest: change(0, 0), ..outgoing() };
        let mut last = [None; 6];
        last[0] = Some(0);
        for (second, (run, stored, refused)) in (0..).zip(steps) {
            last[usize::from(run)] = Some(stored);
            told = told.and(&change(run, stored), at(second));
            let taken = told.taken(at(second));
            told = if refused { taken.refused("no") } else { taken.failed("later", None, at(second)) };
        }
        let sum: u64 = last.iter().flatten().sum();
        prop_assert_eq!(told.change().stored, sum);
        prop_assert_eq!(told.change().deleted, last.iter().flatten().count() as u64);
    }
}
