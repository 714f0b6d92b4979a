//! The results in Markdown, as in docs/PERFORMANCE.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Found, SAMPLES_PER_SECOND};

/// Calls that are rarer than this per resource are not listed.
const SELDOM: f64 = 0.005;

/// The tables.
pub(super) fn of(found: &Found, version: &str) -> String {
    let mut text =
        format!("{version}, {} resources, view none:\n\n| of one resource | |\n|---|---|\n", found.resources);
    let mut line = |what: &str, figure: String| {
        // Writing into memory cannot fail.
        let _ = writeln!(text, "| {what} | {figure} |");
    };
    if let Some(samples) = &found.samples {
        line("processor time, µs", format!("{:.0}", microseconds(samples.count, found.resources)));
    }
    if let Some(instructions) = &found.instructions {
        line("instructions outside of the kernel", whole(instructions.by_stage.values().sum()));
        line("allocations", format!("{:.1}", instructions.allocations));
    }
    if let Some(calls) = &found.calls {
        line("system calls", format!("{:.2}", calls.values().sum::<f64>()));
    }
    text + &stages(found) + &calls(found)
}

/// A line per stage, sorted by cost.
fn stages(found: &Found) -> String {
    let samples = found.samples.as_ref();
    let instructions = found.instructions.as_ref();
    let time =
        |stage: &str| samples.and_then(|samples| samples.by_stage.get(stage)).copied().unwrap_or_default();
    let cost =
        |stage: &str| instructions.and_then(|all| all.by_stage.get(stage)).copied().unwrap_or_default();
    let names = samples.into_iter().flat_map(|samples| samples.by_stage.keys());
    let names = names.chain(instructions.into_iter().flat_map(|instructions| instructions.by_stage.keys()));
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by(|a, b| {
        (time(b), cost(b)).partial_cmp(&(time(a), cost(a))).unwrap_or(std::cmp::Ordering::Equal)
    });
    let all = samples.map_or(0, |samples| samples.count).max(1);
    let mut text = "\n| part | share of processor time | µs | instructions |\n|---|---|---|---|\n".to_owned();
    for name in names {
        let count = time(name);
        let cost = cost(name);
        let _ = writeln!(
            text,
            "| {name} | {:.1} % | {:.1} | {} |",
            100.0 * count as f64 / all as f64,
            microseconds(count, found.resources),
            if cost > 0.0 { whole(cost) } else { "–".to_owned() }
        );
    }
    text
}

/// A line per system call, the most frequent first.
fn calls(found: &Found) -> String {
    let Some(calls) = &found.calls else { return String::new() };
    let mut calls: Vec<(&str, f64)> = calls.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    calls.retain(|(_, count)| *count >= SELDOM);
    calls.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut text = "\n| system call | of one resource |\n|---|---|\n".to_owned();
    for (name, count) in calls {
        let _ = writeln!(text, "| {name} | {count:.2} |");
    }
    text
}

fn microseconds(samples: u64, resources: u64) -> f64 {
    1e6 * samples as f64 / SAMPLES_PER_SECOND as f64 / resources.max(1) as f64
}

/// A number without fraction, with groups of three digits.
fn whole(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cases::profile::instructions::Instructions;
    use crate::cases::profile::samples::Samples;

    fn found() -> Found {
        let by_stage = [("HTTP".to_owned(), 12_345.6), ("messages".to_owned(), 100.0)];
        Found {
            resources: 1_000,
            calls: Some([("writev".to_owned(), 1.0), ("mmap".to_owned(), 0.001)].into()),
            instructions: Some(Instructions { by_stage: by_stage.into(), allocations: 7.25 }),
            samples: Some(Samples {
                count: 100,
                by_stage: BTreeMap::from([("kernel: network".to_owned(), 75), ("HTTP".to_owned(), 25)]),
            }),
        }
    }

    #[test]
    fn parts_come_by_their_time_and_seldom_calls_are_left_out() {
        let text = of(&found(), "thresher 1");
        let lines: Vec<&str> = text.lines().collect();
        let expected = [
            "| kernel: network | 75.0 % | 75.2 | – |",
            "| HTTP | 25.0 % | 25.1 | 12,346 |",
            "| messages | 0.0 % | 0.0 | 100 |",
        ];
        assert!(lines.windows(3).any(|three| three == expected), "{text}");
        assert!(lines.contains(&"| writev | 1.00 |") && !text.contains("mmap"), "{text}");
        assert!(lines.contains(&"| instructions outside of the kernel | 12,446 |"), "{text}");
    }

    #[test]
    fn what_no_tool_has_told_is_left_out() {
        let text = of(&Found { resources: 10, ..Found::default() }, "thresher 1");
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}
