//! What the steps of one run share: where they read, and what they count.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use fixity::Sha256;
use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::{Entry, Link, relation};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use crate::bytes::Layer;
use crate::paths::VERSIONS;
use crate::place::xml;
use crate::records::{Body, BodyError, Records, Stored};
use crate::scanned::Scanned;
use crate::state::State;
use crate::takedown::Takedown;
use crate::withheld::Withheld;
use crate::{Base, Place, Policy, PublishError, entry};

/// How many times as long as it took to tell changes none are told again: those that come fast are told together.
const REST: u32 = 4;

/// Totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Published {
    /// Resources in the Resource List.
    pub resources: u64,
    /// Changes that were added to Change Lists.
    pub changes: u64,
    /// Files of resources that were written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Documents that were written.
    pub documents: u64,
    /// Parts of the Resource List that did not change and were kept.
    pub parts_kept: u64,
    /// Packages of the Resource Dump that were written.
    pub packages: u64,
    /// Packages of the Change Dump that were written.
    pub change_packages: u64,
    /// Packages that did not change and were kept.
    pub packages_kept: u64,
    /// Files that were removed, since nothing names them any more.
    pub removed: u64,
    /// Resources that were left out, since their bytes are damaged, or a file changed meanwhile.
    pub damaged: u64,
    /// How long it took until the changes were told that there were at the beginning, without a first Resource List.
    #[serde(skip)]
    pub telling: Duration,
}

impl std::ops::AddAssign for Published {
    fn add_assign(&mut self, other: Self) {
        self.resources += other.resources;
        self.changes += other.changes;
        self.files += other.files;
        self.bytes += other.bytes;
        self.documents += other.documents;
        self.parts_kept += other.parts_kept;
        self.packages += other.packages;
        self.change_packages += other.change_packages;
        self.packages_kept += other.packages_kept;
        self.removed += other.removed;
        self.damaged += other.damaged;
        self.telling += other.telling;
    }
}

/// An event that the observer of a run receives.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A resource was left out, and why.
    Damaged(&'a ResourceUri, &'a BodyError),
    /// A directory was scanned.
    Scanned(&'a Scanned),
    /// A part of a first or new Resource List is complete, with this many resources so far.
    Part(u64),
    /// So many more changes are told: readers find them in the Change Lists from now on.
    Told(u64),
}

/// The last time that changes were told in a run, or looked for.
pub(crate) struct Telling {
    ended: Instant,
    took: Duration,
    /// Changes of which the observer knows.
    seen: u64,
}

impl Telling {
    /// None was told yet.
    pub(crate) fn none() -> Self {
        Self { ended: Instant::now(), took: Duration::ZERO, seen: 0 }
    }
}

/// A publication whose changes are told beside something long of another one.
#[async_trait]
pub(crate) trait Beside: Send + Sync {
    /// Whether it is time.
    fn is_time_to_tell(&self) -> bool;

    /// Tells its changes, if it is time and there are any.
    async fn tell(&mut self) -> Result<(), PublishError>;
}

/// No other publication.
pub(crate) struct Alone;

#[async_trait]
impl Beside for Alone {
    fn is_time_to_tell(&self) -> bool {
        false
    }

    async fn tell(&mut self) -> Result<(), PublishError> {
        Ok(())
    }
}

