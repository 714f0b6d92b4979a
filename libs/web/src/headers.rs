//! Response headers that help an operator to judge a problem.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, RETRY_AFTER};

/// Bytes of a header's value that are kept.
const KEPT: usize = 200;

/// The headers that matter for a problem, by their lower-case names. Their size is bounded.
pub(crate) fn that_matter(headers: &HeaderMap) -> BTreeMap<String, String> {
    let names = [CONTENT_TYPE, CONTENT_LENGTH, ETAG, LAST_MODIFIED, RETRY_AFTER];
    let told = names.into_iter().filter_map(|name| {
        let mut value = String::from_utf8_lossy(headers.get(&name)?.as_bytes()).into_owned();
        value.truncate(value.floor_char_boundary(KEPT));
        Some((name.as_str().to_owned(), value))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_what_matters_is_kept_and_no_more_of_it_than_a_line() {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, HeaderValue::from_str(&"e".repeat(5_000)).unwrap());
        headers.insert(RETRY_AFTER, HeaderValue::from_static("120"));
        headers.insert("set-cookie", HeaderValue::from_static("session=secret"));
        let told = that_matter(&headers);
        assert_eq!(told.keys().collect::<Vec<_>>(), ["etag", "retry-after"]);
        assert_eq!((told["etag"].len(), told["retry-after"].as_str()), (KEPT, "120"));
    }
}
