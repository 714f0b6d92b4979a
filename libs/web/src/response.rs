//! A usable response, and its body.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, HeaderName, LAST_MODIFIED};
use jiff::Timestamp;
use model::{Evidence, Validators, content_coding};
use secrets::redacted;
use tokio::time::Instant;
use url::Url;

use crate::body_chunks::BodyChunks;
use crate::body_limits::Watch;
use crate::politeness::Permit;
use crate::redirect::Way;
use crate::send::Answer;
use crate::wall::Look;
use crate::{Client, ContentRange, ErrorKind, Exchange, Wall, WebError, headers};

/// HTTP dates have whole seconds; one more for clocks that are read twice.
const CLOCK_STEP: Duration = Duration::from_secs(2);
/// Longest validator that is taken, in bytes.
const LONGEST_VALIDATOR: usize = 1024;
/// Longest Content-Encoding that is kept, in bytes.
const LONGEST_CODING: usize = 255;
/// Longest media type that is taken, in bytes.
const LONGEST_MEDIA_TYPE: usize = 255;

/// A usable response: 2xx, 206 to a request for a range, or 304 to one with a condition.
///
/// It keeps its permit of the origin until the body has ended or broken off, or it is dropped.
pub struct Response {
    status: u16,
    headers: HeaderMap,
    way: Way,
    watch: Watch,
    received: u64,
    look: Look,
    body: Body,
}

enum Body {
    Open { pieces: BodyChunks, exchange: Option<Box<dyn Exchange>>, _permit: Permit },
    Ended,
    Broken(WebError),
}

impl Response {
    pub(crate) fn new(answer: Answer, way: Way, watch: Watch) -> Self {
        let Answer { http, permit, exchange, look, looked_for, .. } = answer;
        let (head, pieces) = http.into_parts();
        let body = Body::Open { pieces, exchange, _permit: permit };
        let status = head.status.as_u16();
        let headers = head.headers;
        let mut response = Self { status, headers, way, watch, received: 0, look, body };
        // A 304 states the length of the body that it does not send.
        let announced = response.content_length().filter(|_| status != 304);
        let before = response.content_range().filter(|_| status == 206).map_or(0, |range| range.from);
        response.watch = response.watch.expecting(before, announced);
        response.watch.note(0, looked_for);
        response
    }

