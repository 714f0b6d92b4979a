//! Sends one request, within the budget of its origin.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, FROM, HeaderMap, HeaderValue, USER_AGENT};
use http::{Request, Response};
use model::Origin;
use secrets::redacted;
use tokio::time::Instant;
use url::Url;

use crate::body_chunks::BodyChunks;
use crate::client::Inner;
use crate::politeness::{Asks, CoolingDown, Permit, Signal};
use crate::retry_after::retry_after;
use crate::wall::Look;
use crate::{Client, ErrorKind, Exchange, OriginRest, Phase, RequestPurpose, WebError, ports, uri};

/// The `Accept` header when the caller names no media type.
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");

/// A response head; the body is still to come.
pub(crate) struct Answer {
    pub(crate) http: Response<BodyChunks>,
    pub(crate) permit: Permit,
    pub(crate) exchange: Option<Box<dyn Exchange>>,
    pub(crate) retry_after: Option<Duration>,
    /// Whether a credential was sent.
    pub(crate) authorized: bool,
    /// The findings in its head and first bytes, once they were examined.
    pub(crate) look: Look,
    /// How long the first bytes of its body were waited for.
    pub(crate) looked_for: Duration,
}

impl Answer {
    /// Adds to an error what this response says.
    pub(crate) fn described(&self, error: WebError) -> WebError {
        error
            .answered(self.http.status().as_u16(), self.http.headers())
            .retry_after(self.retry_after)
            .authorized(self.authorized)
    }
}

/// The method of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Method<'a> {
    Get {
        /// Whether it has a connection of its own.
        apart: bool,
    },
    Head,
    Post(&'a Bytes),
}

impl Client {
    /// Sends one request, and waits for its response head: no longer than `patience`, which the wait shortens. So a
    /// request with redirects takes a server's time once.
    pub(crate) async fn send(
        &self,
        at: &Url,
        mut headers: HeaderMap,
        method: Method<'_>,
        errand: Option<RequestPurpose>,
        patience: &mut Duration,
        requests: &mut u32,
    ) -> Result<Answer, WebError> {
        let Inner { config, politeness, observer, .. } = &*self.0;
        let agreed = &*self.1;
        let bad_url = |why: String| WebError::new(ErrorKind::BadUrl).detail(why);
        if !matches!(at.scheme(), "http" | "https") {
            return Err(bad_url(format!("its scheme is {:?}", at.scheme())));
        }
        let origin = Origin::of(at).map_err(|error| bad_url(error.to_string()))?;
        agreed
            .access
            .check(at)
            .map_err(|refused| WebError::new(ErrorKind::RefusedAddress).detail(refused.to_string()))?;
        // A literal address was checked first: its class says more than its port.
        if at.port().is_some_and(ports::is_bad) && agreed.entry.as_ref() != Some(&origin) {
            return Err(WebError::new(ErrorKind::RefusedPort));
        }
        let spacing = match errand {
            Some(errand) => self.spacing(&origin, at, errand, requests).await?,
            None => Duration::ZERO,
        };
        headers.insert(USER_AGENT, agreed.user_agent.clone());
        headers.extend(agreed.from.clone().map(|from| (FROM, from)));
        // By the origin of this very request: a redirect to another origin does not carry the credentials
        // along.
        let authorized = agreed.credentials.add_to(&mut headers, &origin);
        if let Some(value) = uri::authorization(at) {
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        headers.entry(ACCEPT).or_insert(ANYTHING);
        let uri = uri::uri(at).map_err(|error| bad_url(error.to_string()))?;
        let apart = matches!(method, Method::Get { apart: true });
        let (method, body) = match method {
            Method::Get { .. } => (http::Method::GET, Bytes::new()),
            Method::Head => (http::Method::HEAD, Bytes::new()),
            Method::Post(body) => (http::Method::POST, body.clone()),
        };
        let mut prepared = Request::new(body);
        *prepared.method_mut() = method;
        *prepared.uri_mut() = uri;
        *prepared.headers_mut() = headers;
        let permit = politeness
            .enter(
                &origin,
                Asks { entry: agreed.entry.as_ref(), spacing, pace: agreed.pace, per_host: agreed.per_host },
                agreed.places.as_deref(),
            )
            .await
            .map_err(|CoolingDown { left }| WebError::new(ErrorKind::CoolingDown).retry_after(Some(left)))?;
        *requests += 1;
        for count in std::iter::once(&self.0.requests).chain(self.2.as_deref()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let mut exchange = observer.get().map(|observer| observer.begin(&origin));
        let sent = Instant::now();
        let answered = tokio::time::timeout(*patience, agreed.access.carrier.carry(prepared, apart)).await;
        let took = sent.elapsed();
        if let Some(exchange) = &mut exchange {
            let status = answered.as_ref().ok().and_then(|answer| answer.as_ref().ok());
            exchange.answered(status.map(|answer| answer.status().as_u16()), took);
        }
        let http = match answered {
            Ok(answer) => answer?,
            Err(_elapsed) => {
                let limit = config.first_byte_timeout;
                let is_first = *patience == limit;
                let with = if is_first { "" } else { ", redirects included" };
                let detail = format!("nothing came for {limit:?}{with}");
                return Err(WebError::new(ErrorKind::Timeout(Phase::FirstByte)).detail(detail));
            }
        };
        *patience = patience.saturating_sub(took);
        let retry_after = retry_after(http.headers(), self.0.clock.now(), config.retry_after_max);
        let status = http.status().as_u16();
        if let Some(wait) = permit.note(Signal { status, retry_after }) {
            self.tell_rest(OriginRest { origin, wait, status });
        }
        tracing::debug!(url.full = redacted(at), http.status = status, "answered");
        Ok(Answer {
            http,
            permit,
            exchange,
            retry_after,
            authorized,
            look: Look::default(),
            looked_for: Duration::ZERO,
        })
    }
}
