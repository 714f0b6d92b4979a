//! From a request to a response: redirects and attempts.

use http::header::{CONTENT_LENGTH, LOCATION};
use secrets::redacted;
use tokio::time::Instant;
use url::Url;

use crate::body_limits::Watch;
use crate::redirect::{RedirectChain, Way};
use crate::response::Response;
use crate::retry::Retries;
use crate::send::{Answer, Method};
use crate::wall::{self, Seen};
use crate::{Client, ErrorKind, GetRequest, PostRequest, RequestPurpose, Wall, WebError, fault};

impl Client {
    /// Makes one attempt, following redirects.
    ///
    /// # Errors
    /// [`WebError`] when the response cannot be used.
    pub async fn get(&self, request: GetRequest) -> Result<Response, WebError> {
        let errand = request.errand;
        self.travel(request, Some(errand)).await
    }

    /// Makes as many attempts as configured, while a retry makes sense. It waits longer each time, and as
    /// long as the server requests. Only the request is retried, not a body that breaks off.
    ///
    /// # Errors
    /// The last attempt's [`WebError`].
    pub async fn get_with_retries(&self, request: GetRequest) -> Result<Response, WebError> {
        let mut retries = Retries::new(self.config());
        let mut earlier = 0;
        loop {
            let error = match self.get(request.clone()).await {
                Ok(mut response) => {
                    response.add_requests(earlier);
                    return Ok(response);
                }
                Err(error) => error,
            };
            earlier += error.requests();
            let Some(wait) = retries.next_wait(error.disposition()) else {
                return Err(error.with_requests(earlier));
            };
            tracing::debug!(url.full = redacted(&request.url), wait_ms = wait.as_millis(), %error, "trying again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends a body once. Only 307 and 308 are followed, which repeat the very same request elsewhere (RFC
    /// 9110, 15.4.8); never from https to http, since the body may hold a secret.
    ///
    /// # Errors
    /// [`WebError`] when the status is not 2xx, or no response came. The server may have received it all the
    /// same: the caller decides whether to send it again.
    pub async fn post(&self, request: PostRequest) -> Result<Response, WebError> {
        let mut moved = None;
        let mut trail = RedirectChain::default();
        let mut requests = 0;
        let result = self.carry(&request, &mut moved, &mut trail, &mut requests).await;
        let way = Way { url: request.url, moved, redirects: trail.into_passed(), requests };
        match result {
            Ok(answer) => Ok(Response::new(answer, way, self.watch(None))),
            Err(error) => Err(error.on(&way)),
        }
    }

    /// Sends a body, following redirects, and records them.
    async fn carry(
        &self,
        request: &PostRequest,
        moved: &mut Option<Url>,
        trail: &mut RedirectChain,
        requests: &mut u32,
    ) -> Result<Answer, WebError> {
        let method = Method::Post(&request.body);
        let mut patience = self.config().first_byte_timeout;
        loop {
            let at = moved.as_ref().unwrap_or(&request.url);
            let errand = Some(request.errand);
            let answer = self.send(at, request.headers(), method, errand, &mut patience, requests).await?;
            let status = answer.http.status().as_u16();
            let location = answer.http.headers().get(LOCATION).map(|value| value.as_bytes());
            let next = match status {
                307 | 308 => trail.next(status, location, at, self.config().max_redirects),
                200..=299 => return Ok(answer),
                _ => Ok(None),
            };
            match next {
                Ok(Some(next)) if at.scheme() == "https" && next.scheme() != "https" => {
                    let detail = "it leads from https to http, and the body is not for everybody";
                    return Err(WebError::new(ErrorKind::BadRedirect).detail(detail));
                }
                Ok(Some(next)) => *moved = Some(next),
                Ok(None) => {
                    return Err(answer.described(WebError::new(ErrorKind::Status(status))));
                }
                Err((kind, detail)) => return Err(WebError::new(kind).detail(detail)),
            }
        }
    }

    /// Makes one attempt, following redirects. Without an errand the request is for a robots.txt, which needs
    /// no robots.txt itself.
    pub(crate) async fn travel(
        &self,
        request: GetRequest,
        errand: Option<RequestPurpose>,
    ) -> Result<Response, WebError> {
        let mut moved = None;
        let mut trail = RedirectChain::default();
        let mut requests = 0;
        let is_head = request.head;
        let largest = request.largest;
        let result = self.walk(&request, errand, &mut moved, &mut trail, &mut requests).await;
        let way = Way { url: request.url, moved, redirects: trail.into_passed(), requests };
        match result {
            Ok(answer) => {
                let response = Response::new(answer, way, self.watch(largest));
                Ok(if is_head { response.without_body() } else { response })
            }
            Err(error) => Err(error.on(&way)),
        }
    }

    /// The limits of a body.
    fn watch(&self, largest: Option<u64>) -> Watch {
        let mut limits = self.config().bodies.clone();
        limits.largest = largest.unwrap_or(limits.largest);
        Watch::new(limits, self.config().stall_timeout)
    }

    /// Checks for a bot defence or a login form. A body whose announced length is too large is not read.
    async fn look(&self, answer: &mut Answer, request: &GetRequest, at: &Url) {
        let status = answer.http.status().as_u16();
        let headers = answer.http.headers();
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let largest = request.largest.unwrap_or(self.config().bodies.largest);
        if status == 304 || length.is_some_and(|length: u64| length > largest) {
            return;
        }
        if let Some(look) = wall::by_head(status, headers) {
            answer.look = look;
            return;
        }
        let begun = Instant::now();
        let patience = self.config().stall_timeout.min(wall::LOOK);
        let pieces = answer.http.body_mut();
        let (prefix, is_whole) = pieces.look(wall::PREFIX, patience, wall::may_become_html).await;
        answer.looked_for = begun.elapsed();
        let seen = Seen { headers: answer.http.headers(), asked: &request.url, at };
        answer.look = wall::judge(&seen, &prefix, is_whole);
    }

    /// Follows redirects to a response that is none, and records them.
    async fn walk(
        &self,
        request: &GetRequest,
        errand: Option<RequestPurpose>,
        moved: &mut Option<Url>,
        trail: &mut RedirectChain,
        requests: &mut u32,
    ) -> Result<Answer, WebError> {
        let method = if request.head { Method::Head } else { Method::Get { apart: request.apart } };
        let mut patience = self.config().first_byte_timeout;
        loop {
            let at = moved.as_ref().unwrap_or(&request.url);
            let mut answer =
                self.send(at, request.headers(), method, errand, &mut patience, requests).await?;
            let status = answer.http.status().as_u16();
            let location = answer.http.headers().get(LOCATION).map(|value| value.as_bytes());
            match trail.next(status, location, at, self.config().max_redirects) {
                Ok(None) => {}
                Ok(Some(next)) if request.within_origin && next.origin() != request.url.origin() => {
                    let detail = format!("it leads to another origin, {}", redacted(&next));
                    return Err(WebError::new(ErrorKind::BadRedirect).detail(detail));
                }
                // The response and its permit are dropped before the next permit is requested: no request
                // waits with one in hand.
                Ok(Some(next)) => {
                    *moved = Some(next);
                    continue;
                }
                Err((kind, detail)) => return Err(WebError::new(kind).detail(detail)),
            }
            if !request.head {
                self.look(&mut answer, request, at).await;
            }
            let fault = fault::of(&answer.http, request);
            if let Some(wall) = answer.look.wall.filter(|_| fault.is_some() || !request.judges_walls) {
                let error = answer.described(WebError::new(ErrorKind::Walled(wall)));
                let error = error.sent_as(&self.user_agent());
                return Err(match wall {
                    Wall::Challenge(_) => error.retry_after(Some(self.rest_after_challenge(at, status))),
                    Wall::Refusal(_) | Wall::Login => error,
                });
            }
            return match fault {
                Some(error) => Err(answer.described(error)),
                None => Ok(answer),
            };
        }
    }
}
