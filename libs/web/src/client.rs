//! Requests, each within the budget of its origin.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{CONTENT_RANGE, LOCATION};
use model::{Clock, Lane, SystemClock};
use url::Url;

use crate::address_guard::Guard;
use crate::credentials::Credentials;
use crate::politeness::{Limits, Permit, Politeness, Resting, Signal};
use crate::redirect::Trail;
use crate::response::{Response, Way};
use crate::retry::Retries;
use crate::retry_after::retry_after;
use crate::robots::RobotsCache;
use crate::{ErrorKind, GetRequest, Phase, WebConfig, WebError, classify, range, redacted};

/// The HTTP client. Clones share connections, budgets and counts, and cost nothing.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    config: WebConfig,
    credentials: Credentials,
    guard: Arc<Guard>,
    politeness: Politeness,
    robots: RobotsCache,
    requests: AtomicU64,
    clock: Arc<dyn Clock>,
}

/// What a request is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// What the caller wants.
    Asked,
    /// A robots.txt, for which no robots.txt is asked.
    Robots,
}

/// The head of an answer, whose body is still to come.
struct Answer {
    http: reqwest::Response,
    permit: Permit,
    retry_after: Option<Duration>,
}

impl Client {
    /// A client that behaves as `config` says.
    ///
    /// # Errors
    /// [`ErrorKind::Builder`] when the configuration makes no client.
    pub fn new(config: WebConfig) -> Result<Self, WebError> {
        Self::with_clock(config, Arc::new(SystemClock))
    }

