//! The `Content-Range` of a 206.

/// What a `Content-Range` header announces (RFC 9110, 14.4). Bytes are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// The first byte of the part.
    pub from: u64,
    /// The first byte behind it.
    pub to: u64,
    /// The length of the whole, if stated.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Parses the header; none if it states no byte range.
    pub fn parse(header: &str) -> Option<Self> {
        let (unit, range) = header.trim().split_once(' ')?;
        // Some servers leave the total out.
        let (part, total) = range.split_once('/').unwrap_or((range, "*"));
        let (first, last) = part.trim().split_once('-')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let from = first.trim().parse().ok()?;
        let to = last.trim().parse::<u64>().ok()?.checked_add(1)?;
        let total = match total.trim() {
            "*" => None,
            total => Some(total.parse().ok()?),
        };
        (from < to && total.is_none_or(|total| to <= total)).then_some(Self { from, to, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_and_whole_are_read_with_and_without_a_total() {
        let range = |from, to, total| Some(ContentRange { from, to, total });
        assert_eq!(ContentRange::parse("bytes 7-99/100"), range(7, 100, Some(100)));
        assert_eq!(ContentRange::parse("Bytes 0-0/*"), range(0, 1, None));
        assert_eq!(ContentRange::parse("bytes 7-9"), range(7, 10, None));
    }

    #[test]
    fn other_units_and_rubbish_announce_nothing() {
        let no_part = ["bytes 9-7/10", "bytes 7-10/10", "bytes 7-/10", "bytes 0-18446744073709551615/*"];
        let no_range = ["", "bytes", "bytes */100", "items 7-9/10", "bytes=7-9", "bytes -5/10", "7-9/10"];
        for odd in no_part.iter().chain(&no_range) {
            assert_eq!(ContentRange::parse(odd), None, "{odd:?}");
        }
    }
}
