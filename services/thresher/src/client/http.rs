//! Requests to a gateway by HTTP.

use std::time::Duration;

use api::{Page, Problem, Spec};
use futures::{Stream, TryStreamExt as _, stream};
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, StatusCode, header, redirect};
use secrets::Secret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};
use url::Url;

use super::endpoint::Endpoint;
use crate::client_error::{ClientError, Kind};
use crate::credentials::is_this_machine;
use crate::exit::{Failed, usage};

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest wait for a response head: a report first reads a whole catalog.
const ANSWER: Duration = Duration::from_secs(600);
/// The longest time without a byte of a response.
const STALL: Duration = Duration::from_secs(60);
/// The longest response that is read as a whole: the gateway limits pages, and a report card has its own
/// limits.
const LARGEST: usize = 64 * 1024 * 1024;
/// Retries of a request that may be repeated.
const TRIES: u32 = 5;
/// The wait before that, if the gateway states none; it doubles each time.
const WAIT: Duration = Duration::from_millis(200);
/// The longest wait that a gateway may request.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Items per page.
const ITEMS: &str = "1000";

/// A gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct OperatorClient {
    http: Client,
    url: Url,
    token: Option<Secret>,
    /// Whether the operator named it.
    is_named: bool,
}

impl OperatorClient {
    /// The client of a gateway. Nothing is sent yet.
    ///
    /// # Errors
    /// Wrong usage, when its certificates are invalid.
    pub(super) fn new(gateway: Endpoint) -> Result<Self, Failed> {
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            // Small requests would otherwise wait for an acknowledgement, 40 ms each.
            .tcp_nodelay(true)
            // The token is for this gateway only, not for the target of a redirect.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("thresher/", env!("CARGO_PKG_VERSION")));
        if gateway.url.scheme() == "http" {
            // The system's certificates are not needed.
            builder = builder.tls_certs_only([]);
        } else if let Some(pem) = &gateway.authority {
            let certificates = Certificate::from_pem_bundle(pem)
                .map_err(|error| usage(format!("the profile's ca_file holds no certificates: {error}")))?;
            builder = builder.tls_certs_only(certificates);
        }
        if is_this_machine(&gateway.url) {
            builder = builder.no_proxy();
        }
        let http =
            builder.build().map_err(|error| usage(format!("no connection can be made: {}", root(&error))))?;
        Ok(Self { http, url: gateway.url, token: gateway.token, is_named: gateway.is_named })
    }

    /// Its URL.
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Gets one object.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, ClientError> {
        self.object(self.request(Method::GET, path, query), true).await
    }

