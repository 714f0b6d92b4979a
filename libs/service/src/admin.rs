//! The admin port: liveness, readiness, metrics.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::memory::{Memory, Resident};
use crate::{Readiness, ServiceInfo};

/// The media type of Prometheus' text format.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a service. Cheap to clone.
///
/// Register metrics when the service starts and keep the handles: they are not looked up during work.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    /// The standard metrics of a process. They have no prefix.
    process: Arc<Registry>,
    memory: Memory,
    shared: Arc<Mutex<HashMap<TypeId, Box<dyn Any + Send>>>>,
}

/// The admin port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot listen on {listen} for probes and metrics: {source}; set another address in `service.admin.listen`"
)]
pub struct ListenError {
    listen: SocketAddr,
    source: std::io::Error,
}

/// The open admin port.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

#[derive(Debug, Clone)]
struct Shared {
    readiness: Readiness,
    metrics: Metrics,
}

impl Metrics {
    /// No metrics yet but `thresher_build_info`, with name and version, and the process's memory.
    pub fn new(about: ServiceInfo) -> Self {
        let mut registry = Registry::with_prefix("thresher");
        let build = Info::new(vec![("service", about.name), ("version", about.version)]);
        registry.register("build", "What runs", build);
        let memory = Memory::default();
        registry.register_collector(Box::new(memory.clone()));
        let mut process = Registry::default();
        process.register_collector(Box::new(Resident));
        Self {
            registry: Arc::new(Mutex::new(registry)),
            process: Arc::new(process),
            memory,
            shared: Arc::default(),
        }
    }

    /// Adds a part of the memory budget, as the configuration sets it.
    pub fn bound_memory(&self, part: &'static str, bytes: u64) {
        self.memory.bound(part, bytes);
    }

    /// Adds the readiness of the service, and the parts it waits for.
    pub(crate) fn add_readiness(&self, readiness: &Readiness) {
        self.register(|registry| registry.register_collector(Box::new(readiness.clone())));
    }

    /// Registers metrics, under the prefix `thresher_`.
    pub fn register<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        // A registration that panicked left out its own metric and nothing else.
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Metrics that the services of a process share: created and registered by the first caller, once per
    /// type.
    pub fn shared<T: Clone + Send + 'static>(&self, make: impl FnOnce(&mut Registry) -> T) -> T {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = shared.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(self.register(make)));
        // It was inserted under its own type.
        kept.downcast_ref::<T>().expect("the type is the key").clone()
    }

    /// All metrics in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only when a metric's own encoder does. The text so far then has no end
        // mark, and the reader refuses it.
        let _ = encode_registry(&mut text, &self.process)
            .and_then(|()| self.register(|registry| encode(&mut text, registry)));
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Admin {
    /// Opens the port.
    ///
    /// # Errors
    /// When the address is taken, or not this machine's.
    pub async fn bind(
        listen: SocketAddr,
        readiness: Readiness,
        metrics: Metrics,
    ) -> Result<Self, ListenError> {
        let refuse = |source| ListenError { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let router = Router::new()
            .route("/healthz", get(async || "alive\n"))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics_text))
            .with_state(Shared { readiness, metrics });
        Ok(Self { listener, address, router })
    }

    /// Its address; the port is the real one if the configuration said 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled.
    pub async fn serve(self, stop: CancellationToken) {
        let serving = axum::serve(self.listener, self.router).with_graceful_shutdown(stop.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::error!(%error, "the port for probes and metrics is closed");
        }
    }
}

async fn ready(State(shared): State<Shared>) -> Response {
    let waiting = shared.readiness.waiting_for();
    if waiting.is_empty() {
        return "ready\n".into_response();
    }
    let lines: String = waiting.iter().map(|waiting| format!("{waiting}\n")).collect();
    (StatusCode::SERVICE_UNAVAILABLE, lines).into_response()
}

async fn metrics_text(State(shared): State<Shared>) -> Response {
    ([(header::CONTENT_TYPE, OPENMETRICS)], shared.metrics.encode()).into_response()
}
