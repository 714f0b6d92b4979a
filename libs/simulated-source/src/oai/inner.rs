//! What the handler of requests and the caller of a simulated repository share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

use super::fault::Faults;
use super::log::Log;
use super::spec::RepositorySpec;
use super::token::Tokens;
use super::world::World;
use crate::clock::SimTime;
use crate::content::Content;
use crate::gate::Gate;

/// All that changes while it runs, under one lock: an answer is a moment of the repository.
#[derive(Debug)]
pub(super) struct Changing {
    pub(super) world: World,
    pub(super) faults: Faults,
    pub(super) tokens: Tokens,
    pub(super) log: Log,
    /// Lists and records requested so far.
    pub(super) served: u64,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) spec: RepositorySpec,
    pub(super) content: Content,
    pub(super) gate: Gate,
    changing: Mutex<Changing>,
    site: OnceLock<String>,
    answers: AtomicU64,
}

impl Inner {
    pub(super) fn new(spec: RepositorySpec) -> Inner {
        Inner {
            content: Content::new(spec.seed, spec.file_size),
            gate: Gate::default(),
            changing: Mutex::new(Changing {
                world: World::new(&spec),
                faults: Faults::default(),
                tokens: Tokens::new(),
                log: Log::default(),
                served: 0,
            }),
            site: OnceLock::new(),
            answers: AtomicU64::new(0),
            spec,
        }
    }

    pub(super) fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().expect("no holder panics")
    }

    pub(super) fn set_site(&self, url: String) {
        let _ = self.site.set(url);
    }

    pub(super) fn site(&self) -> &str {
        self.site.get().map_or("", String::as_str)
    }

    /// The base URL.
    pub(super) fn base(&self) -> String {
        format!("{}/oai", self.site())
    }

    pub(super) fn identifier(&self, index: u64) -> String {
        format!("oai:sim.example.org:{index}")
    }

    pub(super) fn index(&self, identifier: &str) -> Option<u64> {
        identifier.strip_prefix("oai:sim.example.org:")?.parse().ok()
    }

    /// The number of a record's set.
    pub(super) fn set_of(&self, index: u64) -> Option<u64> {
        (self.spec.sets > 0).then(|| index % self.spec.sets)
    }

    /// The landing page of a record, as its metadata name it.
    pub(super) fn page_of(&self, index: u64) -> String {
        let site = self.spec.pages_at.as_deref().unwrap_or_else(|| self.site());
        let index = if self.spec.one_page { 0 } else { index };
        format!("{site}/item/{index}")
    }

    /// The number of a file among all files.
    pub(super) fn file(&self, index: u64, number: u64) -> u64 {
        index * self.spec.files.max(1) + number
    }

    pub(super) fn file_url(&self, index: u64, number: u64) -> String {
        format!("{}/files/{index}/{number}", self.site())
    }

    /// A time that is another one in each answer.
    pub(super) fn answer_time(&self) -> SimTime {
        SimTime::START.plus(self.answers.fetch_add(1, Relaxed) as i64)
    }
}
