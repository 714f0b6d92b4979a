//! Packages of dumps, from their entry to the bitstreams inside them.

use std::collections::BTreeMap;

use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::{Capability, Datetime, Header, Link, Metadata, relation};
use serde::{Deserialize, Serialize};

use crate::patch::packaged_patch;
use crate::wire::Message;
use crate::{
    Assurance, Declaration, Failure, JobId, Links, Location, Origin, PackageId, ResourceUri, RunId,
    SelectionId, Seq, SetId, SourceId, StoredBitstream, Terms, Validators,
};

/// A package that a dump lists (RS-33). Keyed by its URI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// The plan's number: an outcome of an earlier plan does not settle this one. It also names the upload of
    /// the package, so that another worker can resume an interrupted upload.
    pub seq: Seq,
    /// The run that last requested it.
    pub run: RunId,
    /// The dump that lists it.
    pub document: String,
    /// The set it belongs to.
    pub set: SetId,
    /// The capability of the dump: a Resource Dump or a Change Dump.
    pub capability: Capability,
    /// What the dump declares of the package itself.
    #[serde(default)]
    pub declaration: Declaration,
    /// The dump's metadata of the package: its `at`, `completed`, `from` and `until`.
    #[serde(default)]
    pub metadata: Metadata,
    /// The options with which its members are selected; none in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectionId>,
    /// Its index among the packages of its dump, from 0.
    pub position: u64,
    /// How many entries of its dump list it: more than one is a mistake of the Source.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub named: u64,
    /// The URL of a copy of its manifest, if the dump states one (`rel="contents"`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
    /// What that copy says of itself, where it was read before the package. The package's own manifest counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_copy: Option<Box<ManifestHeader>>,
    /// Its progress.
    pub state: PackageState,
    /// The version whose slices are all settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledPackage>,
    /// Attempts in this run, since the last one that made progress.
    #[serde(default)]
    pub attempts: u32,
    /// The earliest time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The job that was sent to open it, until the job has ended. The next owner of the Source waits for its
    /// outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Whether a run gave it up while it was being received. The bytes that came are kept under its `seq`, so
    /// that the next run can resume.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

fn once() -> u64 {
    1
}

fn is_once(times: &u64) -> bool {
    *times == 1
}

/// The progress of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
#[expect(
    clippy::large_enum_variant,
    reason = "a dump has few packages, and few of their records are in memory at a time"
)]
pub enum PackageState {
    /// To be fetched.
    Wanted,
    /// Received completely; not opened yet.
    Stored {
        /// Its location.
        stored: StoredBitstream,
    },
    /// Its manifest was read; its slices are being unpacked.
    Opened {
        /// Its location.
        stored: StoredBitstream,
        /// Its contents.
        contents: Contents,
        /// Slices that are settled.
        done: SliceSet,
    },
    /// Every slice is settled, or nothing in it was needed.
    Done,
    /// Failed in this run; a problem record has the reason.
    Failed,
}

/// A version of a package that is completely settled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SettledPackage {
    /// What its dump declared.
    #[serde(default)]
    pub declaration: Declaration,
    /// The server's validators.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// Its digest, when it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// Its location as a whole, when it was received. gc removes it all the same if nothing points into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Entries of its manifest.
    pub entries: u64,
    /// Which of the kept names are those that it lists; none if it tells changes, or if an earlier version of Thresher
    /// settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<KeptNames>,
}

/// Which of the kept names are those of a settled version of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptNames {
    /// The package's plan when they were read.
    pub seq: Seq,
    /// How many slices the package has.
    pub slices: u32,
}

/// The contents of an opened package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The manifest's own metadata.
    pub manifest: ManifestHeader,
    /// Entries of the manifest, including unreadable and superseded ones.
    pub entries: u64,
    /// Superseded entries: a later one of the same resource exists, and they are not unpacked.
    #[serde(default)]
    pub overtaken: u64,
    /// Whether members of superseded entries are unpacked too, as earlier versions. They are not among `overtaken`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_earlier: bool,
    /// The number of slices.
    pub slices: u32,
    /// The index of the slices, if they are unpacked one by one. None for a package that can only be read
    /// from its start: the job that opens it also unpacks its slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<PackageId>,
    /// Members without an entry in the manifest. For a package that is read from its start, the outcome of
    /// its last slice has them.
    #[serde(default)]
    pub unlisted: u64,
    /// The names of the first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted_names: Vec<String>,
}

/// The metadata of a manifest (RS-33).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ManifestHeader {
    /// Its capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// When the snapshot began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Datetime>,
    /// When the snapshot was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Datetime>,
    /// The start of the interval of its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Datetime>,
    /// The end of that interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Datetime>,
    /// Quirks found in it, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

impl ManifestHeader {
    /// Whether another manifest is of the same kind and of the same times.
    pub fn is_same_edition(&self, other: &Self) -> bool {
        let times = |header: &Self| [&header.at, &header.completed, &header.from, &header.until].map(instant);
        self.capability == other.capability && times(self) == times(other)
    }
}

fn instant(time: &Option<Datetime>) -> Option<Timestamp> {
    time.as_ref().map(Datetime::instant)
}

impl From<&Header> for ManifestHeader {
    fn from(header: &Header) -> Self {
        Self {
            capability: header.capability.clone(),
            at: header.at,
            completed: header.completed,
            from: header.from,
            until: header.until,
            quirks: BTreeMap::new(),
        }
    }
}

/// A set of slice numbers, stored as runs `[first, end)` in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SliceSet(Vec<(u32, u32)>);

