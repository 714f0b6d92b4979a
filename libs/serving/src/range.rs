//! Range requests for a bitstream (RFC 9110, section 14).

use std::ops::Range;

use axum::http::{HeaderMap, header};

use crate::conditions::etag_matches;

/// The requested part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The whole bitstream: the request has no range, or none that can be parsed.
    Whole,
    /// Some bytes, at least one.
    Range(Range<u64>),
    /// Only bytes beyond the end.
    Nowhere,
}

/// The part that a request asks for, of a bitstream with this length and entity tag.
pub fn asked(headers: &HeaderMap, length: u64, etag: &str) -> Part {
    let mut values = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Part::Whole };
    // A range of another version is no range of this one.
    if headers.contains_key(header::IF_RANGE) && !is_of(headers, etag) {
        return Part::Whole;
    }
    value.to_str().ok().map_or(Part::Whole, |value| read(value, length))
}

/// Whether `If-Range` equals this entity tag. A date is no strong validator here.
fn is_of(headers: &HeaderMap, etag: &str) -> bool {
    let is_strong = headers.get(header::IF_RANGE).is_some_and(|value| value.as_bytes().starts_with(b"\""));
    is_strong && etag_matches(headers, header::IF_RANGE, etag) == Some(true)
}

/// Parses `Range`. Several ranges at once are not supported; the response is then the whole bitstream, as the RFC
/// allows.
fn read(value: &str, length: u64) -> Part {
    let Some((unit, set)) = value.split_once('=') else { return Part::Whole };
    let Some((first, last)) = set.trim().split_once('-') else { return Part::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Part::Whole;
    }
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let first = first.trim();
    let last = last.trim();
    if !digits(first) || !digits(last) || first.is_empty() && last.is_empty() {
        return Part::Whole;
    }
    // A number that overflows is beyond every bitstream, so the maximum has the same meaning.
    let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
    let range = match (first, last) {
        ("", suffix) => length.saturating_sub(number(suffix))..length,
        (first, "") => number(first)..length,
        (first, last) if number(last) < number(first) => return Part::Whole,
        (first, last) => number(first)..number(last).saturating_add(1).min(length),
    };
    if range.start < range.end { Part::Range(range) } else { Part::Nowhere }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn with(headers: &[(HeaderName, &'static str)]) -> Part {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        asked(&headers, 100, "\"abc\"")
    }

    #[test]
    fn one_range_is_understood_in_its_three_forms() {
        let part = |value| with(&[(header::RANGE, value)]);
        assert_eq!(part("bytes=0-0"), Part::Range(0..1));
        assert_eq!(part("bytes=10-19"), Part::Range(10..20));
        assert_eq!(part("bytes=90-"), Part::Range(90..100));
        assert_eq!(part("bytes=-7"), Part::Range(93..100));
        assert_eq!(part("bytes=-700"), Part::Range(0..100));
        assert_eq!(part("bytes=90-99999999999999999999999"), Part::Range(90..100));
    }

    #[test]
    fn what_lies_behind_the_end_is_nowhere_and_what_is_no_range_is_everything() {
        let part = |value| with(&[(header::RANGE, value)]);
        for nowhere in ["bytes=100-", "bytes=100-200", "bytes=-0"] {
            assert_eq!(part(nowhere), Part::Nowhere, "{nowhere}");
        }
        for whole in
            ["bytes=", "bytes=-", "bytes=5-4", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", "bytes=+1-2"]
        {
            assert_eq!(part(whole), Part::Whole, "{whole}");
        }
        assert_eq!(with(&[]), Part::Whole);
        assert_eq!(
            asked(&HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static("bytes=0-"))]), 0, ""),
            Part::Nowhere
        );
    }

    #[test]
    fn a_part_of_another_version_is_not_handed_out() {
        let part = |tag| with(&[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, tag)]);
        assert_eq!(part("\"abc\""), Part::Range(1..3));
        for other in ["\"abd\"", "W/\"abc\"", "Sun, 22 Nov 2026 00:00:00 GMT", "*"] {
            assert_eq!(part(other), Part::Whole, "{other}");
        }
    }
}
