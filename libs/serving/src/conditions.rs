//! Conditional requests (RFC 9110, section 13).

use axum::http::{HeaderMap, header};

/// Whether `header` (`If-Match`, `If-None-Match`, RFC 9110) contains `etag` or `*`. None if the header is missing.
pub fn etag_matches(headers: &HeaderMap, header: header::HeaderName, etag: &str) -> Option<bool> {
    let mut values = headers.get_all(header).iter().peekable();
    values.peek()?;
    let mut tags =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim);
    Some(tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn conditions_name_one_of_several_tags_or_any() {
        let with = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(value.map(|value| (header::IF_MATCH, HeaderValue::from_static(value))));
            etag_matches(&headers, header::IF_MATCH, "\"7\"")
        };
        assert_eq!(with(None), None);
        for good in ["*", "\"7\"", "\"6\", \"7\"", "W/\"7\""] {
            assert_eq!(with(Some(good)), Some(true), "{good}");
        }
        for bad in ["", "7", "\"8\"", "\"77\""] {
            assert_eq!(with(Some(bad)), Some(false), "{bad}");
        }
    }
}
