//! Conditional requests and ranges, by RFC 9110.

use std::ops::Range;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};

use super::clock::SimTime;

/// Values that identify a state of a document or resource.
pub(crate) struct Validators {
    pub(crate) etag: String,
    pub(crate) modified: SimTime,
}

impl Validators {
    /// Whether the client already has this state (RFC 9110, 13.1.2 and 13.1.3).
    pub(crate) fn unchanged_for(&self, headers: &HeaderMap) -> bool {
        if let Some(tags) = value(headers, header::IF_NONE_MATCH) {
            return tags.split(',').any(|tag| matches!(tag.trim(), "*") || tag.trim() == self.etag);
        }
        let since = value(headers, header::IF_MODIFIED_SINCE).and_then(SimTime::from_http_date);
        since.is_some_and(|since| self.modified <= since)
    }

    /// Whether `If-Range` permits a range (RFC 9110, 13.1.5).
    pub(crate) fn allow_range(&self, headers: &HeaderMap) -> bool {
        match value(headers, header::IF_RANGE) {
            Some(tag) if tag.starts_with('"') => tag == self.etag,
            Some(date) => SimTime::from_http_date(date) == Some(self.modified),
            None => true,
        }
    }

    pub(crate) fn respond(&self, status: StatusCode, length: Option<u64>, body: Body) -> Response {
        let mut builder = Response::builder()
            .status(status)
            .header(header::ETAG, &self.etag)
            .header(header::LAST_MODIFIED, self.modified.http_date());
        if let Some(length) = length {
            builder = builder.header(header::CONTENT_LENGTH, length);
        }
        builder.body(body).unwrap_or_default()
    }
}

/// A single range of `Range: bytes=…`, cut to the existing bytes; `Err` when it is outside, `None` when there
/// is none to apply.
pub(crate) fn range(headers: &HeaderMap, length: u64) -> Option<Result<Range<u64>, ()>> {
    let (first, last) = value(headers, header::RANGE)?.strip_prefix("bytes=")?.split_once('-')?;
    let part = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(suffix)) if first.is_empty() => length.saturating_sub(suffix)..length,
        _ => return None,
    };
    Some(if part.start < part.end { Ok(part) } else { Err(()) })
}

fn value(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranged(text: &str) -> Option<Result<Range<u64>, ()>> {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, text.parse().unwrap());
        range(&headers, 100)
    }

    #[test]
    fn ranges_are_cut_to_the_length_refused_outside_it_and_ignored_when_odd() {
        assert_eq!(ranged("bytes=0-9"), Some(Ok(0..10)));
        assert_eq!(ranged("bytes=90-"), Some(Ok(90..100)));
        assert_eq!(ranged("bytes=90-900"), Some(Ok(90..100)));
        assert_eq!(ranged("bytes=-5"), Some(Ok(95..100)));
        assert_eq!(ranged("bytes=100-"), Some(Err(())));
        assert_eq!(ranged("bytes=9-1"), None);
        assert_eq!(ranged("bytes=0-1,5-6"), None);
        assert_eq!(ranged("lines=1-2"), None);
    }
}
