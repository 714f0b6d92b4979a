//! A Source inside this process: its present and earlier resources, and its published documents.

mod answer;
mod documents;
mod fault;
mod package;
mod repository;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use model::Clock;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use answer::Line;
pub use fault::{HttpFault, On, What};
pub use repository::Repository;

use crate::clock::SimClock;
use crate::effects::mix;

/// The properties of a Source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteSpec {
    /// The seed of its content.
    pub seed: u64,
    /// Resources at the start.
    pub resources: u32,
    /// The fixity it declares for each resource.
    pub fixity: Fixity,
    /// Whether its documents declare `lastmod`.
    pub lastmod: bool,
    /// Whether responses have an `ETag`.
    pub etag: bool,
    /// Whether responses have a `Last-Modified`.
    pub last_modified: bool,
    /// Whether responses have a `Content-Length`.
    pub content_length: bool,
    /// Parts of its Resource List; none without one.
    pub list_parts: usize,
    /// Packages of its Resource Dump; none without one.
    pub packages: usize,
    /// Whether it has a Change List.
    pub change_list: bool,
    /// Whether it has a Change Dump.
    pub change_dump: bool,
    /// Whether packages of a Resource Dump keep their names when they are published anew.
    pub package_names_stay: bool,
    /// Whether members of packages are deflated.
    pub deflated: bool,
    /// Origins of its resources.
    pub hosts: u32,
    /// The entry URL.
    pub entry: Entry,
    /// How it speaks OAI-PMH, if it does so instead of publishing documents.
    pub repository: Option<Repository>,
}

impl SiteSpec {
    /// A Source that declares all, with a Resource List of this many resources and nothing else.
    pub fn listed(resources: u32) -> Self {
        Self {
            seed: 1,
            resources,
            fixity: Fixity::Both,
            lastmod: true,
            etag: true,
            last_modified: true,
            content_length: true,
            list_parts: 1,
            packages: 0,
            change_list: false,
            change_dump: false,
            package_names_stay: false,
            deflated: false,
            hosts: 1,
            entry: Entry::WellKnown,
            repository: None,
        }
    }
}

/// The declared fixity of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixity {
    /// Nothing.
    Nothing,
    /// The length.
    Length,
    /// A SHA-256.
    Sha256,
    /// Length and SHA-256.
    Both,
}

/// The kind of entry URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Its Source Description.
    WellKnown,
    /// Its Capability List.
    CapabilityList,
}

/// A version of a resource, or its deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its start.
    pub at: Timestamp,
    /// Its bytes; none if the resource was deleted.
    pub body: Option<Bytes>,
}

/// One line of the Source's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: Timestamp,
    pub(crate) resource: u32,
    pub(crate) kind: &'static str,
    pub(crate) body: Option<Bytes>,
}

/// A served document or package.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) body: Bytes,
    pub(crate) media_type: &'static str,
    pub(crate) at: Timestamp,
    pub(crate) etag: String,
}

/// A simulated Source.
#[derive(Debug)]
pub struct Site {
    /// Its properties.
    pub spec: SiteSpec,
    clock: Arc<SimClock>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    rng: ChaCha8Rng,
    resources: BTreeMap<u32, Vec<Version>>,
    log: Vec<Change>,
    /// The first change in the Change List, and the start of its interval.
    told_from: (usize, Timestamp),
    /// The first change that is in no package of the Change Dump, and the end of the last one.
    packed_to: (usize, Timestamp),
    change_packages: Vec<String>,
    /// The resources in the last list or dump.
    listed: BTreeSet<u32>,
    listed_at: Timestamp,
    /// When changes were last published.
    told_at: Timestamp,
    pages: BTreeMap<String, Page>,
    made: u64,
    faults: Vec<HttpFault>,
    /// When the oldest list began whose pages a repository gave to this run.
    oldest_list: Option<Timestamp>,
    /// Requests that are open, by the process that sent them and the origin.
    pub(crate) open: BTreeMap<(u64, String), usize>,
    pub(crate) rests: BTreeMap<(u64, String), Timestamp>,
    pub(crate) most_open: usize,
    pub(crate) requests: u64,
    pub(crate) wrongs: Vec<String>,
}

