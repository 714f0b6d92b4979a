//! A simulated WebSub hub: it verifies subscribers, and delivers what a test gives it, honestly or not.
//!
//! Written by hand, on purpose without the project's own crate for it: the subscriber is then tested against
//! an independent reading of the specification.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{Request, StatusCode};
use sha2::Sha256;

use simulated_source::Serving;

/// The challenge of all verifications.
const CHALLENGE: &str = "c0cc4630-5116-11e3-8f96-0800200c9a66";
/// The default lease that it grants, in seconds.
const LEASE: u64 = 600;
/// The longest request.
const MOST_BYTES: usize = 64 * 1024;

/// A hub; it ends when dropped.
#[derive(Debug)]
pub struct SimulatedHub {
    inner: Arc<Inner>,
    serving: Serving,
}

/// A subscriber that confirmed its subscription when asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// The URL for deliveries.
    pub callback: String,
    /// The topic.
    pub topic: String,
    /// The secret that signs deliveries.
    pub secret: String,
    /// How often it was verified.
    pub verified: u32,
}

#[derive(Debug)]
struct Inner {
    client: reqwest::Client,
    state: Mutex<Told>,
}

#[derive(Debug)]
struct Told {
    /// The address of callbacks in place of their own host: `http://127.0.0.1:<port>`.
    gateway: Option<String>,
    lease: u64,
    subscribers: BTreeMap<String, Subscriber>,
    refused: u32,
}

impl SimulatedHub {
    /// Starts to serve on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub fn start() -> io::Result<SimulatedHub> {
        let client = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
        let told = Told { gateway: None, lease: LEASE, subscribers: BTreeMap::new(), refused: 0 };
        let inner = Arc::new(Inner { client, state: Mutex::new(told) });
        let routes = Router::new().fallback(take).with_state(Arc::clone(&inner));
        Ok(SimulatedHub { serving: Serving::start(0, "simulated-hub", routes)?, inner })
    }

    /// The URL for subscription requests.
    pub fn url(&self) -> String {
        format!("{}/hub", self.serving.url())
    }

    /// Sends to callbacks at this address from now on, whatever host they name: a gateway's port is known
    /// only after its start.
    pub fn find_callbacks_at(&self, gateway: impl Into<String>) {
        self.inner.told().gateway = Some(gateway.into());
    }

    /// Grants leases of this many seconds from now on.
    pub fn grant(&self, seconds: u64) {
        self.inner.told().lease = seconds;
    }

    /// The subscribers.
    pub fn subscribers(&self) -> Vec<Subscriber> {
        self.inner.told().subscribers.values().cloned().collect()
    }

    /// How many requests were not confirmed at their verification.
    pub fn refused(&self) -> u32 {
        self.inner.told().refused
    }

    /// Delivers a payload to all subscribers, and returns the statuses of their responses.
    pub async fn deliver(&self, payload: &str) -> Vec<u16> {
        let mut statuses = Vec::new();
        for subscriber in self.subscribers() {
            let signature = sign(&subscriber.secret, payload.as_bytes());
            statuses.push(self.deliver_signed(&subscriber, payload, &signature).await);
        }
        statuses
    }

    /// Delivers a payload with a signature of the test's choice, and returns the status of the response; 0
    /// without one.
    pub async fn deliver_signed(&self, to: &Subscriber, payload: &str, signature: &str) -> u16 {
        let links = format!("<{}>; rel=\"self\", <{}>; rel=\"hub\"", to.topic, self.url());
        let request = self.inner.client.post(self.inner.place_of(&to.callback));
        let request = request.header("content-type", "application/xml").header("link", links);
        let sent = request.header("x-hub-signature", signature).body(payload.to_owned()).send().await;
        sent.map_or(0, |answer| answer.status().as_u16())
    }
}

impl Inner {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.state.lock().expect("no holder panics")
    }

    fn place_of(&self, callback: &str) -> String {
        let gateway = self.told().gateway.clone();
        let path = callback.splitn(4, '/').nth(3).unwrap_or_default();
        gateway.map_or_else(|| callback.to_owned(), |gateway| format!("{gateway}/{path}"))
    }

    /// Verifies a request, and applies it if it is confirmed.
    async fn verify(&self, form: BTreeMap<String, String>) {
        let field = |name: &str| form.get(name).cloned().unwrap_or_default();
        let mode = field("hub.mode");
        let callback = field("hub.callback");
        let topic = field("hub.topic");
        let lease = self.told().lease.to_string();
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("hub.mode", &mode)
            .append_pair("hub.topic", &topic)
            .append_pair("hub.challenge", CHALLENGE)
            .append_pair("hub.lease_seconds", &lease)
            .finish();
        let url = format!("{}?{query}", self.place_of(&callback));
        let confirmed = match self.client.get(url).send().await {
            Ok(answer) if answer.status().is_success() => {
                let body = to_bytes(Body::from_stream(answer.bytes_stream()), CHALLENGE.len()).await;
                body.is_ok_and(|body| body == CHALLENGE)
            }
            _ => false,
        };
        let mut told = self.told();
        match (confirmed, mode.as_str()) {
            (false, _) => told.refused += 1,
            (true, "subscribe") => {
                let verified = told.subscribers.get(&callback).map_or(1, |before| before.verified + 1);
                let subscriber =
                    Subscriber { callback: callback.clone(), topic, secret: field("hub.secret"), verified };
                told.subscribers.insert(callback, subscriber);
            }
            (true, _) => drop(told.subscribers.remove(&callback)),
        }
    }
}

/// The signature of a payload.
pub fn sign(secret: &str, payload: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    format!("sha256={}", HEXLOWER.encode(&mac.chain_update(payload).finalize().into_bytes()))
}

async fn take(State(inner): State<Arc<Inner>>, request: Request<Body>) -> Response {
    let Ok(body) = to_bytes(request.into_body(), MOST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let form: BTreeMap<String, String> = form_urlencoded::parse(&body).into_owned().collect();
    if !form.contains_key("hub.mode") {
        return StatusCode::BAD_REQUEST.into_response();
    }
    tokio::spawn(async move { inner.verify(form).await });
    StatusCode::ACCEPTED.into_response()
}
