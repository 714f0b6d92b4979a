use proptest::prelude::*;

use super::*;

fn source(n: usize) -> SourceId {
    format!("source-{n}").parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn next(schedule: &Schedule, after: &str) -> String {
    schedule.next_after(&source(1), at(after)).unwrap().to_string()
}

#[test]
fn an_interval_without_jitter_comes_at_its_full_multiples() {
    let hourly = Schedule::every(3600).jitter(0);
    assert_eq!(next(&hourly, "2026-03-01T11:59:59.999Z"), "2026-03-01T12:00:00Z");
    assert_eq!(next(&hourly, "2026-03-01T12:00:00Z"), "2026-03-01T13:00:00Z");
    assert_eq!(next(&hourly, "2026-03-01T12:00:00.001Z"), "2026-03-01T13:00:00Z");
    assert_eq!(next(&hourly, "1969-12-31T22:30:00Z"), "1969-12-31T23:00:00Z");
}

#[test]
fn cron_is_read_in_utc() {
    let nightly = Schedule::cron("30 2 * * *");
    assert_eq!(next(&nightly, "2026-03-01T02:29:00Z"), "2026-03-01T02:30:00Z");
    assert_eq!(next(&nightly, "2026-03-01T02:30:00Z"), "2026-03-02T02:30:00Z");
    let sundays = Schedule::cron("0 4 * * SUN");
    assert_eq!(next(&sundays, "2026-03-02T00:00:00Z"), "2026-03-08T04:00:00Z");
    let leap = Schedule::cron("0 0 29 2 *");
    assert_eq!(next(&leap, "2026-03-02T00:00:00Z"), "2028-02-29T00:00:00Z");
}

#[test]
fn a_source_keeps_its_offset_and_misses_no_turn() {
    let schedule = Schedule::cron("0 3 * * *").jitter(1800);
    let first = schedule.next_after(&source(7), at("2026-03-01T12:00:00Z")).unwrap();
    let second = schedule.next_after(&source(7), first).unwrap();
    assert_eq!(second.duration_since(first), SignedDuration::from_hours(24));
    let late = first.duration_since(at("2026-03-02T03:00:00Z"));
    assert!((0..=1800).contains(&late.as_secs()), "{late}");
    // Between the scheduled time and the Source's offset, its run is still to come.
    assert_eq!(schedule.next_after(&source(7), at("2026-03-02T03:00:00Z")).unwrap(), first);
}

#[test]
fn sources_of_one_interval_spread_over_all_of_it() {
    let hourly = Schedule::every(3600);
    let mut quarters = [0; 4];
    for n in 0..1000 {
        let due = hourly.next_after(&source(n), at("2026-03-01T12:00:00Z")).unwrap();
        let into = due.duration_since(at("2026-03-01T12:00:00Z")).as_secs();
        quarters[usize::try_from((into - 1) / 900).unwrap()] += 1;
    }
    assert!(quarters.iter().all(|&count| (180..=320).contains(&count)), "{quarters:?}");
}

#[test]
fn missed_turns_do_not_add_up() {
    let hourly = Schedule::every(3600).jitter(0);
    let now = at("2026-03-01T12:30:00Z");
    let due = hourly.next_after(&source(1), at("2026-02-01T00:00:00Z")).unwrap();
    assert!(due < now, "it is due at once");
    assert!(hourly.next_after(&source(1), now).unwrap() > now, "and after that run, at the next turn");
}

#[test]
fn what_makes_no_sense_is_refused_in_clear_words() {
    let cases = [
        (Schedule::every(0), "10 seconds to a year"),
        (Schedule::every(u64::MAX), "10 seconds to a year"),
        (Schedule::every(60).jitter(61), "at most 60"),
        (Schedule::cron("0 3 * * *").jitter(86_401), "at most 86400"),
        (Schedule::cron("61 * * * *"), "\"61 * * * *\" cannot be read"),
        (Schedule::cron("* * * *"), "it has 4 fields"),
        (Schedule::cron("0 3 * * * Europe/Berlin"), "in UTC"),
        (Schedule::cron(""), "it has 0 fields"),
        (Schedule::cron("0 0 30 2 *"), "never comes true"),
    ];
    for (schedule, words) in cases {
        let message = schedule.check().unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
        assert!(schedule.next_after(&source(1), at("2026-03-01T12:00:00Z")).is_err());
    }
}

#[test]
fn a_schedule_is_readable_json() {
    let text = r#"{"times":{"every_seconds":3600},"jitter_seconds":60}"#;
    let schedule: Schedule = serde_json::from_str(text).unwrap();
    assert_eq!(schedule, Schedule::every(3600).jitter(60));
    assert_eq!(serde_json::to_string(&schedule).unwrap(), text);
    assert_eq!(
        serde_json::to_string(&Schedule::cron("0 3 * * *")).unwrap(),
        r#"{"times":{"cron":"0 3 * * *"}}"#
    );
}

proptest! {
    #[test]
    fn next_is_later_and_turns_are_one_interval_apart(
        seconds in SHORTEST_SECONDS..=LONGEST_SECONDS,
        share in 0u64..=100,
        after in -4_000_000_000i64..8_000_000_000,
        n in 0usize..50,
    ) {
        let schedule = Schedule::every(seconds).jitter(seconds * share / 100);
        let after = Timestamp::from_second(after).unwrap();
        let first = schedule.next_after(&source(n), after).unwrap();
        let second = schedule.next_after(&source(n), first).unwrap();
        let interval = SignedDuration::from_secs(i64::try_from(seconds).unwrap());
        prop_assert!(first > after && first.duration_since(after) <= interval);
        prop_assert_eq!(second.duration_since(first), interval);
    }

    #[test]
    fn no_expression_makes_it_panic(expression in "[-0-9*/, A-Za-z#?]{0,24}") {
        let _ = Schedule::cron(expression).check();
    }
}
