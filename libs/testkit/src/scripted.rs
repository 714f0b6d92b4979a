//! A scripted HTTP server: it sends a test's replies for each path, in order, and records the requests.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Method, Request, StatusCode};

use simulated_source::{Gate, Serving, cut_off};

/// Larger request bodies are not recorded.
const MOST_RECORDED: usize = 1024 * 1024;

/// A server that follows a script; it ends when dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    script: Arc<Mutex<Script>>,
    serving: Serving,
}

/// One reply of the script.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
    cut_after: Option<u64>,
    is_sized: bool,
    delay: Option<Duration>,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, if it has at most 1 MiB.
    pub body: Bytes,
}

#[derive(Debug, Default)]
struct Script {
    replies: BTreeMap<String, VecDeque<Reply>>,
    fallbacks: BTreeMap<String, Reply>,
    requests: Vec<Recorded>,
    unexpected: Vec<String>,
    gate: Arc<Gate>,
}

impl ScriptedServer {
    /// Starts to serve on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub async fn start() -> io::Result<ScriptedServer> {
        let script = Arc::new(Mutex::new(Script::default()));
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&script));
        Ok(ScriptedServer { serving: Serving::start(0, "scripted-server", routes)?, script })
    }

    /// `http://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// The URI of a path, which begins with `/`.
    pub fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.url())
    }

    /// Adds the next reply for a path (with its query, if any). Each is sent once.
    pub fn push(&self, path: &str, reply: Reply) -> &ScriptedServer {
        self.script().replies.entry(path.to_owned()).or_default().push_back(reply);
        self
    }

    /// Sets the reply for every request at a path after its pushed replies.
    pub fn always(&self, path: &str, reply: Reply) -> &ScriptedServer {
        self.script().fallbacks.insert(path.to_owned(), reply);
        self
    }

    /// Answers so many requests from now on whose path begins so. Later ones wait until more are allowed, so that their
    /// client cannot come to its end meanwhile.
    pub fn allow(&self, path: &str, requests: u64) {
        self.script().gate.allow(path, requests);
    }

    /// Answers all requests again, also those that wait.
    pub fn allow_all(&self) {
        self.script().gate.allow_all();
    }

    /// The requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.script().requests.clone()
    }

    /// The requests so far at one path.
    pub fn requests_at(&self, path: &str) -> Vec<Recorded> {
        self.script().requests.iter().filter(|request| request.path == path).cloned().collect()
    }

    /// Checks that the script was followed.
    ///
    /// # Panics
    /// When a request had no reply, or a pushed reply was not requested.
    pub fn assert_followed(&self) {
        let (unexpected, unused) = {
            let script = self.script();
            let unused = script.replies.iter().filter(|(_, replies)| !replies.is_empty());
            let unused: Vec<_> = unused.map(|(path, replies)| (path.clone(), replies.len())).collect();
            (script.unexpected.clone(), unused)
        };
        assert!(unexpected.is_empty(), "requests without a reply in the script: {unexpected:?}");
        assert!(unused.is_empty(), "replies that nobody asked for, by path: {unused:?}");
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no holder panics")
    }
}

impl Reply {
    /// An empty reply with this status.
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            cut_after: None,
            is_sized: true,
            delay: None,
        }
    }

    /// 200 with a body.
    pub fn ok(body: impl Into<Bytes>) -> Reply {
        Reply::status(200).body(body)
    }

    /// Sets its body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Reply {
        self.body = body.into();
        self
    }

    /// Adds a header. `Content-Length` is that of the body unless it is set here.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Reply {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Breaks the connection after this many bytes of the body.
    pub fn cut_after(mut self, bytes: u64) -> Reply {
        self.cut_after = Some(bytes);
        self
    }

    /// Sends the body in chunks, without its length.
    pub fn without_length(mut self) -> Reply {
        self.is_sized = false;
        self
    }

    /// Waits before it starts.
    pub fn delay(mut self, delay: Duration) -> Reply {
        self.delay = Some(delay);
        self
    }

    fn into_response(self) -> Response {
        let mut builder = Response::builder().status(self.status);
        if self.is_sized && !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            builder = builder.header("content-length", self.body.len());
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        let body = match self.cut_after {
            Some(after) => Body::from_stream(cut_off(std::iter::once(self.body), after)),
            None if self.is_sized => Body::from(self.body),
            None => Body::from_stream(stream::iter([Ok::<_, io::Error>(self.body)])),
        };
        builder.body(body).unwrap_or_else(|error| {
            plain(format!("the script's reply cannot be sent, check its status and headers: {error}\n"))
        })
    }
}

impl Recorded {
    /// A header, if it was sent and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let body = to_bytes(body, MOST_RECORDED).await.unwrap_or_default();
    let recorded = Recorded { method: parts.method, path: path.clone(), headers: parts.headers, body };
    let (reply, gate) = {
        let mut script = script.lock().expect("no holder panics");
        let line = format!("{} {path}", recorded.method);
        script.requests.push(recorded);
        let pushed = script.replies.get_mut(&path).and_then(VecDeque::pop_front);
        let reply = pushed.or_else(|| script.fallbacks.get(&path).cloned());
        if reply.is_none() {
            script.unexpected.push(line);
        }
        (reply, Arc::clone(&script.gate))
    };
    gate.pass(&path).await;
    let Some(reply) = reply else {
        return plain(format!("the script has no (further) reply for {path}\n"));
    };
    if let Some(delay) = reply.delay {
        tokio::time::sleep(delay).await;
    }
    reply.into_response()
}

fn plain(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    // A status that no client retries.
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    response
}
