//! Marks: everything that a record points to.

use std::collections::{HashMap, HashSet};
use std::io;

use jiff::Timestamp;
use model::{Location, PackId, PackageId, Seq, SourceId};

use crate::spill::Spill;

/// The marks of a whole store.
pub(crate) struct Marks {
    /// Bitstreams in objects of their own, of all Sources.
    pub(crate) objects: Spill,
    sources: HashMap<SourceId, Needed>,
}

/// The marks in the folders of a Source.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// Its packs.
    pub(crate) packs: HashMap<PackId, LiveMembers>,
    /// Its packages, and their indexes.
    pub(crate) packages: HashSet<PackageId>,
    /// Packages that a reader may still be reading.
    pub(crate) freed: HashSet<PackageId>,
    /// Plans of packages in work: their uploads are in use.
    pub(crate) plans: HashSet<Seq>,
}

/// The live members of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LiveMembers {
    /// Records that point into it.
    pub(crate) members: u64,
    /// The stored bytes that they point to.
    pub(crate) bytes: u64,
    /// Other records that point into it. They keep it from being rewritten.
    pub(crate) others: u64,
    /// A record pointed into it until recently, so a reader may be reading it.
    pub(crate) freed: bool,
}

/// What points to a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A resource record, which can be changed to point elsewhere.
    Resource,
    /// Another record.
    Other,
    /// No record any more, but a reader may be reading it.
    Reader,
}

impl Marks {
    pub(crate) fn new() -> Self {
        Self { objects: Spill::new(), sources: HashMap::new() }
    }

    /// The marks of a Source.
    pub(crate) fn of(&mut self, source: &SourceId) -> &mut Needed {
        self.sources.entry(source.clone()).or_default()
    }

    /// Marks a location.
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

/// The result of marking a Source.
#[derive(Debug, Clone)]
pub(crate) struct SourceMarks {
    /// The Source.
    pub(crate) source: SourceId,
    /// What was stored for it since this time is within the retention.
    pub(crate) young: Timestamp,
    /// When its unfinished run began, or a job whose end is awaited.
    pub(crate) unfinished: Option<Timestamp>,
    /// Tombstones whose bytes may be removed.
    pub(crate) due: u64,
}
