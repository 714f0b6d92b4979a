//! A usable response, and its body.

mod body;
mod head;

use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use model::Evidence;
use secrets::redacted;
use url::Url;

use crate::body_limits::Watch;
use crate::redirect::Way;
use crate::send::Answer;
use crate::wall::Look;
use crate::{Client, ErrorKind, Wall, WebError, headers};

use body::Body;

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
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("final_url", &redacted(self.final_url()))
            .field("received", &self.received)
            .finish_non_exhaustive()
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
}