/// A package of a dump, to be fetched into the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageJob {
    /// The id of the job.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// The Source's request settings.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The number of its plan, and the name of its upload.
    pub seq: Seq,
    /// What was declared; its digest algorithms are computed as the bytes pass.
    #[serde(default)]
    pub declaration: Declaration,
    /// The validators of the version that is already known.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub held: Validators,
}

/// The outcome of a job for a package; the Source's owner settles it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageOutcome {
    /// The id of the job.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// Requests made for it.
    #[serde(default)]
    pub requests: u64,
    /// Time taken, in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// The result.
    pub result: PackageResult,
}

/// The result of a job for a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageResult {
    /// Received completely and stored; not verified yet.
    Stored(StoredBitstream),
    /// The server says that the known version is the current one.
    NotModified,
    /// Not received completely within the job's time. The received bytes are kept, and the next job resumes
    /// behind them.
    Deferred {
        /// Bytes that are kept.
        received: u64,
    },
    /// Verified, and its manifest read.
    Opened(Contents),
    /// The outcomes of the entries of one slice.
    Slice {
        /// The number of the slice.
        number: u32,
        /// One for each of its entries.
        items: Vec<MemberOutcome>,
        /// Members without an entry in the manifest, reported with the last slice of a package that is read
        /// from its start.
        #[serde(default, skip_serializing_if = "is_zero")]
        unlisted: u64,
        /// The names of the first few of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unlisted_names: Vec<String>,
    },
    /// Another worker unpacked it from the start, and did not reach the end. The outcomes reported so far
    /// stay valid; a job that starts behind the settled ones does the rest.
    Interrupted {
        /// Slices at the start that were settled when the job was sent.
        settled: u32,
    },
    /// Not received, not as declared, or unreadable.
    Failed(Failure),
}

/// An entry of a manifest, as parsed. The owner of the Source decides about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// The resource's URI, as written.
    pub loc: String,
    /// When it was last modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Datetime>,
    /// Its `rs:md`; `path` is the member's name.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its `rs:ln`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// The line of the manifest it begins on, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// Whether a later entry of the manifest is about the same resource. The member is an earlier version then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
}

/// The outcome of one entry of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberOutcome {
    /// The entry.
    pub entry: ManifestEntry,
    /// The result for its member.
    pub result: MemberResult,
    /// The patch that lies in the package in place of the resource, if its bytes are as its link declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<StoredBitstream>>,
}

impl MemberOutcome {
    /// The outcome of an entry.
    pub fn new(entry: ManifestEntry, result: MemberResult) -> Self {
        Self { entry, result, patch: None }
    }
}

impl ManifestEntry {
    /// The link to the patch that lies in the package in place of the resource.
    pub fn patch(&self) -> Option<Link> {
        let links = self.links.as_ref().filter(|links| links.as_str().contains(relation::PATCH))?;
        packaged_patch(&self.metadata, &links.to_vec()).cloned()
    }
}

/// The result for the member that an entry names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberResult {
    /// Verified against the entry's declaration, and fit to be served.
    Verified {
        /// The bitstream, in the package or in a pack.
        stored: StoredBitstream,
        /// How far it was verified.
        assurance: Assurance,
    },
    /// The entry names no member, like that of a deletion.
    NoMember,
    /// The member is missing, not as declared, or unreadable.
    Failed(Failure),
    /// The entry itself is unreadable: the reason as text.
    BadEntry(String),
}

impl SliceSet {
    /// Adds a slice. Returns whether it is new.
    pub fn insert(&mut self, number: u32) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < number);
        match self.0.get_mut(at) {
            Some((first, end)) if (*first..*end).contains(&number) => return false,
            Some((_, end)) if *end == number => *end += 1,
            Some((first, _)) if *first == number + 1 => *first = number,
            _ => self.0.insert(at, (number, number + 1)),
        }
        if let Some(&[(first, end), (next, last)]) = self.0.get(at..at + 2)
            && end == next
        {
            self.0[at] = (first, last);
            self.0.remove(at + 1);
        }
        true
    }

    /// Whether it holds a slice.
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|(first, end)| (*first..*end).contains(&number))
    }

    /// How many slices it holds.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|(first, end)| end - first).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all slices of another set.
    pub fn extend(&mut self, other: &Self) {
        for number in other.0.iter().flat_map(|(first, end)| *first..*end) {
            self.insert(number);
        }
    }

    /// The numbers below `all` that it lacks, in order.
    pub fn missing(&self, all: u32) -> impl Iterator<Item = u32> + '_ {
        (0..all).filter(|number| !self.contains(*number))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Message for PackageJob {
    const KIND: &'static str = "package-job";
    const VERSION: u16 = 1;
}

impl Message for PackageOutcome {
    const KIND: &'static str = "package-outcome";
    const VERSION: u16 = 1;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slices_that_touch_are_one_run() {
        let mut set = SliceSet::default();
        for number in [5, 3, 4, 0, 9] {
            assert!(set.insert(number), "{number}");
        }
        assert!(!set.insert(4));
        assert_eq!(set.0, [(0, 1), (3, 6), (9, 10)]);
        assert_eq!(set.missing(7).collect::<Vec<_>>(), [1, 2, 6]);
    }

    proptest! {
        #[test]
        fn a_slice_set_holds_what_was_put_in(numbers in prop::collection::vec(0u32..40, 0..60)) {
            let mut set = SliceSet::default();
            let mut known = std::collections::BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(set.insert(number), known.insert(number));
                prop_assert!(set.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", set);
            }
            prop_assert_eq!(set.len() as usize, known.len());
            prop_assert!((0..41).all(|number| set.contains(number) == known.contains(&number)));
        }
    }
}
