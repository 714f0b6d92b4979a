//! What is asked for.

use std::fmt;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, RANGE,
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
    /// A part of the body, such as the rest of one that broke off; none asks for the whole.
    pub range: Option<Range>,
    /// The media types wanted, as an `Accept` header.
    pub accept: Option<&'static str>,
    /// The Content-Encoding wanted, as an `Accept-Encoding` header: that of which a digest was declared. None sends no such header.
    pub encoding: Option<String>,
    /// Whether only the head of the answer is asked for (HEAD).
    pub head: bool,
    /// Whether redirects are followed only as long as they stay at the origin of the URL.
    pub within_origin: bool,
    /// Whether an answer is given also where a bot defence or a form to log in seems to answer: who asks has more to judge it
    /// by ([`Response::wall`](crate::Response::wall)). An error status stays an error.
    pub judges_walls: bool,
    /// What leads to the URL. Default: an invitation.
    pub errand: Errand,
    /// The most bytes of the body, those before a range included; none = what the configuration says.
    pub largest: Option<u64>,
}

/// A POST request: a word to a hub or an inbox. Its `Debug` hides the body, which may hold a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct PostRequest {
    /// Where it goes.
    pub url: Url,
    /// What the body is.
    pub media_type: String,
    /// The body.
    pub body: Bytes,
    /// What more is said about it, by name and value; a name or value that no header can carry is left out.
    pub headers: Vec<(&'static str, String)>,
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

/// A part of a body. A server that knows no ranges answers 200 with the whole; so does one that has another version now, if it
/// is told which one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first byte wanted, counted from 0.
    pub from: u64,
    /// The first byte behind it that is not wanted, beyond `from`; none asks for the rest.
    pub to: Option<u64>,
    /// The strong `ETag`, or the `Last-Modified`, of the body that it is to be a part of (RFC 9110, 13.1.5); none where no part of
    /// one has come yet.
    pub if_range: Option<String>,
}

impl Range {
    /// The rest of a body, from the byte `from` on, if it still is the version of which `if_range` speaks.
    pub fn rest(from: u64, if_range: String) -> Self {
        Self { from, to: None, if_range: Some(if_range) }
    }
}

impl GetRequest {
    /// The whole of `url`, whatever is held.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            validators: Validators::default(),
            range: None,
            accept: None,
            encoding: None,
            head: false,
            within_origin: false,
            judges_walls: false,
            errand: Errand::default(),
            largest: None,
        }
    }

    /// Its headers. A value that no header can carry came from no header either: such a condition is left out,
    /// and the answer is then the whole body, which is right under any condition.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        put(&mut headers, IF_NONE_MATCH, self.validators.etag.as_deref());
        put(&mut headers, IF_MODIFIED_SINCE, self.validators.last_modified.as_deref());
        put(&mut headers, ACCEPT, self.accept);
        put(&mut headers, ACCEPT_ENCODING, self.encoding.as_deref());
        if let Some(range) = &self.range
            && (range.if_range.is_none() || put(&mut headers, IF_RANGE, range.if_range.as_deref()))
        {
            let last = range.to.map_or_else(String::new, |to| to.saturating_sub(1).to_string());
            let range = format!("bytes={}-{last}", range.from);
            headers.insert(RANGE, from_text(&range).expect("digits fit a header"));
        }
        headers
    }
}

impl PostRequest {
    /// A body for `url`.
    pub fn new(url: Url, media_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let (media_type, body) = (media_type.into(), body.into());
        Self { url, media_type, body, headers: Vec::new(), errand: Errand::default() }
    }

    /// Its headers.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            if let (Ok(name), Some(value)) = (HeaderName::from_bytes(name.as_bytes()), from_text(value)) {
                headers.append(name, value);
            }
        }
        put(&mut headers, CONTENT_TYPE, Some(&self.media_type));
        headers
    }
}

impl fmt::Debug for PostRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostRequest")
            .field("url", &crate::redacted(&self.url))
            .field("media_type", &self.media_type)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
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
    fn a_body_is_sent_as_what_it_is_and_printed_by_its_length() {
        let url = "http://u:secret@hub.example/".parse().unwrap();
        let headers = vec![("link", "<http://t/>; rel=self".to_owned()), ("x-bad", "a\r\nb".to_owned())];
        let request = PostRequest { headers, ..PostRequest::new(url, "application/xml", "hub.secret=x") };
        let sent = request.headers();
        assert_eq!((&sent["content-type"], sent.len()), (&"application/xml".parse().unwrap(), 2));
        assert!(!format!("{request:?}").contains("secret"), "{request:?}");
    }

    #[test]
    fn conditions_and_range_are_sent_as_they_were_received() {
        let validators =
            Validators { etag: Some("W/\"ü\"".into()), last_modified: Some("Tue, 01 Jan 2013".into()) };
        let range = Some(Range::rest(7, "\"x\"".into()));
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
        let range = Some(Range::rest(7, "a\r\nb".into()));
        assert!(GetRequest { range, ..request() }.headers().is_empty());
    }

    #[test]
    fn a_part_is_asked_for_with_its_last_byte_and_without_a_condition_if_there_is_none() {
        let range = Some(Range { from: 0, to: Some(100), if_range: None });
        let headers = GetRequest { range, ..request() }.headers();
        assert_eq!(headers["range"], "bytes=0-99");
        assert_eq!(headers.len(), 1);
    }
}