    /// Limits the whole body to this time, whatever its length.
    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.watch.within(time);
        self
    }

    /// For a HEAD request: the stated length belongs to a body that is not sent.
    pub(crate) fn without_body(mut self) -> Self {
        self.body = Body::Ended;
        self
    }

    pub(crate) fn add_requests(&mut self, earlier: u32) {
        self.way.requests += earlier;
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The URL that answered: the last one after redirects.
    pub fn final_url(&self) -> &Url {
        self.way.final_url()
    }

    /// The URLs that redirected, in order; empty when the first one answered.
    pub fn redirects(&self) -> &[Url] {
        &self.way.redirects
    }

    /// How many requests were sent for it: redirects, retries, and a robots.txt that was needed first.
    pub fn requests(&self) -> u32 {
        self.way.requests
    }

    /// The validators of this version. A `Last-Modified` within the seconds of the response itself is left
    /// out: another version may follow with the same time, and would be mistaken for this one (RFC 9110,
    /// section 8.8.2.2). So is a validator of more than a KiB: it is kept with each resource, and a server that
    /// sends one is only asked for the whole version again.
    pub fn validators(&self) -> Validators {
        let text = |name| {
            let value = self.headers.get(name).filter(|value| value.len() <= LONGEST_VALIDATOR)?;
            String::from_utf8(value.as_bytes().into()).ok()
        };
        let last_modified =
            text(LAST_MODIFIED).filter(|modified| tells_versions_apart(modified, text(DATE).as_deref()));
        Validators { etag: text(ETAG), last_modified }
    }

    /// `Content-Length`: the bytes of this body; for a 206 those of the part, for a 304 those it would have
    /// had.
    pub fn content_length(&self) -> Option<u64> {
        self.header_text(CONTENT_LENGTH)?.parse().ok()
    }

    /// The range of a 206; none if it is not stated.
    pub fn content_range(&self) -> Option<ContentRange> {
        self.header("content-range").and_then(ContentRange::parse)
    }

    /// The media type in lower case, without its parameters. One of more than 255 bytes is none: the names of types
    /// and subtypes have at most 127 (RFC 6838, section 4.2).
    pub fn media_type(&self) -> Option<String> {
        let essence = self.header_text(CONTENT_TYPE)?.split(';').next()?.trim();
        (1..=LONGEST_MEDIA_TYPE).contains(&essence.len()).then(|| essence.to_ascii_lowercase())
    }

    /// The Content-Encoding in lower case, if any. The bytes are returned encoded, as sent. Of one of more than 255
    /// bytes, the rest is left out: no client could decode it.
    pub fn content_encoding(&self) -> Option<String> {
        let mut coding = content_coding(self.header_text(CONTENT_ENCODING)?)?;
        coding.truncate(coding.floor_char_boundary(LONGEST_CODING));
        Some(coding)
    }

    /// The server's time of the response (`Date`), in whole seconds.
    pub fn date(&self) -> Option<Timestamp> {
        let date = httpdate::parse_http_date(self.header_text(DATE)?).ok()?;
        Timestamp::try_from(date).ok()
    }

    /// What seems to answer in place of the content. Set only if the request says that the caller judges this
    /// itself.
    pub fn wall(&self) -> Option<Wall> {
        self.look.wall
    }

    /// Whether the body is an HTML page: by its headers, which may be silent, and by its first bytes.
    pub fn is_html(&self) -> bool {
        self.look.is_html
    }

    /// The error of this response, if `wall` answered in place of the content.
    pub fn walled(&self, wall: Wall, client: &Client) -> WebError {
        let wait = match wall {
            Wall::Challenge(_) => Some(client.rest_after_challenge(self.final_url(), self.status)),
            Wall::Refusal(_) | Wall::Login => None,
        };
        let error = WebError::new(ErrorKind::Walled(wall)).on(&self.way).answered(self.status, &self.headers);
        error.retry_after(wait).sent_as(&client.user_agent())
    }

    /// The first header of that name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All headers of that name that are text.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    /// Evidence for a problem with this response: the URL that answered, the status and the headers.
    pub fn evidence(&self) -> Evidence {
        let Way { moved, redirects, .. } = &self.way;
        Evidence {
            final_url: moved.as_ref().map(redacted),
            redirects: redirects.iter().map(redacted).collect(),
            status: Some(self.status),
            headers: headers::that_matter(&self.headers),
            ..Evidence::default()
        }
    }

    /// Bytes of the body received so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The next piece of the body; none at its end. After an error, the same error is returned again.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] when the body is shorter than announced, [`ErrorKind::Timeout`] when it
    /// stalls; [`ErrorKind::TooLarge`] and [`ErrorKind::TooSlow`] when it exceeds the
    /// [limits](crate::BodyLimits).
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, WebError> {
        let (pieces, exchange) = match &mut self.body {
            Body::Open { pieces, exchange, .. } => (pieces, exchange),
            Body::Ended => return Ok(None),
            Body::Broken(error) => return Err(error.clone()),
        };
        if let Err(why) = self.watch.check_size(0) {
            return Err(self.too_large(why));
        }
        let begun = Instant::now();
        let next = tokio::time::timeout(self.watch.patience(), pieces.next()).await;
        let waited = begun.elapsed();
        let error = match next {
            Ok(Ok(Some(piece))) => {
                if let Err(why) = self.watch.check_size(piece.len() as u64) {
                    return Err(self.too_large(why));
                }
                self.watch.note(piece.len() as u64, waited);
                self.received += piece.len() as u64;
                if let Some(exchange) = exchange {
                    exchange.received(piece.len() as u64);
                }
                return Ok(Some(piece));
            }
            // A 304 states the length of the body that it does not send.
            Ok(Ok(None))
                if self.status == 304 || self.content_length().is_none_or(|all| all == self.received) =>
            {
                self.body = Body::Ended;
                return Ok(None);
            }
            Ok(Ok(None)) => WebError::new(ErrorKind::Interrupted).detail(self.progress()),
            Ok(Err(why)) => {
                let detail = format!("{}, {why}", self.progress());
                WebError::new(ErrorKind::Interrupted).detail(detail)
            }
            Err(_elapsed) => {
                let (kind, how) = self.watch.fault(waited);
                WebError::new(kind).detail(format!("{}, {how}", self.progress()))
            }
        };
        Err(self.broken(error))
    }

    fn too_large(&mut self, why: String) -> WebError {
        let error = WebError::new(ErrorKind::TooLarge).detail(why).expected(self.watch.expected());
        self.broken(error)
    }

    /// Ends the body with this error, which also ends the connection.
    fn broken(&mut self, error: WebError) -> WebError {
        let error = error.on(&self.way).answered(self.status, &self.headers);
        self.body = Body::Broken(error.clone());
        error
    }

    fn progress(&self) -> String {
        match self.content_length() {
            Some(all) => format!("{} of {all} bytes came", self.received),
            None => format!("{} bytes came", self.received),
        }
    }

    fn header_text(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("final_url", &secrets::redacted(self.final_url()))
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// Whether a modification is old enough before the response that a later one has another time.
fn tells_versions_apart(modified: &str, sent: Option<&str>) -> bool {
    let parse = |text: &str| httpdate::parse_http_date(text).ok();
    match (parse(modified), sent.and_then(parse)) {
        (Some(modified), Some(sent)) => sent >= modified + CLOCK_STEP,
        // Without a `Date` the server has no clock to doubt.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shared_and_sent_between_threads() {
        fn is_both<T: Send + Sync>() {}
        is_both::<Response>();
    }

    #[test]
    fn a_modification_of_the_second_of_the_answer_does_not_tell_versions_apart() {
        let sent = Some("Sat, 21 Nov 2026 10:50:05 GMT");
        assert!(!tells_versions_apart("Sat, 21 Nov 2026 10:50:05 GMT", sent));
        assert!(!tells_versions_apart("Sat, 21 Nov 2026 10:50:04 GMT", sent));
        assert!(tells_versions_apart("Sat, 21 Nov 2026 10:50:03 GMT", sent));
        assert!(tells_versions_apart("Sat, 21 Nov 2026 10:50:05 GMT", None));
        assert!(tells_versions_apart("no date", sent));
    }
}
