//! Times as Memento writes them (RFC 7089, 2.1.1): `Tue, 06 Jan 2026 09:00:00 GMT`.

use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};

/// Writes a time in whole seconds. `None` for a year beyond 9999 or before 0.
pub fn http_date(time: Timestamp) -> Option<String> {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}

/// Parses a time. Only the one form that RFC 7089 allows is accepted: in GMT, with the right day of the week.
pub fn parse_http_date(text: &str) -> Option<Timestamp> {
    let time = DateTimeParser::new().parse_timestamp(text).ok()?;
    (http_date(time)? == text).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_form_is_accepted() {
        let time = parse_http_date("Tue, 06 Jan 2026 09:00:00 GMT").unwrap();
        assert_eq!(time.to_string(), "2026-01-06T09:00:00Z");
        for other in [
            "",
            "2026-01-06T09:00:00Z",
            "Tue, 6 Jan 2026 09:00:00 GMT",
            "Mon, 06 Jan 2026 09:00:00 GMT",
            "Tue, 06 Jan 2026 09:00:00 +0000",
            "Tue, 06 Jan 2026 09:00:00 UTC",
            "Tue, 06 Jan 2026 11:00:00 +0200",
            " Tue, 06 Jan 2026 09:00:00 GMT",
            "Tuesday, 06-Jan-26 09:00:00 GMT",
            "tue, 06 jan 2026 09:00:00 gmt",
        ] {
            assert_eq!(parse_http_date(other), None, "{other}");
        }
    }
}
