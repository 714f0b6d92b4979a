//! What is asked for.

use http::header::{
    ACCEPT, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use model::Validators;
use url::Url;

/// A GET request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetRequest {
    /// What to get.
    pub url: Url,
    /// The version that is held: a 304 answers if it is still the current one.
    pub validators: Validators,
    /// The rest of a body that broke off; none asks for the whole.
    pub range: Option<Range>,
    /// The media types wanted, as an `Accept` header.
    pub accept: Option<&'static str>,
    /// What leads to the URL. Default: an invitation.
    pub errand: Errand,
}

/// What leads a request to its URL: robots.txt is for those who come without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Errand {
    /// The operator gave the URL, or a ResourceSync publication names it.
    #[default]
    Invited,
    /// A link led here that no publication laid: one of a web page, of a robots.txt, or a way upwards from there.
    Crawling,
}

/// The rest of a body, if it still is the same one: otherwise the server answers 200 with the whole of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first byte wanted, counted from 0.
    pub from: u64,
    /// The strong `ETag`, or the `Last-Modified`, of the body that broke off (RFC 9110, 13.1.5).
    pub if_range: String,
}

impl GetRequest {
    /// The whole of `url`, whatever is held.
    pub fn new(url: Url) -> Self {
        Self { url, validators: Validators::default(), range: None, accept: None, errand: Errand::default() }
    }

    /// Its headers. A value that no header can carry came from no header either: such a condition is left out,
    /// and the answer is then the whole body, which is right under any condition.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        put(&mut headers, IF_NONE_MATCH, self.validators.etag.as_deref());
        put(&mut headers, IF_MODIFIED_SINCE, self.validators.last_modified.as_deref());
        put(&mut headers, ACCEPT, self.accept);
        if let Some(range) = &self.range
            && put(&mut headers, IF_RANGE, Some(&range.if_range))
        {
            headers.insert(RANGE, from_text(&format!("bytes={}-", range.from)).expect("digits fit a header"));
        }
        headers
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) -> bool {
    let Some(value) = value.and_then(from_text) else { return false };
    headers.insert(name, value);
    true
}

fn from_text(text: &str) -> Option<HeaderValue> {
    // From bytes, since an ETag may hold characters beyond ASCII.
    HeaderValue::from_bytes(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> GetRequest {
        GetRequest::new("http://example.org/".parse().unwrap())
    }

    #[test]
    fn plain_request_sets_no_condition() {
        assert!(request().headers().is_empty());
    }

    #[test]
    fn conditions_and_range_are_sent_as_they_were_received() {
        let validators =
            Validators { etag: Some("W/\"ü\"".into()), last_modified: Some("Tue, 01 Jan 2013".into()) };
        let range = Some(Range { from: 7, if_range: "\"x\"".into() });
        let headers = GetRequest { validators, range, accept: Some("text/xml"), ..request() }.headers();
        assert_eq!(headers["if-none-match"].as_bytes(), "W/\"ü\"".as_bytes());
        assert_eq!(headers["if-modified-since"], "Tue, 01 Jan 2013");
        assert_eq!(headers["accept"], "text/xml");
        assert_eq!(
            (&headers["range"], &headers["if-range"]),
            (&"bytes=7-".parse().unwrap(), &"\"x\"".parse().unwrap())
        );
    }

    #[test]
    fn a_range_is_not_sent_without_its_condition() {
        let range = Some(Range { from: 7, if_range: "a\r\nb".into() });
        assert!(GetRequest { range, ..request() }.headers().is_empty());
    }
}
