//! State shared by the handle of a Source and its server.

use std::sync::{Mutex, MutexGuard, OnceLock};

use super::content::Content;
use super::fault::{Faults, Target};
use super::gate::Gate;
use super::requests::Counters;
use super::spec::SourceSpec;
use super::world::{Present, World};

/// The state of a Source.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) spec: SourceSpec,
    pub(crate) content: Content,
    pub(crate) counters: Counters,
    /// Before the answers to requests for resources.
    pub(crate) gate: Gate,
    /// `/<set>/`
    prefix: String,
    base: OnceLock<String>,
    world: Mutex<World>,
    faults: Mutex<Faults>,
}

impl Inner {
    pub(crate) fn new(spec: SourceSpec) -> Inner {
        Inner {
            content: Content::new(spec.seed, spec.size),
            counters: Counters::default(),
            gate: Gate::default(),
            prefix: format!("/{}/", spec.set),
            base: OnceLock::new(),
            world: Mutex::new(World::new(spec.seed, spec.resources, spec.entries_per_list)),
            faults: Mutex::default(),
            spec,
        }
    }

    /// The true state. Never locked across an await, nor together with the faults.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no holder panics but on a test's wrong command")
    }

    /// The present version of the resource at a path or URI: its index and state.
    pub(crate) fn present(&self, uri: &str) -> Option<(u64, Present)> {
        let index = self.resource_index(uri)?;
        let world = self.world();
        Some((index, world.at(index, world.now())?))
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().expect("no holder panics")
    }

    /// Sets the Source's address, once it listens.
    pub(crate) fn set_base(&self, base: String) {
        let _ = self.base.set(base);
    }

    /// `http://127.0.0.1:<port>`
    pub(crate) fn base(&self) -> &str {
        self.base.get().map_or("", String::as_str)
    }

    /// The URI of a document of the set.
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("{}{}{name}", self.base(), self.prefix)
    }

    pub(crate) fn resource_path(&self, index: u64) -> String {
        // A thousand per folder, as people would arrange them.
        format!("{}resources/{:04}/{index:07}.bin", self.prefix, index / 1000)
    }

    pub(crate) fn resource_uri(&self, index: u64) -> String {
        format!("{}{}", self.base(), self.resource_path(index))
    }

    /// Whether a path belongs to a resource.
    pub(crate) fn is_resource_path(&self, path: &str) -> bool {
        path.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with("resources/"))
    }

    /// The index of the resource at a path or URI of this Source, whether it exists or not.
    pub(crate) fn resource_index(&self, path_or_uri: &str) -> Option<u64> {
        let path = self.path_of(path_or_uri);
        let name = path.strip_suffix(".bin")?.rsplit('/').next()?;
        let index = name.parse().ok()?;
        (self.resource_path(index) == path).then_some(index)
    }

    /// The path of a target, so that faults have one key.
    pub(crate) fn target_path(&self, target: Target) -> String {
        match target {
            Target::Resource(index) => self.resource_path(index),
            Target::Path(path) => self.path_of(&path).to_owned(),
        }
    }

    fn path_of<'a>(&self, path_or_uri: &'a str) -> &'a str {
        path_or_uri.strip_prefix(self.base()).unwrap_or(path_or_uri)
    }
}