    /// Gets one object, as the bytes that are sent.
    pub(crate) async fn get_bytes(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Vec<u8>, ClientError> {
        let answer = self.send(self.request(Method::GET, path, query), true).await?;
        self.whole(answer).await
    }

    /// The items of a list, requested a page at a time.
    pub(crate) fn items<'a, T: DeserializeOwned + 'a>(
        &'a self,
        path: &'a [&'a str],
        query: &'a [(&'a str, String)],
    ) -> impl Stream<Item = Result<T, ClientError>> + 'a {
        // None at the end; else the cursor of the next page, which the first one has not.
        let pages = stream::try_unfold(Some(None), move |cursor: Option<Option<String>>| async move {
            let Some(cursor) = cursor else { return Ok(None) };
            let mut query = query.to_vec();
            query.push(("limit", ITEMS.to_owned()));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page: Page<T> = self.get(path, &query).await?;
            Ok(Some((stream::iter(page.items.into_iter().map(Ok)), page.next.map(Some))))
        });
        pages.try_flatten()
    }

    /// All items of a list that is always short.
    pub(crate) async fn all<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Vec<T>, ClientError> {
        self.items(path, &[]).try_collect().await
    }

    /// Posts a request. With a `key`, a repeated request has no further effect, so that it is sent again when
    /// its response is lost.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let mut request = with_body(self.request(Method::POST, path, query), body)?;
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.object(request, key.is_some()).await
    }

    /// Replaces an object that was read with a revision.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &[&str],
        wanted: &Spec,
        read: u64,
    ) -> Result<T, ClientError> {
        let request = self.request(Method::PUT, path, &[]).header(header::IF_MATCH, format!("\"{read}\""));
        self.object(with_body(request, wanted)?, false).await
    }

    /// Deletes an object.
    pub(crate) async fn delete(&self, path: &[&str]) -> Result<(), ClientError> {
        self.send(self.request(Method::DELETE, path, &[]), false).await.map(drop)
    }

    /// Opens a stream of events, from behind the one called `last`. Sent once, without retries.
    pub(super) async fn events(&self, path: &[&str], last: Option<&str>) -> Result<Response, ClientError> {
        let mut request = self.request(Method::GET, path, &[]).header(header::ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let (_, sent) = self.once(request).await;
        sent
    }

    /// The next piece of a response.
    pub(super) async fn piece(&self, answer: &mut Response) -> Result<Option<bytes::Bytes>, ClientError> {
        match timeout(STALL, answer.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.unreachable(&root(&error))),
            Err(_) => Err(self.unreachable("the response stalled")),
        }
    }

    /// A request without a body.
    fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        }
    }

    /// Sends a request, and reads the object in its response.
    async fn object<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        is_repeatable: bool,
    ) -> Result<T, ClientError> {
        let answer = self.send(request, is_repeatable).await?;
        let body = self.whole(answer).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let url = &self.url;
            let said = format!("{url} sent a response that this version cannot read: {error}; check that this is a gateway of the same version");
            ClientError::new(Kind::Broken, said)
        })
    }

    /// Sends a request, with retries where they are useful and harmless: a repeatable one has the same effect when it
    /// is sent twice.
    async fn send(&self, request: RequestBuilder, is_repeatable: bool) -> Result<Response, ClientError> {
        let mut wait = WAIT;
        for _ in 1..TRIES {
            // Its body is in memory.
            let Some(again) = request.try_clone() else { break };
            let (asked_for, sent) = self.once(again).await;
            match sent {
                // A rate-limited request was not executed.
                Err(error) if error.is_temporary() && (is_repeatable || asked_for.is_some()) => {
                    sleep(asked_for.unwrap_or(wait).min(LONGEST_WAIT)).await;
                    wait *= 2;
                }
                sent => return sent,
            }
        }
        self.once(request).await.1
    }

    /// Sends a request once. Also returns the wait before a retry, if the response asks for one and the
    /// request was surely not executed.
    async fn once(&self, request: RequestBuilder) -> (Option<Duration>, Result<Response, ClientError>) {
        let sent = timeout(ANSWER, request.send()).await;
        let answer = match sent {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return (None, Err(self.unreachable(&root(&error)))),
            Err(_) => return (None, Err(self.unreachable("it sent no response in time"))),
        };
        if answer.status().is_success() {
            return (None, Ok(answer));
        }
        let status = answer.status();
        let wait =
            answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let wait = wait.map(Duration::from_secs).filter(|_| status == StatusCode::TOO_MANY_REQUESTS);
        (wait, Err(self.refusal(answer).await))
    }

    /// A whole response.
    async fn whole(&self, mut answer: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut answer).await? {
            if body.len() + piece.len() > LARGEST {
                let said = format!(
                    "a response of {} is larger than {LARGEST} bytes; check that this is a gateway",
                    self.url
                );
                return Err(ClientError::new(Kind::Broken, said));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The error of a gateway, or of a proxy before it.
    async fn refusal(&self, answer: Response) -> ClientError {
        let status = answer.status();
        let body = self.whole(answer).await.unwrap_or_default();
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => ClientError::refused(&problem, self.url.as_str()),
            Err(_) => {
                let kind = match status {
                    StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT => Kind::Unavailable,
                    status if status.is_client_error() || status.is_redirection() => Kind::Invalid,
                    _ => Kind::Broken,
                };
                ClientError::new(
                    kind,
                    format!("{} responded with {status}, but not as a gateway does; check the URL", self.url),
                )
            }
        }
    }

    fn unreachable(&self, why: &str) -> ClientError {
        let advice = if self.is_named {
            "check that it runs, and that the URL is right"
        } else {
            "start `thresher serve` on this machine, or name another gateway with --server, --profile or THRESHER_SERVER"
        };
        let message = format!("the gateway at {} cannot be reached: {why}; {advice}", self.url);
        ClientError::new(Kind::Unavailable, message)
    }
}

/// The request with a body.
fn with_body(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, ClientError> {
    let text = serde_json::to_vec(body).map_err(|error| ClientError::new(Kind::Broken, error.to_string()))?;
    // An empty request has no body.
    if text == b"null" {
        return Ok(request);
    }
    Ok(request.header(header::CONTENT_TYPE, "application/json").body(text))
}

/// The innermost cause of an error: the outer ones only say where it happened.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
