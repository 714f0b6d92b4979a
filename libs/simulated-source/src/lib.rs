#![doc = include_str!("../README.md")]

mod answer;
mod change;
mod clock;
mod condition;
mod content;
mod document;
mod fault;
mod gate;
mod inner;
mod oai;
mod open;
mod pages;
mod requests;
mod serving;
mod spec;
mod world;
mod xml;

use std::io;
use std::sync::Arc;

use axum::Router;

pub use change::{Change, ChangeKind, Changes};
pub use clock::{SimClock, SimTime};
pub use fault::{Fault, Target};
pub use gate::Gate;
pub use oai::{
    Deletions, ExpectedRecord, Failure, FileFormat, LandingFault, RepositoryFault, RepositoryLog,
    RepositorySpec, SimulatedRepository, Unit,
};
pub use pages::{PageFault, PageSitemap, PagesSpec, SimulatedPages};
pub use requests::RequestLog;
pub use serving::{Serving, cut_off};
pub use spec::{Algorithm, Size, SourceSpec};

use inner::Inner;

/// A running simulated Source on 127.0.0.1; it ends when dropped.
#[derive(Debug)]
pub struct SimulatedSource {
    inner: Arc<Inner>,
    serving: Serving,
}

/// The true state of a resource now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its URI.
    pub uri: String,
    /// Its length in bytes.
    pub length: u64,
    /// Its sha-256 in lower-case hex.
    pub sha256: String,
}

impl SimulatedSource {
    /// Starts to serve.
    ///
    /// # Errors
    /// When the port cannot be listened on.
    pub async fn start(spec: SourceSpec) -> io::Result<SimulatedSource> {
        let inner = Arc::new(Inner::new(spec));
        let routes = Router::new().fallback(answer::answer).with_state(Arc::clone(&inner));
        let serving = Serving::start(inner.spec.port, "simulated-source", routes)?;
        inner.set_base(serving.url());
        Ok(SimulatedSource { inner, serving })
    }

    /// `http://127.0.0.1:<port>`, where the home page is.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// The URI of the Source Description.
    pub fn well_known(&self) -> String {
        format!("{}/.well-known/resourcesync", self.url())
    }

    /// The URI of the Capability List.
    pub fn capability_list(&self) -> String {
        self.inner.uri("capabilitylist.xml")
    }

    /// The URI of the Resource List or its index.
    pub fn resource_list(&self) -> String {
        self.inner.uri("resourcelist.xml")
    }

    /// The URI of the Change List or its index.
    pub fn change_list(&self) -> String {
        self.inner.uri("changelist.xml")
    }

    /// The URI of the resource with this index, whether it exists or not.
    pub fn resource_uri(&self, index: u64) -> String {
        self.inner.resource_uri(index)
    }

    /// The index of the resource at this URI or path.
    pub fn resource_index(&self, uri: &str) -> Option<u64> {
        self.inner.resource_index(uri)
    }

    /// The present moment of the simulation.
    pub fn now(&self) -> SimTime {
        self.inner.world().now()
    }

    /// Moves the clock without changing anything.
    pub fn advance(&self, seconds: u32) {
        self.inner.world().advance(seconds);
    }

    /// How many resources there are now.
    pub fn len(&self) -> u64 {
        self.inner.world().live()
    }

    /// Whether there is no resource now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Changes resources chosen by the seed, each change one second after the previous one.
    pub fn change(&self, changes: Changes) -> Vec<Change> {
        self.inner.world().change(changes)
    }

    /// Changes one resource.
    ///
    /// # Panics
    /// When that is impossible: to create an existing resource, to update or delete a missing one.
    pub fn change_one(&self, index: u64, kind: ChangeKind) -> Change {
        let possible = {
            let world = self.inner.world();
            world.at(index, world.now()).is_some() != (kind == ChangeKind::Created)
        };
        // Checked here so that the panic does not poison the server's locks.
        assert!(possible, "resource {index} cannot be {} in its present state", kind.name());
        self.inner.world().apply(index, kind)
    }

    /// The Change Notification of these changes, which are all changes after `from` and up to `until`.
    pub fn notification(&self, from: SimTime, until: SimTime, changes: &[Change]) -> String {
        self.inner.notification(from, until, changes)
    }

    /// Updates the Resource List to the present; before that it shows the past, like a file that is generated
    /// at night.
    pub fn refresh_resource_list(&self) {
        self.inner.world().refresh_snapshot();
    }

    /// Lets the Change List begin at the present, like a Source that drops older changes.
    pub fn forget_changes(&self) {
        self.inner.world().forget_changes();
    }

    /// Sets a fault at a resource (by index) or at a path or URI.
    pub fn set_fault(&self, target: impl Into<Target>, fault: Fault) {
        let path = self.inner.target_path(target.into());
        self.inner.faults().set(path, fault);
    }

    /// Clears all faults.
    pub fn clear_faults(&self) {
        self.inner.faults().clear();
    }

    /// Answers so many requests for resources from now on. Later ones wait until more are allowed, so that a harvest
    /// cannot come to its end meanwhile.
    pub fn allow(&self, resources: u64) {
        self.inner.gate.allow("", resources);
    }

    /// Answers all requests again, also those that wait.
    pub fn allow_all(&self) {
        self.inner.gate.allow_all();
    }

    /// The true state of all resources now, in the order of their indices; generated one at a time.
    pub fn expected(&self) -> impl Iterator<Item = Expected> + Send + use<> {
        let inner = Arc::clone(&self.inner);
        let (end, now) = {
            let world = inner.world();
            (world.next_index(), world.now())
        };
        (0..end).filter_map(move |index| {
            let present = inner.world().at(index, now)?;
            Some(Expected {
                uri: inner.resource_uri(index),
                length: inner.content.length(index, present.version),
                sha256: inner.content.digest(index, present.version, Algorithm::Sha256),
            })
        })
    }

    /// The true bytes of the resource at this URI; `None` when there is none now.
    pub fn body(&self, uri: &str) -> Option<Vec<u8>> {
        let (index, present) = self.inner.present(uri)?;
        Some(self.inner.content.whole(index, present.version))
    }

    /// The requests so far.
    pub fn requests(&self) -> RequestLog {
        self.inner.counters.log()
    }

    /// Clears the log of requests.
    pub fn reset_requests(&self) {
        self.inner.counters.reset();
    }

    /// Ends the Source and all its connections; dropping it does the same.
    pub fn shutdown(self) {}
}
