//! The log of requests to a repository.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Requests that are remembered whole.
const KEPT: usize = 10_000;
/// Requests whose time is looked at together.
const TEN: usize = 10;

/// A count of the requests so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryLog {
    /// Requests by verb; those without a known one under their path.
    pub by_verb: BTreeMap<String, u64>,
    /// Responses by status code.
    pub by_status: BTreeMap<u16, u64>,
    /// The last 10,000 requests: path and query.
    pub requests: Vec<String>,
    /// Requests by the contact in their `From` header; those without one under an empty text.
    pub by_contact: BTreeMap<String, u64>,
    /// The most requests that were open at the same time.
    pub max_open: u64,
    /// Requests while a time of `Retry-After` was not over.
    pub impatient: u64,
    /// The shortest time from the start of a request to that of the ninth one after it. One that arrives late shortens
    /// such a time by little, and a pause between two by much.
    pub shortest_ten: Option<Duration>,
}

impl RepositoryLog {
    /// How many requests of a verb there were.
    pub fn count(&self, verb: &str) -> u64 {
        self.by_verb.get(verb).copied().unwrap_or(0)
    }
}

/// Counts while requests run.
#[derive(Debug, Default)]
pub(super) struct Log {
    done: RepositoryLog,
    recent: VecDeque<String>,
    open: u64,
    /// The starts of the last requests.
    starts: VecDeque<Instant>,
    rest_until: Option<Instant>,
}

impl Log {
    /// A request comes in.
    pub(super) fn arrived(&mut self, what: &str, request: String, contact: &str) {
        let now = Instant::now();
        *self.done.by_contact.entry(contact.to_owned()).or_default() += 1;
        self.open += 1;
        self.done.max_open = self.done.max_open.max(self.open);
        *self.done.by_verb.entry(what.to_owned()).or_default() += 1;
        if self.recent.len() >= KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(request);
        self.starts.push_back(now);
        if self.starts.len() >= TEN
            && let Some(first) = self.starts.pop_front()
        {
            let ten = now.duration_since(first);
            self.done.shortest_ten = Some(self.done.shortest_ten.map_or(ten, |known| known.min(ten)));
        }
        if self.rest_until.is_some_and(|until| now < until) {
            self.done.impatient += 1;
        }
    }

    /// The repository asks for a pause.
    pub(super) fn rest(&mut self, seconds: u64) {
        self.rest_until = Some(Instant::now() + Duration::from_secs(seconds));
    }

    /// A response goes out.
    pub(super) fn answered(&mut self, status: u16) {
        *self.done.by_status.entry(status).or_default() += 1;
    }

    /// A request is no longer open.
    pub(super) fn left(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    pub(super) fn read(&self) -> RepositoryLog {
        RepositoryLog { requests: self.recent.iter().cloned().collect(), ..self.done.clone() }
    }

    /// Starts counting anew; requests that are open stay open.
    pub(super) fn reset(&mut self) {
        *self = Log { open: self.open, rest_until: self.rest_until, ..Log::default() };
    }
}