impl Site {
    /// A Source at its start, with everything published.
    pub fn new(spec: SiteSpec, clock: Arc<SimClock>) -> Self {
        let now = second(clock.now());
        let rng = ChaCha8Rng::seed_from_u64(mix(spec.seed));
        let state = State {
            rng,
            resources: BTreeMap::new(),
            log: Vec::new(),
            told_from: (0, now),
            packed_to: (0, now),
            change_packages: Vec::new(),
            listed: BTreeSet::new(),
            listed_at: now,
            told_at: now,
            pages: BTreeMap::new(),
            made: 0,
            faults: Vec::new(),
            oldest_list: None,
            open: BTreeMap::new(),
            rests: BTreeMap::new(),
            most_open: 0,
            requests: 0,
            wrongs: Vec::new(),
        };
        let site = Self { spec, clock, state: Mutex::new(state) };
        {
            let mut state = site.state();
            for number in 0..site.spec.resources {
                let age = SignedDuration::from_secs(1_000 + (mix(u64::from(number)) % 100_000) as i64);
                let version = Version { at: now - age, body: Some(site.body(number, 0)) };
                state.resources.insert(number, vec![version]);
            }
        }
        site.publish(true, true);
        site
    }

    /// The entry URL of a harvest.
    pub fn entry(&self) -> String {
        if self.spec.repository.is_some() {
            return format!("{}/oai", self.base());
        }
        match self.spec.entry {
            Entry::WellKnown => format!("{}/.well-known/resourcesync", self.base()),
            Entry::CapabilityList => format!("{}/capabilitylist.xml", self.base()),
        }
    }

    /// The URI of a resource.
    pub fn uri(&self, number: u32) -> String {
        if self.spec.repository.is_some() {
            return self.record_uri(number);
        }
        match number % self.spec.hosts.max(1) {
            0 => format!("{}/r/{number}", self.base()),
            host => format!("http://files{host}.example/r/{number}"),
        }
    }