    /// A client that reads dates in `Retry-After` by `clock`.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_clock(config: WebConfig, clock: Arc<dyn Clock>) -> Result<Self, WebError> {
        let refuse = |why: String| WebError::new(ErrorKind::Builder).detail(why);
        if config.per_origin == 0 {
            return Err(refuse(
                "per_origin is 0, so no request could ever be made; it is at least 1".to_owned(),
            ));
        }
        let credentials = Credentials::new(config.credentials.clone()).map_err(refuse)?;
        let guard = Arc::new(Guard::new(config.addresses.clone()));
        let mut builder = reqwest::Client::builder()
            .user_agent(config.user_agent_header())
            .connect_timeout(config.connect_timeout)
            .pool_max_idle_per_host(config.per_origin)
            // Redirects and retries are ours: each request is counted, and made within its origin's budget.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy();
        if let Some(resolver) = guard.resolver() {
            builder = builder.dns_resolver(resolver);
        }
        let http = builder.build().map_err(|error| refuse(classify::root(&error)))?;
        let politeness = Politeness::new(Limits {
            at_a_time: config.per_origin,
            per_second: config.requests_per_second,
            patience: config.retry_budget,
        });
        Ok(Self(Arc::new(Inner {
            http,
            config,
            credentials,
            guard,
            politeness,
            robots: RobotsCache::default(),
            requests: AtomicU64::new(0),
            clock,
        })))
    }

    /// How many requests were sent so far, redirects and retries included.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// How much longer an origin wants to be left alone, if it does. A request waits for it, within the configured budget.
    pub fn resting(&self, lane: &Lane) -> Option<Duration> {
        self.0.politeness.resting(lane)
    }

    pub(crate) fn config(&self) -> &WebConfig {
        &self.0.config
    }

    pub(crate) fn known_robots(&self) -> &RobotsCache {
        &self.0.robots
    }

    /// Makes one attempt, following redirects.
    ///
    /// # Errors
    /// [`WebError`] when the answer is not one to be used.
    pub async fn get(&self, request: GetRequest) -> Result<Response, WebError> {
        self.travel(request, Errand::Asked).await
    }

    /// Makes one attempt for an errand, following redirects.
    pub(crate) async fn travel(&self, request: GetRequest, errand: Errand) -> Result<Response, WebError> {
        let url = request.url.clone();
        let mut at = url.clone();
        let mut trail = Trail::default();
        let mut requests = 0;
        loop {
            let describe = |error: WebError, requests| Err(error.about(&url, &at).with_requests(requests));
            let Answer { http, permit, retry_after } =
                match self.send(&at, &request, errand, &mut requests).await {
                    Ok(answer) => answer,
                    Err(error) => return describe(error, requests),
                };
            let status = http.status().as_u16();
            let location = http.headers().get(LOCATION).map(|value| value.as_bytes());
            match trail.next(status, location, &at, self.0.config.max_redirects) {
                Ok(None) => {}
                // The answer and its place go before the next place is asked for: no request waits with one in hand.
                Ok(Some(next)) => {
                    at = next;
                    continue;
                }
                Err((kind, detail)) => return describe(WebError::new(kind).detail(detail), requests),
            }
            if let Some(error) = fault(&http, &request) {
                return describe(error.retry_after(retry_after), requests);
            }
            let way = Way { url, final_url: at, redirects: trail.into_passed(), requests };
            return Ok(Response::new(http, permit, way, self.0.config.stall_timeout));
        }
    }

    /// Makes as many attempts as configured, as long as there is sense in another one, waiting longer each time and
    /// as long as the server asks for. Only the way to the answer is tried again, not a body that breaks.
    ///
    /// # Errors
    /// The last attempt's [`WebError`].
    pub async fn get_with_retries(&self, request: GetRequest) -> Result<Response, WebError> {
        let mut retries = Retries::new(&self.0.config);
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

    /// Sends one request and waits for the head of its answer.
    async fn send(
        &self,
        at: &Url,
        request: &GetRequest,
        errand: Errand,
        requests: &mut u32,
    ) -> Result<Answer, WebError> {
        let Inner { http, config, politeness, .. } = &*self.0;
        let bad_url = |why: String| WebError::new(ErrorKind::BadUrl).detail(why);
        if !matches!(at.scheme(), "http" | "https") {
            return Err(bad_url(format!("its scheme is {:?}", at.scheme())));
        }
        let lane = Lane::of(at).map_err(|error| bad_url(error.to_string()))?;
        self.0
            .guard
            .check(at)
            .map_err(|refused| WebError::new(ErrorKind::RefusedAddress).detail(refused.to_string()))?;
        let spacing = match errand {
            Errand::Asked => self.spacing(&lane, at).await?,
            Errand::Robots => Duration::ZERO,
        };
        let mut headers = request.headers();
        // By the origin of this very request: a redirect that leaves it leaves its credentials behind.
        self.0.credentials.add_to(&mut headers, &lane);
        let prepared = http.get(at.clone()).headers(headers).build().map_err(classify::before_answer)?;
        let permit = politeness
            .enter(&lane, spacing)
            .await
            .map_err(|Resting { left }| WebError::new(ErrorKind::Resting).retry_after(Some(left)))?;
        *requests += 1;
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        let http = match tokio::time::timeout(config.first_byte_timeout, http.execute(prepared)).await {
            Ok(answer) => answer.map_err(classify::before_answer)?,
            Err(_elapsed) => {
                let detail = format!("nothing came for {:?}", config.first_byte_timeout);
                return Err(WebError::new(ErrorKind::Timeout(Phase::FirstByte)).detail(detail));
            }
        };
        let retry_after = retry_after(http.headers(), self.0.clock.now(), config.retry_after_max);
        permit.note(Signal { status: http.status().as_u16(), retry_after });
        tracing::debug!(url.full = redacted(at), http.status = http.status().as_u16(), "answered");
        Ok(Answer { http, permit, retry_after })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", &self.0.config).field("requests", &self.requests()).finish()
    }
}

/// Why an answer that is no redirect is of no use; none if it is.
fn fault(answer: &reqwest::Response, request: &GetRequest) -> Option<WebError> {
    let status = answer.status().as_u16();
    match status {
        304 if request.validators.is_empty() => Some(WebError::new(ErrorKind::Unasked(status))),
        // Its bytes would be taken for the whole, or be put in the wrong place.
        206 => {
            let header = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
            let asked = request.range.as_ref().map(|range| range.from);
            if asked.is_some() && header.and_then(range::first_byte) == asked {
                return None;
            }
            let detail = match (asked, header) {
                (None, _) => "the whole was asked for".to_owned(),
                (Some(from), header) => {
                    format!(
                        "asked from byte {from}, Content-Range: {}",
                        header.unwrap_or("none").escape_debug()
                    )
                }
            };
            Some(WebError::new(ErrorKind::Unasked(status)).detail(detail))
        }
        200..=299 | 304 => None,
        _ => Some(WebError::new(ErrorKind::Status(status))),
    }
}
