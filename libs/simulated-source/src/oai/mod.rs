//! A simulated OAI-PMH repository: all verbs, sets, dates, deletions, and the faults of repositories in the wild.
//!
//! It reads requests and writes answers by itself, and depends on none of the crates that harvest it.

mod answer;
mod arguments;
mod fault;
mod files;
#[cfg(test)]
mod http_tests;
mod inner;
mod landing;
mod list;
mod log;
mod respond;
mod spec;
#[cfg(test)]
mod tests;
mod token;
mod world;
mod xml;

use std::io;
use std::sync::Arc;

use axum::Router;

pub use fault::{Failure, LandingFault, RepositoryFault};
pub use log::RepositoryLog;
pub use spec::{Deletions, FileFormat, RepositorySpec, Unit};

use inner::Inner;

use crate::change::Changes;
use crate::clock::SimTime;
use crate::serving::Serving;

/// A running simulated repository on 127.0.0.1; it ends when dropped.
#[derive(Debug)]
pub struct SimulatedRepository {
    inner: Arc<Inner>,
    serving: Serving,
}

/// The true state of a record now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedRecord {
    /// Its index.
    pub index: u64,
    /// Its identifier.
    pub identifier: String,
    /// The time of its last change.
    pub modified: SimTime,
    /// Whether it is deleted.
    pub deleted: bool,
    /// Its `setSpec`.
    pub set: Option<String>,
}

impl SimulatedRepository {
    /// Starts to serve.
    ///
    /// # Errors
    /// When the port cannot be listened on.
    pub async fn start(spec: RepositorySpec) -> io::Result<SimulatedRepository> {
        let inner = Arc::new(Inner::new(spec));
        let routes = Router::new().fallback(answer::answer).with_state(Arc::clone(&inner));
        let serving = Serving::start(inner.spec.port, "simulated-repository", routes)?;
        inner.set_site(serving.url());
        Ok(SimulatedRepository { inner, serving })
    }

    /// `http://127.0.0.1:<port>`, where the home page is.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// The base URL.
    pub fn base_url(&self) -> String {
        self.inner.base()
    }

    /// The identifier of the record with this index, whether it exists or not.
    pub fn identifier(&self, index: u64) -> String {
        self.inner.identifier(index)
    }

    /// The present moment of the simulation.
    pub fn now(&self) -> SimTime {
        self.inner.changing().world.now()
    }

    /// Moves the clock without changing anything.
    pub fn advance(&self, seconds: u32) {
        self.inner.changing().world.advance(seconds);
    }

    /// Changes records chosen by the seed, each a second after the one before. Returns their indices: created, then
    /// updated, then deleted ones.
    pub fn change(&self, changes: Changes) -> Vec<u64> {
        self.inner.changing().world.change(changes)
    }

    /// Gives a record other metadata; a deleted one comes back.
    pub fn update(&self, index: u64) {
        self.inner.changing().world.update(index);
    }

    /// Gives a record other metadata under the same datestamp.
    pub fn update_silently(&self, index: u64) {
        self.inner.changing().world.update_silently(index);
    }

    /// Gives a record a new datestamp over the same metadata.
    pub fn touch(&self, index: u64) {
        self.inner.changing().world.touch(index);
    }

    /// Deletes a record.
    pub fn delete(&self, index: u64) {
        self.inner.changing().world.delete(index);
    }

    /// Takes a record out of its set.
    pub fn leave_set(&self, index: u64) {
        self.inner.changing().world.leave_set(index);
    }

    /// Removes the set `group:<number>`; its records stay.
    pub fn remove_set(&self, number: u64) {
        self.inner.changing().world.removed_sets.push(number);
    }

    /// Shows no deletion any more that was shown so far.
    pub fn forget_deletions(&self) {
        self.inner.changing().world.forget_deletions();
    }

    /// Lets all tokens expire that were issued.
    pub fn expire_tokens(&self) {
        self.inner.changing().tokens.expire();
    }

    /// Sets a fault. One of the same kind is replaced.
    pub fn set_fault(&self, fault: RepositoryFault) {
        self.inner.changing().faults.set(fault);
    }

    /// Lets the next responses to lists and records fail, after those that were to fail already.
    pub fn fail_next(&self, failure: Failure, times: usize) {
        self.inner.changing().faults.fail_next(failure, times);
    }

    /// Answers so many requests of a verb from now on, or of those whose path begins so. Later ones wait until more are
    /// allowed, so that a harvest cannot come to its end meanwhile.
    pub fn allow(&self, verb_or_path: &str, requests: u64) {
        self.inner.gate.allow(verb_or_path, requests);
    }

    /// Answers all requests again, also those that wait.
    pub fn allow_all(&self) {
        self.inner.gate.allow_all();
    }

    /// Clears all faults and failures.
    pub fn clear_faults(&self) {
        self.inner.changing().faults.clear();
    }

    /// The true state of all records now, those that vanished included, in the order of their indices.
    pub fn expected(&self) -> Vec<ExpectedRecord> {
        let changing = self.inner.changing();
        let record = |index| {
            let state = changing.world.get(index)?;
            let set = self.inner.set_of(index).filter(|_| !state.left_set);
            Some(ExpectedRecord {
                index,
                identifier: self.inner.identifier(index),
                modified: state.modified,
                deleted: state.deleted,
                set: set.map(|number| format!("group:{number}")),
            })
        };
        (0..changing.world.len()).filter_map(record).collect()
    }

    /// The true metadata of a record now, as the element that answers have; `None` when there is none.
    pub fn metadata(&self, index: u64, prefix: &str) -> Option<String> {
        let changing = self.inner.changing();
        let state = changing.world.get(index).filter(|state| !state.deleted)?;
        let of = files::Of { inner: &self.inner, world: &changing.world, index, version: state.version };
        Some(xml::metadata(&of, &changing.faults, prefix, true))
    }

    /// The true bytes of a record's file.
    pub fn file(&self, index: u64, number: u64) -> Vec<u8> {
        let version = self.inner.changing().world.file(index, number).version;
        self.inner.content.whole(self.inner.file(index, number), version)
    }

    /// The URL of a record's file.
    pub fn file_url(&self, index: u64, number: u64) -> String {
        self.inner.file_url(index, number)
    }

    /// Gives a file other bytes, and its record a new version.
    pub fn update_file(&self, index: u64, number: u64) {
        self.inner.changing().world.update_file(index, number);
    }

    /// Removes a file, and names it in its record no more.
    pub fn remove_file(&self, index: u64, number: u64) {
        self.inner.changing().world.remove_file(index, number);
    }

    /// Serves a file no more that its record still names.
    pub fn lose_file(&self, index: u64, number: u64) {
        self.inner.changing().world.lose_file(index, number);
    }

    /// The requests so far.
    pub fn requests(&self) -> RepositoryLog {
        self.inner.changing().log.read()
    }

    /// Clears the log of requests.
    pub fn reset_requests(&self) {
        self.inner.changing().log.reset();
    }

    /// Ends the repository and all its connections; dropping it does the same.
    pub fn shutdown(self) {}
}
