//! Simulated WebSub subscribers: a server whose paths are callbacks. Each confirms what it is asked, and takes what is
//! delivered, unless a test wants otherwise.
//!
//! Written by hand, on purpose without the project's own crate for it: the hub is then tested against an independent
//! reading of the specification.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, Request, StatusCode};

use simulated_source::Serving;

/// The longest delivery.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// A server of callbacks; it ends when dropped.
#[derive(Debug)]
pub struct Callbacks {
    told: Arc<Mutex<Told>>,
    serving: Serving,
}

/// How a callback behaves.
#[derive(Debug, Clone)]
pub struct Manner {
    /// The answer to a verification, in place of the challenge.
    pub answer: Option<String>,
    /// The status of the answer to a delivery. Only a 2xx takes it.
    pub status: u16,
    /// The pause before that answer.
    pub delay: Duration,
}

/// A delivery.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// All headers.
    pub headers: HeaderMap,
    /// The payload. Equal ones of all callbacks are one in memory.
    pub body: Bytes,
    /// When all of it had arrived.
    pub at: Instant,
    /// Whether it was taken.
    pub is_taken: bool,
}

/// What a hub asked or said by a GET: its parameters.
pub type Asked = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct Told {
    manners: HashMap<String, Manner>,
    deliveries: HashMap<String, Vec<Delivery>>,
    asked: HashMap<String, Vec<Asked>>,
    bodies: HashSet<Bytes>,
}

impl Told {
    /// The same bytes, as they are in memory already.
    fn shared(&mut self, body: Bytes) -> Bytes {
        match self.bodies.get(&body) {
            Some(known) => known.clone(),
            None => {
                self.bodies.insert(body.clone());
                body
            }
        }
    }
}

impl Default for Manner {
    fn default() -> Self {
        Self { answer: None, status: 202, delay: Duration::ZERO }
    }
}

impl Callbacks {
    /// Starts to serve on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub fn start() -> io::Result<Callbacks> {
        let told = Arc::<Mutex<Told>>::default();
        let routes = Router::new().fallback(take).with_state(Arc::clone(&told));
        Ok(Callbacks { serving: Serving::start(0, "callbacks", routes)?, told })
    }

    /// The URL of a callback. The path begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.serving.url())
    }

    /// Sets how a callback behaves from now on.
    pub fn behave(&self, path: &str, manner: Manner) {
        self.told().manners.insert(path.to_owned(), manner);
    }

    /// All deliveries to a callback, in the order in which they were answered.
    pub fn deliveries(&self, path: &str) -> Vec<Delivery> {
        self.told().deliveries.get(path).cloned().unwrap_or_default()
    }

    /// The deliveries that a callback took, behind the first `count` of all.
    pub fn taken_after(&self, path: &str, count: usize) -> Vec<Delivery> {
        let told = self.told();
        let all = told.deliveries.get(path).into_iter().flatten();
        all.skip(count).filter(|one| one.is_taken).cloned().collect()
    }

    /// How many deliveries came to a callback, taken or not.
    pub fn count(&self, path: &str) -> usize {
        self.told().deliveries.get(path).map_or(0, Vec::len)
    }

    /// The payloads that a callback took.
    pub fn taken(&self, path: &str) -> Vec<Bytes> {
        self.deliveries(path).into_iter().filter(|one| one.is_taken).map(|one| one.body).collect()
    }

    /// What a callback was asked, or told of a denial.
    pub fn asked(&self, path: &str) -> Vec<Asked> {
        self.told().asked.get(path).cloned().unwrap_or_default()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no holder panics")
    }
}

async fn take(State(told): State<Arc<Mutex<Told>>>, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let lock = || told.lock().expect("no holder panics");
    let manner = lock().manners.get(&path).cloned().unwrap_or_default();
    if request.method() != Method::POST {
        let query = request.uri().query().unwrap_or_default();
        let asked: Asked = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let challenge = asked.get("hub.challenge").cloned().unwrap_or_default();
        lock().asked.entry(path).or_default().push(asked);
        return manner.answer.unwrap_or(challenge).into_response();
    }
    let headers = request.headers().clone();
    let Ok(body) = to_bytes(request.into_body(), MOST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let at = Instant::now();
    tokio::time::sleep(manner.delay).await;
    let is_taken = (200..300).contains(&manner.status);
    let mut told = lock();
    let body = told.shared(body);
    told.deliveries.entry(path).or_default().push(Delivery { headers, body, at, is_taken });
    StatusCode::from_u16(manner.status).expect("a status").into_response()
}
