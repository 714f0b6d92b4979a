//! `Retry-After`: the pause that a server requests.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;

/// The wait in `Retry-After` (RFC 9110, 10.2.3): seconds, or a date. It is at most `most`, since a server's
/// mistake must not stop a Source for years. A date is relative to the server's own clock where it sends one
/// (`Date`), so that a wrong clock does no harm. An unreadable value requests nothing.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp, most: Duration) -> Option<Duration> {
    let value = text(headers, RETRY_AFTER)?;
    let wait = if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // A number that a u64 cannot hold counts as the longest wait.
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let until = httpdate::parse_http_date(value).ok()?;
        let sent = text(headers, DATE).and_then(|date| httpdate::parse_http_date(date).ok());
        until.duration_since(sent.unwrap_or_else(|| SystemTime::from(now))).unwrap_or_default()
    };
    Some(wait.min(most))
}

fn text(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: Duration = Duration::from_secs(3600);

    fn wait(pairs: &[(&'static str, &str)]) -> Option<Duration> {
        let headers = pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        retry_after(&headers, "1994-11-06T08:49:00Z".parse().unwrap(), MOST)
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn seconds_are_read_and_capped() {
        assert_eq!(wait(&[("retry-after", " 120 ")]), seconds(120));
        assert_eq!(wait(&[("retry-after", "0")]), seconds(0));
        assert_eq!(wait(&[("retry-after", "31536000")]), Some(MOST));
        assert_eq!(wait(&[("retry-after", "99999999999999999999999")]), Some(MOST));
    }

    #[test]
    fn dates_of_all_three_forms_are_read_by_our_clock() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(wait(&[("retry-after", date)]), seconds(37), "{date}");
        }
    }

    #[test]
    fn dates_are_read_by_the_servers_clock_where_it_shows_it() {
        let until = ("retry-after", "Sat, 06 Nov 2094 08:49:37 GMT");
        assert_eq!(wait(&[until, ("date", "Sat, 06 Nov 2094 08:49:30 GMT")]), seconds(7));
        assert_eq!(wait(&[until]), Some(MOST));
    }

    #[test]
    fn a_date_that_has_passed_asks_for_no_wait() {
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), seconds(0));
    }

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        for odd in ["", "soon", "-5", "1.5", "06 Nov"] {
            assert_eq!(wait(&[("retry-after", odd)]), None, "{odd:?}");
        }
        assert_eq!(wait(&[]), None);
    }

    proptest! {
        #[test]
        fn no_value_makes_it_panic_or_wait_longer_than_allowed(value in "[ -~]{0,40}|[0-9]{1,30}") {
            prop_assert!(wait(&[("retry-after", &value)]).is_none_or(|wait| wait <= MOST));
        }
    }
}