    pub(crate) fn base(&self) -> &'static str {
        "http://source.example"
    }

    /// Every version that each resource ever had, the newest last.
    pub fn history(&self) -> BTreeMap<String, Vec<Version>> {
        let state = self.state();
        state.resources.iter().map(|(number, versions)| (self.uri(*number), versions.clone())).collect()
    }

    /// The resources in the last list or dump that have not changed since, with their bytes.
    pub fn told_by_snapshots(&self) -> BTreeMap<String, Option<Bytes>> {
        if self.spec.repository.is_some() {
            return self.told_by_lists();
        }
        let state = self.state();
        let told = state.listed.iter().filter_map(|number| {
            let version = state.resource(*number).filter(|version| version.at <= state.listed_at)?;
            Some((self.uri(*number), version.body.clone()))
        });
        told.collect()
    }

    /// The resources in the last Change List or Change Dump that have not changed since, with their bytes.
    pub fn told_by_changes(&self) -> BTreeMap<String, Option<Bytes>> {
        if self.spec.repository.is_some() {
            return self.told_by_lists();
        }
        let state = self.state();
        let told = state.log[state.told_from.0..].iter().filter_map(|change| {
            let version = state.resource(change.resource).filter(|version| version.at <= state.told_at)?;
            Some((self.uri(change.resource), version.body.clone()))
        });
        told.collect()
    }

    /// The records that the lists of a repository show now, with their bytes.
    fn told_by_lists(&self) -> BTreeMap<String, Option<Bytes>> {
        let shows_deleted = self.spec.repository.as_ref().is_some_and(|repository| repository.shows_deleted);
        let state = self.state();
        let told = state.resources.iter().filter_map(|(number, versions)| {
            let version = versions.last().filter(|version| version.body.is_some() || shows_deleted)?;
            Some((self.uri(*number), version.body.clone()))
        });
        told.collect()
    }

    /// The resources that were there when changes were last published, and have not changed since, with their bytes.
    pub fn present_when_told(&self) -> BTreeMap<String, Option<Bytes>> {
        let state = self.state();
        let told = state.resources.iter().filter_map(|(number, versions)| {
            let version = versions.last().filter(|version| version.at <= state.told_at)?;
            Some((self.uri(*number), Some(version.body.clone()?)))
        });
        told.collect()
    }

    /// The time of its list and its dump.
    pub fn snapshots_at(&self) -> Timestamp {
        self.state().listed_at
    }

    /// Whether a resource exists that the last list or dump could not list: it was created, or restored,
    /// later.
    pub fn is_newer_than_snapshots(&self, uri: &str) -> bool {
        let listed_at = self.state().listed_at;
        self.history().get(uri).is_some_and(|versions| versions.iter().any(|version| version.at > listed_at))
    }

    /// The present resources.
    pub fn present(&self) -> BTreeMap<String, Bytes> {
        let history = self.history().into_iter();
        history.filter_map(|(uri, versions)| Some((uri, versions.last()?.body.clone()?))).collect()
    }

    /// Changes this many resources, each a second after the other if no process runs.
    pub fn change(&self, created: u32, updated: u32, deleted: u32) {
        for (count, kind) in [(created, "created"), (updated, "updated"), (deleted, "deleted")] {
            for _ in 0..count {
                self.clock.advance(1);
                self.change_one(kind, None);
            }
        }
    }

    /// Changes one resource, now.
    pub(crate) fn change_one(&self, kind: &'static str, which: Option<u32>) {
        let now = second(self.clock.now());
        let mut state = self.state();
        let is_there = |versions: &[Version]| versions.last().is_some_and(|version| version.body.is_some());
        let number = match (kind, which) {
            // A deleted resource may come back.
            ("created", _) => {
                let gone = state.resources.iter().filter(|(_, versions)| !is_there(versions));
                let gone: Vec<u32> = gone.map(|(number, _)| *number).collect();
                let next = state.resources.keys().last().map_or(0, |last| last + 1);
                match gone.len() {
                    0 => next,
                    many => {
                        let chosen = state.rng.random_range(0..many * 2);
                        gone.get(chosen).copied().unwrap_or(next)
                    }
                }
            }
            (_, Some(number)) => number,
            _ => {
                let there = state.resources.iter().filter(|(_, versions)| is_there(versions));
                let there: Vec<u32> = there.map(|(number, _)| *number).collect();
                if there.is_empty() {
                    return;
                }
                let chosen = state.rng.random_range(0..there.len());
                there[chosen]
            }
        };
        let versions = state.resources.get(&number).cloned().unwrap_or_default();
        if is_there(&versions) == (kind == "created") {
            return;
        }
        // One change of a resource per second: a Source's clock cannot distinguish more.
        if versions.last().is_some_and(|last| last.at >= now) {
            return;
        }
        let body = (kind != "deleted").then(|| {
            // Sometimes an earlier version comes back.
            let earlier: Vec<Bytes> = versions.iter().filter_map(|version| version.body.clone()).collect();
            match earlier.len() {
                many if many > 1 && state.rng.random_range(0..6) == 0 => earlier[many - 2].clone(),
                many => self.body(number, many),
            }
        });
        state.resources.entry(number).or_default().push(Version { at: now, body: body.clone() });
        state.log.push(Change { at: now, resource: number, kind, body });
    }

    /// Publishes its documents anew: snapshots, and changes.
    pub fn publish(&self, snapshots: bool, changes: bool) {
        self.clock.advance(1);
        if self.spec.repository.is_some() {
            return;
        }
        let now = second(self.clock.now());
        let mut state = self.state();
        self.publish_capabilities(&mut state, now);
        if snapshots {
            state.listed_at = now;
            let present = state
                .resources
                .iter()
                .filter(|(_, versions)| versions.last().is_some_and(|version| version.body.is_some()));
            state.listed = present.map(|(number, _)| *number).collect();
            self.publish_list(&mut state, now);
            self.publish_dump(&mut state, now);
        }
        if changes {
            state.told_at = now;
            self.publish_changes(&mut state, now);
            self.publish_change_dump(&mut state, now);
        }
        drop(state);
        // A document of the same second as its request would count as dated by the request.
        self.clock.advance(2);
    }

    /// Lets the Change List begin now, without earlier changes.
    pub fn forget_changes(&self) {
        self.clock.advance(1);
        let now = second(self.clock.now());
        let mut state = self.state();
        (state.told_from, state.told_at) = ((state.log.len(), now), now);
        self.publish_changes(&mut state, now);
        drop(state);
        self.clock.advance(1);
    }

    /// Begins a run: the lists that it reads count from now on.
    pub fn begin_run(&self) {
        self.state().oldest_list = None;
    }

    /// Whether a record changed after the beginning of a list that this run read. Its place in the list may have
    /// been read before, by an earlier run; the next changes show it.
    pub fn is_newer_than_lists(&self, uri: &str) -> bool {
        let Some(began) = self.state().oldest_list else { return false };
        self.history()
            .get(uri)
            .and_then(|versions| versions.last())
            .is_some_and(|version| version.at >= began)
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Vec<HttpFault>) {
        let mut state = self.state();
        state.faults = faults;
    }

    /// The most concurrent requests of one process to one origin.
    pub fn most_open(&self) -> usize {
        self.state().most_open
    }

    /// The number of documents published so far. Each publication raises it.
    pub fn published(&self) -> u64 {
        let state = self.state();
        // The lists of a repository are as new as its records.
        state.made + if self.spec.repository.is_some() { state.log.len() as u64 } else { 0 }
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Violations of the Source's limits by processes.
    pub fn wrongs(&self) -> Vec<String> {
        self.state().wrongs.clone()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a version: all different, except for empty ones.
    fn body(&self, number: u32, version: usize) -> Bytes {
        if self.spec.repository.is_some() {
            let lot = mix(self.spec.seed ^ mix(u64::from(number) << 20 | version as u64));
            let text = format!("record {number}, version {version}: {}", "x".repeat((lot % 900) as usize));
            return repository::document(&text);
        }
        let lot = mix(self.spec.seed ^ mix(u64::from(number) << 20 | version as u64));
        let length = match lot % 40 {
            0 => 0,
            1 => 262_000 + (lot >> 8) % 80_000,
            _ => 20 + (lot >> 8) % 900,
        };
        let mut body = format!("resource {number} version {version} ").into_bytes();
        body.resize(body.len().max(length as usize), b'.');
        body.truncate(if length == 0 { 0 } else { body.len() });
        for (place, byte) in body.iter_mut().enumerate().skip(40) {
            *byte = (mix(lot ^ (place as u64 / 8)) >> (place % 8 * 8)) as u8;
        }
        body.into()
    }
}

impl State {
    pub(crate) fn page(&self, path: &str) -> Option<&Page> {
        self.pages.get(path)
    }

    pub(crate) fn resource(&self, number: u32) -> Option<&Version> {
        self.resources.get(&number).and_then(|versions| versions.last())
    }

    fn put(&mut self, path: &str, media_type: &'static str, at: Timestamp, body: impl Into<Bytes>) {
        self.made += 1;
        let etag = format!("\"p{}\"", self.made);
        self.pages.insert(path.to_owned(), Page { body: body.into(), media_type, at, etag });
    }
}

/// A time, truncated to the second.
pub(crate) fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("a second of a timestamp")
}
