//! Whether a reader has what it asks for (RFC 9110, section 13).

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use jiff::Timestamp;
use serving::etag_matches;

/// What an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The reader gets it.
    Met,
    /// The reader has it: 304.
    NotModified,
    /// The reader wants another version: 412.
    Failed,
}

/// What the conditions of a request say of a representation.
pub(crate) fn condition(headers: &HeaderMap, etag: &str, modified: Timestamp) -> Condition {
    let is_another = match etag_matches(headers, header::IF_MATCH, etag) {
        Some(is_same) => !is_same,
        None => date(headers, header::IF_UNMODIFIED_SINCE).is_some_and(|since| at(modified) > since),
    };
    if is_another {
        return Condition::Failed;
    }
    let has_it = match etag_matches(headers, header::IF_NONE_MATCH, etag) {
        Some(is_same) => is_same,
        None => date(headers, header::IF_MODIFIED_SINCE).is_some_and(|since| at(modified) <= since),
    };
    if has_it { Condition::NotModified } else { Condition::Met }
}

/// A moment as HTTP writes it, in whole seconds.
pub(crate) fn http_date(moment: Timestamp) -> Option<HeaderValue> {
    httpdate::fmt_http_date(at(moment)).parse().ok()
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

fn at(moment: Timestamp) -> SystemTime {
    let seconds = u64::try_from(moment.as_second()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_tag_decides_and_else_the_time() {
        let modified = "2026-01-05T08:00:00.5Z".parse().unwrap();
        let told = |pairs: &[(HeaderName, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            condition(&pairs.collect(), "\"a\"", modified)
        };
        let (same, earlier) = ("Mon, 05 Jan 2026 08:00:00 GMT", "Mon, 05 Jan 2026 07:59:59 GMT");
        assert_eq!(told(&[]), Condition::Met);
        assert_eq!(told(&[(header::IF_NONE_MATCH, "\"a\"")]), Condition::NotModified);
        assert_eq!(
            told(&[(header::IF_NONE_MATCH, "\"b\""), (header::IF_MODIFIED_SINCE, same)]),
            Condition::Met
        );
        assert_eq!(told(&[(header::IF_MODIFIED_SINCE, same)]), Condition::NotModified);
        assert_eq!(told(&[(header::IF_MODIFIED_SINCE, earlier)]), Condition::Met);
        assert_eq!(told(&[(header::IF_MODIFIED_SINCE, "yesterday")]), Condition::Met);
        assert_eq!(told(&[(header::IF_MATCH, "\"b\"")]), Condition::Failed);
        assert_eq!(told(&[(header::IF_MATCH, "W/\"a\"")]), Condition::Failed);
        assert_eq!(told(&[(header::IF_UNMODIFIED_SINCE, earlier)]), Condition::Failed);
        assert_eq!(told(&[(header::IF_UNMODIFIED_SINCE, same)]), Condition::Met);
        assert_eq!(told(&[(header::IF_UNMODIFIED_SINCE, "yesterday")]), Condition::Met);
        let both = [(header::IF_MATCH, "\"a\""), (header::IF_UNMODIFIED_SINCE, earlier)];
        assert_eq!(told(&both), Condition::Met);
        assert_eq!(http_date(modified).unwrap(), same);
    }
}
