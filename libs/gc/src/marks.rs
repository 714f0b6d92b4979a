//! What is needed: each thing that a record points to.

use std::collections::{HashMap, HashSet};
use std::io;

use jiff::Timestamp;
use model::{Location, PackId, PackageId, Seq, SourceId};

use crate::spill::Spill;

/// What is needed of a whole store.
pub(crate) struct Marks {
    /// Bitstreams that are objects of their own, whichever Source they were found at.
    pub(crate) objects: Spill,
    sources: HashMap<SourceId, Needed>,
}

/// What is needed of a Source's own folders.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Its packs.
    pub(crate) packs: HashMap<PackId, Alive>,
    /// Its packages, and what lies beside them.
    pub(crate) packages: HashSet<PackageId>,
    /// Packages that somebody may be reading still.
    pub(crate) freed: HashSet<PackageId>,
    /// Plans of packages that are in work: their uploads are in use.
    pub(crate) plans: HashSet<Seq>,
}

/// What is alive in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Alive {
    /// Records that point into it.
    pub(crate) members: u64,
    /// The stored bytes that they point to.
    pub(crate) bytes: u64,
    /// Other records that point into it: it is left as it is.
    pub(crate) others: u64,
    /// Something did lately, and somebody may be reading it.
    pub(crate) freed: bool,
}

/// Who points to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A resource record, which can be made to point elsewhere.
    Resource,
    /// Another record.
    Other,
    /// Nobody any more, but somebody may be reading it.
    Reader,
}

impl Marks {
    pub(crate) fn new() -> Self {
        Self { objects: Spill::new(), sources: HashMap::new() }
    }

    /// What is needed of a Source.
    pub(crate) fn of(&mut self, source: &SourceId) -> &mut Needed {
        self.sources.entry(source.clone()).or_default()
    }

    /// Something is needed.
    pub(crate) fn add(&mut self, location: &Location, by: By) -> io::Result<()> {
        match location {
            Location::Object { sha256 } => self.objects.add(*sha256)?,
            Location::Pack { source, pack, .. } => {
                let alive = self.of(source).packs.entry(*pack).or_default();
                match by {
                    By::Resource => {
                        alive.members += 1;
                        alive.bytes += location.span().map_or(0, |span| span.stored_length);
                    }
                    By::Other => alive.others += 1,
                    By::Reader => alive.freed = true,
                }
            }
            Location::Package { source, package, .. } => {
                let needed = self.of(source);
                if by == By::Reader {
                    needed.freed.insert(*package);
                } else {
                    needed.packages.insert(*package);
                }
            }
        }
        Ok(())
    }
}

/// How a Source stands.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// The Source.
    pub(crate) source: SourceId,
    /// What was stored for it since is young.
    pub(crate) young: Timestamp,
    /// When its run began that is not finished, or a job whose end is waited for.
    pub(crate) unfinished: Option<Timestamp>,
    /// Tombstones whose bytes may be given up.
    pub(crate) due: u64,
}