/// The observer of a run.
pub(crate) type Observer<'a> = &'a mut (dyn FnMut(Seen<'_>) + Send + Sync);

/// What the steps of one run share.
pub(crate) struct Work<'a> {
    pub(crate) place: &'a Place,
    pub(crate) base: &'a Base,
    /// The records, without those that were withdrawn.
    pub(crate) records: &'a dyn Records,
    /// The same, and what is withheld of them.
    pub(crate) withheld: &'a Withheld<'a>,
    /// What is withdrawn.
    pub(crate) takedown: &'a Takedown,
    pub(crate) policy: Policy,
    pub(crate) with_bytes: bool,
    /// Whether a Resource Dump and a Change Dump are made.
    pub(crate) dumps: bool,
    /// When the run began.
    pub(crate) now: Timestamp,
    /// The same by the clock of the process.
    pub(crate) begun: Instant,
    pub(crate) done: Published,
    /// Resources whose bytes could not be laid down in this run.
    pub(crate) left_out: BTreeSet<ResourceUri>,
    pub(crate) telling: Telling,
    /// Whether packages are to be removed that may have bytes of what was withdrawn.
    pub(crate) is_to_purge: bool,
    /// The publication of which this is a part.
    pub(crate) beside: &'a mut dyn Beside,
    pub(crate) see: Observer<'a>,
}

impl<'a> Work<'a> {
    /// Lays down bytes.
    pub(crate) fn layer(&self) -> Layer<'a> {
        Layer { records: self.records, place: self.place, with_bytes: self.with_bytes }
    }

    /// The entry of a resource that is there.
    pub(crate) fn entry(&self, uri: &ResourceUri, stored: &Stored) -> Entry {
        let mut entry = entry::stored(self.records, self.base, uri, stored);
        if let (true, Body::Bitstream(bitstream)) = (self.policy.version_links, &stored.body) {
            let path = self.records.path(uri);
            let version = format!("{VERSIONS}/{}/{}", bitstream.computed.sha256(), path.as_str());
            entry.links.push(Link::new(relation::MEMENTO, self.base.url(&version)));
        }
        entry
    }

    /// Counts the laid bytes of a resource. Returns false if it is to be left out.
    pub(crate) fn count(
        &mut self,
        state: &mut State,
        uri: &ResourceUri,
        laid: Result<Option<u64>, BodyError>,
    ) -> Result<bool, PublishError> {
        match laid {
            // Where no bytes are laid down, they are read by what tells that they are back.
            Ok(None) => {
                state.note_missing(uri, false)?;
                Ok(true)
            }
            Ok(Some(bytes)) => {
                self.done.files += 1;
                self.done.bytes += bytes;
                state.note_missing(uri, false)?;
                Ok(true)
            }
            Err(error) => {
                if self.left_out.insert(uri.clone()) {
                    self.done.damaged += 1;
                    (self.see)(Seen::Damaged(uri, &error));
                }
                state.note_missing(uri, true)?;
                Ok(false)
            }
        }
    }

    /// The time by now.
    pub(crate) fn time(&self) -> Timestamp {
        self.now.checked_add(self.begun.elapsed()).unwrap_or(self.now)
    }

    /// Whether changes are to be told before the run is over.
    pub(crate) fn is_time_to_tell(&self) -> bool {
        let Telling { ended, took, .. } = self.telling;
        ended.elapsed() >= self.policy.tell_every.max(took.saturating_mul(REST))
    }

    /// Notes that all changes were told that there are, and since when that was done.
    pub(crate) fn note_told(&mut self, begun: Instant) {
        let told = self.done.changes;
        if told > self.telling.seen {
            (self.see)(Seen::Told(told - self.telling.seen));
        }
        self.telling = Telling { ended: Instant::now(), took: begun.elapsed(), seen: told };
    }

    /// Writes a document.
    pub(crate) async fn put_document(
        &mut self,
        path: &str,
        document: NamedTempFile,
    ) -> Result<(), PublishError> {
        self.place.put_file(path, document, &xml()).await?;
        self.done.documents += 1;
        Ok(())
    }
}

/// The same moment in whole microseconds, the precision of published times.
pub(crate) fn micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

/// A moment this many microseconds later.
pub(crate) fn later(at: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond().saturating_add(micros)).unwrap_or(at)
}

/// Whether a list may end behind this resource: one of so many is chosen, by its digest.
pub(crate) fn is_chosen(uri: &ResourceUri, one_in: u64) -> bool {
    let digest = Sha256::of(uri.as_str().as_bytes());
    let number = digest.as_bytes().first_chunk().copied().map(u64::from_be_bytes);
    number.is_some_and(|number| number % one_in.max(1) == 0)
}

/// A moment this much earlier.
pub(crate) fn before(at: Timestamp, by: std::time::Duration) -> Timestamp {
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}
