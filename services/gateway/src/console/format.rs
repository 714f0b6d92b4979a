//! Formats numbers and times.

use std::fmt::Display;

use jiff::Timestamp;
use maud::{Markup, html};
use url::form_urlencoded::byte_serialize;

/// A point in time.
pub(super) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) { (plain_time(at)) } }
}

/// A point in time, as text.
pub(super) fn plain_time(at: Timestamp) -> impl Display {
    at.strftime("%Y-%m-%d %H:%M:%S")
}

/// A point in time, and how long ago it is.
pub(super) fn ago(now: Timestamp, at: Timestamp) -> Markup {
    let seconds = now.duration_since(at).as_secs();
    let text = match seconds {
        0.. => format!("{} ago", span(seconds)),
        _ => format!("in {}", span(-seconds)),
    };
    html! { time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(at.strftime("%Y-%m-%d %H:%M:%S UTC")) { (text) } }
}

/// A point in time and how long ago it is, or the text `without`.
pub(super) fn ago_or(now: Timestamp, at: Option<Timestamp>, without: &str) -> Markup {
    html! { @match at { Some(at) => (ago(now, at)), None => (without) } }
}

/// A duration, in at most two units.
pub(super) fn span(seconds: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let Some(first) = UNITS.iter().position(|(length, _)| seconds >= *length) else {
        return "0 s".to_owned();
    };
    let (length, unit) = UNITS[first];
    let rest = UNITS
        .get(first + 1)
        .map(|(next, unit)| (seconds % length / next, unit))
        .filter(|(count, _)| *count > 0);
    let more = rest.map_or(String::new(), |(count, unit)| format!(" {count} {unit}"));
    format!("{} {unit}{more}", seconds / length)
}

/// A count, in groups of three digits.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes.
pub(super) fn bytes(number: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| number >= *size) {
        // To a tenth, for people.
        Some((size, unit)) => format!("{:.1} {unit}", number as f64 / *size as f64),
        None => format!("{number} B"),
    }
}

/// A count with the noun in singular or plural.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Encodes a text for the query of a URL.
pub(super) fn query(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_two_units_at_most() {
        let told = [0, 59, 60, 61, 3_599, 3_600, 7_260, 86_400, 90_061, 100 * 86_400].map(span);
        assert_eq!(
            told,
            [
                "0 s",
                "59 s",
                "1 min",
                "1 min 1 s",
                "59 min 59 s",
                "1 h",
                "2 h 1 min",
                "1 d",
                "1 d 1 h",
                "100 d"
            ]
        );
    }

    #[test]
    fn what_is_to_come_is_told_as_such() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let told =
            |second: i64| ago(now, Timestamp::from_second(1_800_000_000 + second).unwrap()).into_string();
        assert!(told(-90).contains("1 min 30 s ago"));
        assert!(told(90).contains("in 1 min 30 s"));
    }

    #[test]
    fn counts_and_bytes_are_told_for_people() {
        assert_eq!(
            [count(7), count(1_234), count(1_234_567)],
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!([bytes(1_023), bytes(1_536), bytes(3 << 30)], ["1023 B", "1.5 KiB", "3.0 GiB"]);
        assert_eq!(
            (counted(1, "problem", "problems"), counted(2, "problem", "problems")),
            ("1 problem".to_owned(), "2 problems".to_owned())
        );
    }
}
