//! Conditional requests (RFC 9110, section 13).

use axum::http::{HeaderMap, header};

/// Whether `header` (`If-Match`, `If-None-Match`, `If-Range`) contains `etag` or `*`. None if the header is missing.
///
/// A weak tag (`W/`) is that of equal content, perhaps not of the same bytes. It does for `If-None-Match` alone (RFC
/// 9110, 13.1).
pub fn etag_matches(headers: &HeaderMap, header: header::HeaderName, etag: &str) -> Option<bool> {
    let takes_weak = header == header::IF_NONE_MATCH;
    let mut values = headers.get_all(header).iter().peekable();
    values.peek()?;
    let mut tags =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim);
    let is_it = |tag: &str| tag == etag || takes_weak && tag.strip_prefix("W/") == Some(etag);
    Some(tags.any(|tag| tag == "*" || is_it(tag)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn conditions_name_one_of_several_tags_or_any() {
        for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
            let with = |value: Option<&'static str>| {
                let mut headers = HeaderMap::new();
                headers.extend(value.map(|value| (name.clone(), HeaderValue::from_static(value))));
                etag_matches(&headers, name.clone(), "\"7\"")
            };
            assert_eq!(with(None), None);
            for good in ["*", "\"7\"", "\"6\", \"7\"", "W/\"6\", \"7\""] {
                assert_eq!(with(Some(good)), Some(true), "{good}");
            }
            for bad in ["", "7", "\"8\"", "\"77\"", "W/\"8\""] {
                assert_eq!(with(Some(bad)), Some(false), "{bad}");
            }
            // Its bytes may be others; a reader of the same content needs no other ones.
            assert_eq!(with(Some("W/\"7\"")), Some(name == header::IF_NONE_MATCH));
        }
    }
}
