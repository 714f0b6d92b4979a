//! A relay before a server, like a proxy: its address is known before the server has one. It forwards
//! requests, and answers some itself for a test.

use std::collections::VecDeque;
use std::future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};

use simulated_source::Serving;

/// The longest forwarded body, in either direction.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A relay; it ends when dropped.
#[derive(Debug)]
pub struct Relay {
    inner: Arc<Inner>,
    serving: Serving,
}

/// A request that passed the relay.
#[derive(Debug, Clone)]
pub struct Passed {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The status of its response.
    pub status: u16,
    /// Whether it was forwarded to the server.
    pub is_handed_on: bool,
}

#[derive(Debug)]
struct Inner {
    client: reqwest::Client,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// `http://127.0.0.1:<port>` of the server, once it has one.
    server: Option<String>,
    /// Refusals of the next requests of a method, in order.
    refusals: VecDeque<(Method, StatusCode)>,
    /// Requests whose path has this text get no answer.
    hold: Option<String>,
    /// How many got none.
    held: usize,
    passed: Vec<Passed>,
}

impl Relay {
    /// Starts to serve on a free port of 127.0.0.1. Answers 502 until it has a server.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub fn start() -> io::Result<Relay> {
        // A redirect is for the client of the relay.
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let client = client.build().map_err(io::Error::other)?;
        let inner = Arc::new(Inner { client, told: Mutex::default() });
        let routes = Router::new().fallback(pass).with_state(Arc::clone(&inner));
        Ok(Relay { serving: Serving::start(0, "relay", routes)?, inner })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// Forwards requests to this server from now on: `http://127.0.0.1:<port>`.
    pub fn lead_to(&self, server: impl Into<String>) {
        self.inner.told().server = Some(server.into());
    }

    /// Answers the next request of this method with `status`, without forwarding it; once for each call.
    ///
    /// # Panics
    /// When there is no such status.
    pub fn refuse(&self, method: Method, status: u16) {
        let status = StatusCode::from_u16(status).expect("a status");
        self.inner.told().refusals.push_back((method, status));
    }

    /// Lets requests whose path has this text wait for ever from now on: their client is killed meanwhile. None: they
    /// pass again.
    pub fn hold(&self, path_part: Option<&str>) {
        self.inner.told().hold = path_part.map(str::to_owned);
    }

    /// How many requests have waited for ever so far.
    pub fn held(&self) -> usize {
        self.inner.told().held
    }

    /// All answered requests, in order.
    pub fn passed(&self) -> Vec<Passed> {
        self.inner.told().passed.clone()
    }
}

impl Inner {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no holder panics")
    }

    /// The scripted refusal of a request, if any.
    fn refusal(&self, method: &Method) -> Option<StatusCode> {
        let refusals = &mut self.told().refusals;
        let place = refusals.iter().position(|(of, _)| of == method)?;
        refusals.remove(place).map(|(_, status)| status)
    }

    /// Whether a request gets no answer; counts it.
    fn is_held(&self, path: &str) -> bool {
        let mut told = self.told();
        let is_held = told.hold.as_ref().is_some_and(|part| path.contains(part));
        told.held += usize::from(is_held);
        is_held
    }

    async fn answer_of(&self, server: &str, passed: &Passed) -> reqwest::Result<Response> {
        let mut headers = passed.headers.clone();
        headers.remove(header::HOST);
        let url = format!("{server}{}", passed.path);
        let request = self.client.request(passed.method.clone(), url).headers(headers);
        let answer = request.body(passed.body.clone()).send().await?;
        let status = answer.status();
        let mut headers = answer.headers().clone();
        // The length is that of the body as the relay sends it.
        headers.remove(header::TRANSFER_ENCODING);
        let body = Body::from_stream(answer.bytes_stream());
        Ok((status, headers, body).into_response())
    }
}

async fn pass(State(inner): State<Arc<Inner>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MOST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let path = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let mut passed =
        Passed { method: head.method, path, headers: head.headers, body, status: 0, is_handed_on: false };
    if inner.is_held(&passed.path) {
        // It ends with the client's connection.
        future::pending::<()>().await;
    }
    let refusal = inner.refusal(&passed.method);
    let server = inner.told().server.clone();
    let response = match (refusal, server) {
        (Some(status), _) => status.into_response(),
        (None, None) => StatusCode::BAD_GATEWAY.into_response(),
        (None, Some(server)) => {
            passed.is_handed_on = true;
            let answer = inner.answer_of(&server, &passed).await;
            answer.unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response())
        }
    };
    passed.status = response.status().as_u16();
    inner.told().passed.push(passed);
    response
}

#[cfg(test)]
mod tests {
    use crate::scripted::{Reply, ScriptedServer};

    use super::*;

    #[tokio::test]
    async fn it_hands_on_what_it_is_not_told_to_answer_itself() {
        let relay = Relay::start().unwrap();
        let server = ScriptedServer::start().await.unwrap();
        server.always("/a?b", Reply::status(202).header("x-word", "yes"));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let ask = || client.post(format!("{}/a?b", relay.url())).header("x-ask", "1").body("text").send();
        assert_eq!(ask().await.unwrap().status(), 502, "it leads nowhere yet");
        relay.lead_to(server.uri(""));
        relay.refuse(Method::GET, 500);
        relay.refuse(Method::POST, 503);
        assert_eq!(ask().await.unwrap().status(), 503);
        let answer = ask().await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.headers()["x-word"]), (202, &"yes".parse().unwrap()));
        let seen = server.requests();
        assert_eq!((seen.len(), seen[0].header("x-ask"), &seen[0].body[..]), (1, Some("1"), &b"text"[..]));
        let passed: Vec<_> = relay.passed().iter().map(|each| (each.status, each.is_handed_on)).collect();
        assert_eq!(passed, [(502, false), (503, false), (202, true)]);
    }

    #[tokio::test]
    async fn a_held_request_gets_no_answer_and_later_ones_do() {
        let relay = Relay::start().unwrap();
        let server = ScriptedServer::start().await.unwrap();
        server.always("/slow/a", Reply::status(200));
        relay.lead_to(server.uri(""));
        relay.hold(Some("/slow/"));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let ask = || client.get(format!("{}/slow/a", relay.url())).send();
        let waits = tokio::spawn(ask());
        crate::waiting::until("it waits", || relay.held() == 1).await;
        waits.abort();
        relay.hold(None);
        assert_eq!(ask().await.unwrap().status(), 200);
        assert_eq!((relay.held(), server.requests().len()), (1, 1));
    }
}
