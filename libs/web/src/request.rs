//! Requests.

use std::borrow::Cow;
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
    /// The URL.
    pub url: Url,
    /// The stored version: the server answers 304 if it is still the current one.
    pub validators: Validators,
    /// A part of the body, such as the rest of one that broke off; none requests the whole.
    pub range: Option<Range>,
    /// The accepted media types, as an `Accept` header.
    pub accept: Option<Cow<'static, str>>,
    /// The accepted Content-Encoding, as an `Accept-Encoding` header: the one that a digest was declared for.
    /// None sends no such header.
    pub encoding: Option<String>,
    /// Whether only the response head is requested (HEAD).
    pub head: bool,
    /// Whether redirects are followed only as long as they stay at the origin of the URL.
    pub within_origin: bool,
    /// Whether a response is returned even where it looks like a bot defence or a login form: the caller has
    /// more to judge it by ([`Response::wall`](crate::Response::wall)). An error status stays an error.
    pub judges_walls: bool,
    /// Whether an XML document with an error status is a response: OAI-PMH says its errors in such documents.
    pub takes_error_documents: bool,
    /// Whether it has a connection of its own while it lasts, by HTTP/1.1. On a shared one, requests share the windows
    /// of TCP too, and a lost packet stops them all. It needs a permit of its origin as any other request.
    pub apart: bool,
    /// The purpose of the request. Default: an invitation.
    pub errand: RequestPurpose,
    /// The most bytes of the body, including those before a range; none = the configuration's limit.
    pub largest: Option<u64>,
}

/// A POST request to a hub or an inbox. Its `Debug` hides the body, which may hold a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct PostRequest {
    /// The URL.
    pub url: Url,
    /// The media type of the body.
    pub media_type: String,
    /// The body.
    pub body: Bytes,
    /// Further headers, by name and value; one that no header can carry is left out.
    pub headers: Vec<(&'static str, String)>,
    /// The purpose of the request. Default: an invitation.
    pub errand: RequestPurpose,
}

/// Whether the Source published the URL or the crawler followed a link: robots.txt is for crawlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RequestPurpose {
    /// The operator gave the URL, or a ResourceSync document lists it.
    #[default]
    Invited,
    /// A link outside of ResourceSync documents led here: one of a web page or a robots.txt, or a path
    /// upwards from there.
    Crawling,
}

/// A part of a body. A server without ranges answers 200 with the whole. So does one that has another version
/// now, if the request states which one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first byte, counted from 0.
    pub from: u64,
    /// The byte behind the last one, beyond `from`; none requests the rest.
    pub to: Option<u64>,
    /// The strong `ETag`, or the `Last-Modified`, of the body that the part belongs to (RFC 9110, 13.1.5);
    /// none if no part of it was received yet.
    pub if_range: Option<String>,
}

impl Range {
    /// The rest of a body from the byte `from` on, if it is still the version of `if_range`.
    pub fn rest(from: u64, if_range: String) -> Self {
        Self { from, to: None, if_range: Some(if_range) }
    }
}

impl GetRequest {
    /// The whole of `url`, unconditionally.
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
            takes_error_documents: false,
            apart: false,
            errand: RequestPurpose::default(),
            largest: None,
        }
    }

    /// Its headers. A validator that no header can carry did not come from a header either, and is left out.
    /// The response is then the whole body, which is right under any condition.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        put(&mut headers, IF_NONE_MATCH, self.validators.etag.as_deref());
        put(&mut headers, IF_MODIFIED_SINCE, self.validators.last_modified.as_deref());
        put(&mut headers, ACCEPT, self.accept.as_deref());
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
    /// A POST of this body to `url`.
    pub fn new(url: Url, media_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let media_type = media_type.into();
        let body = body.into();
        Self { url, media_type, body, headers: Vec::new(), errand: RequestPurpose::default() }
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
            .field("url", &secrets::redacted(&self.url))
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
        let headers =
            GetRequest { validators, range, accept: Some("text/xml".into()), ..request() }.headers();
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
