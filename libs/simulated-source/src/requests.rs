//! The log of requests to a Source.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// By then, all clients know of the cooldown that the Source requested.
const HEARD: Duration = Duration::from_secs(1);

/// A count of the requests so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLog {
    /// Requests for anything but a resource: documents, the home page, `robots.txt`, wrong paths.
    pub documents: u64,
    /// Requests for resources.
    pub resources: u64,
    /// Responses by status code.
    pub by_status: BTreeMap<u16, u64>,
    /// The most resource requests that were open at the same time.
    pub max_in_flight: u64,
    /// The most requests of any kind that were open at the same time, each until the last byte of its
    /// response was sent.
    pub max_open: u64,
    /// Requests by path; empty unless the spec counts them.
    pub per_path: BTreeMap<String, u64>,
    /// Requests later than one second after a response with `Retry-After`, and before the requested time was
    /// over.
    pub impatient: u64,
    /// The most requests within a second.
    pub most_in_a_second: u64,
}

/// Counts while requests run.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    documents: AtomicU64,
    resources: AtomicU64,
    open_resources: Arc<Level>,
    open: Arc<Level>,
    tables: Mutex<Tables>,
}

/// How many requests are open, and the most so far.
#[derive(Debug, Default)]
struct Level {
    now: AtomicU64,
    max: AtomicU64,
}

#[derive(Debug, Default)]
struct Tables {
    by_status: BTreeMap<u16, u64>,
    per_path: BTreeMap<String, u64>,
    impatient: u64,
    /// The intervals in which requests are impatient.
    rests: Vec<(Instant, Instant)>,
    /// The times of the last second's requests.
    lately: VecDeque<Instant>,
    most_in_a_second: u64,
}

/// Held while a request is open.
pub(crate) struct Open(Arc<Level>);

impl Level {
    fn enter(self: &Arc<Self>) -> Open {
        let open = self.now.fetch_add(1, Relaxed) + 1;
        self.max.fetch_max(open, Relaxed);
        Open(Arc::clone(self))
    }

    /// Forgets the most so far; requests that are open stay open.
    fn reset(&self) {
        self.max.store(self.now.load(Relaxed), Relaxed);
    }
}

impl Counters {
    /// A request of any kind.
    pub(crate) fn open(&self) -> Open {
        self.open.enter()
    }

    pub(crate) fn document(&self) {
        self.documents.fetch_add(1, Relaxed);
    }

    pub(crate) fn resource(&self) -> Open {
        self.resources.fetch_add(1, Relaxed);
        self.open_resources.enter()
    }

    /// Counts a request by its time: the rate, and whether it comes during a requested cooldown.
    pub(crate) fn arrived(&self) {
        let mut tables = self.tables.lock().expect("no holder panics");
        let now = Instant::now();
        let impatient = tables.rests.iter().any(|(heard, over)| (*heard..*over).contains(&now));
        tables.impatient += u64::from(impatient);
        tables.lately.push_back(now);
        while tables.lately.front().is_some_and(|came| now - *came >= Duration::from_secs(1)) {
            tables.lately.pop_front();
        }
        tables.most_in_a_second = tables.most_in_a_second.max(tables.lately.len() as u64);
    }

    /// The Source requests a cooldown.
    pub(crate) fn rest(&self, wait: Duration) {
        let now = Instant::now();
        self.tables.lock().expect("no holder panics").rests.push((now + HEARD, now + wait));
    }

    pub(crate) fn path(&self, path: &str) {
        let mut tables = self.tables.lock().expect("no holder panics");
        *tables.per_path.entry(path.to_owned()).or_default() += 1;
    }

    pub(crate) fn answered(&self, status: u16) {
        let mut tables = self.tables.lock().expect("no holder panics");
        *tables.by_status.entry(status).or_default() += 1;
    }

    pub(crate) fn log(&self) -> RequestLog {
        let tables = self.tables.lock().expect("no holder panics");
        RequestLog {
            documents: self.documents.load(Relaxed),
            resources: self.resources.load(Relaxed),
            by_status: tables.by_status.clone(),
            max_in_flight: self.open_resources.max.load(Relaxed),
            max_open: self.open.max.load(Relaxed),
            per_path: tables.per_path.clone(),
            impatient: tables.impatient,
            most_in_a_second: tables.most_in_a_second,
        }
    }

    /// Starts counting anew; requests that are open stay open.
    pub(crate) fn reset(&self) {
        self.documents.store(0, Relaxed);
        self.resources.store(0, Relaxed);
        self.open_resources.reset();
        self.open.reset();
        *self.tables.lock().expect("no holder panics") = Tables::default();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Relaxed);
    }
}
