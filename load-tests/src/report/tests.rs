use super::*;

fn round(seconds: f64, holds: bool) -> Round {
    let usage =
        Usage { seconds, cpu_seconds: 0.5, peak_rss_bytes: (seconds * 1e6) as u64, exit_status: Some(0) };
    Round {
        usage,
        source_cpu_seconds: 0.25,
        other_cpu_seconds: 0.0,
        checks: vec![Check::holds("all is well", holds)],
        counted: BTreeMap::new(),
    }
}

#[test]
fn of_two_commands_times_add_up_and_the_greater_memory_counts() {
    let both = round(2.0, true).and_then(&round(5.0, true));
    assert_eq!((both.usage.seconds, both.usage.cpu_seconds, both.source_cpu_seconds), (7.0, 1.0, 0.5));
    assert_eq!(both.usage.peak_rss_bytes, 5_000_000);
}

fn report() -> Report {
    let row = |name, rounds: [Round; 3]| Row { rounds: rounds.into(), ..Row::new(name, 100) };
    Report {
        case: "case",
        finished_at: jiff::Timestamp::UNIX_EPOCH,
        machine: Machine::here(std::path::Path::new("/")),
        setup: BTreeMap::new(),
        versions: Vec::new(),
        rows: vec![
            row("ours", [round(2.0, true), round(9.0, true), round(1.0, true)]),
            row("theirs", [round(5.0, true), round(4.0, false), round(7.0, true)]),
        ],
    }
    .summed_up(&["theirs"])
}

#[test]
fn rows_are_compared_by_their_medians_and_not_with_themselves() {
    let report = report();
    let summary = |row: usize| report.rows[row].summary.as_ref().unwrap();
    assert_eq!(summary(0).times_as_fast_as, BTreeMap::from([("theirs", 2.5)]));
    assert_eq!(summary(1).times_as_fast_as, BTreeMap::new());
    assert_eq!((summary(0).resources_per_second, summary(0).peak_rss_bytes), (50.0, 9_000_000));
}

#[test]
fn rows_of_different_sizes_are_compared_by_what_they_do_in_a_second() {
    let mut report = report();
    report.rows[0].resources = 1_000;
    let report = report.summed_up(&["theirs"]);
    assert_eq!(report.rows[0].summary.as_ref().unwrap().times_as_fast_as, BTreeMap::from([("theirs", 25.0)]));
}

#[test]
fn a_check_that_does_not_hold_is_told_with_row_and_round() {
    assert_eq!(report().broken(), ["theirs, round 2: all is well (DOES NOT HOLD, found false)"]);
}

#[test]
fn json_has_rounds_and_summary_side_by_side() {
    let json = serde_json::to_value(report()).unwrap();
    let row = &json["rows"][0];
    assert_eq!(row["seconds"]["median"], 2.0);
    assert_eq!(row["rounds"][1]["seconds"], 9.0);
    assert_eq!(row["times_as_fast_as"]["theirs"], 2.5);
}

#[test]
fn the_table_has_a_line_for_each_row_and_marks_the_broken_one() {
    let table = report().table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[2].contains("1.00–9.00") && lines[2].contains("hold"), "{table}");
    assert!(lines[3].contains("BROKEN") && lines[3].contains(" - |"), "{table}");
}

#[test]
fn figures_are_medians_and_a_row_without_one_has_none() {
    let mut report = report();
    for (round, count) in report.rows[0].rounds.iter_mut().zip([7, 5, 6]) {
        round.counted.insert("looks".to_owned(), count);
    }
    let table = report.figures().to_string();
    let line = table.lines().find(|line| line.contains("looks")).unwrap();
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert_eq!(cells, ["", "looks", "6", "-", ""], "{table}");
}

#[test]
fn a_row_that_is_compared_with_what_can_be_reached_says_so_in_its_summary_and_in_the_table() {
    let mut report = report();
    assert!(!report.table().to_string().contains("can be reached"));
    for (round, percent) in report.rows[0].rounds.iter_mut().zip([91, 88, 90]) {
        round.counted.insert(REACHED.to_owned(), percent);
    }
    let report = report.summed_up(&["theirs"]);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["rows"][0][REACHED], 90.0);
    assert!(json["rows"][1].get(REACHED).is_none());
    let table = report.table().to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("can be reached") && lines[2].contains(" 90 |"), "{table}");
}
