//! Packages: the parts of a dump, from the entry that names one to the bitstreams that are adopted from it.

use std::collections::BTreeMap;

use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::{Capability, Datetime, Metadata};
use serde::{Deserialize, Serialize};

use crate::wire::Message;
use crate::{
    Assurance, Declaration, Failure, JobId, Lane, Location, PackageId, ResourceUri, RunId, Seq, SetId,
    SourceId, StoredBitstream, Terms, Validators,
};

/// A package that a dump names (RS-33). Keyed by its URI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// The plan's number: what comes of an earlier plan does not settle this one. It also names the upload of the package, so that
    /// whoever goes on with a broken one finds how far it came.
    pub seq: Seq,
    /// The run that last asked for it.
    pub run: RunId,
    /// The dump that names it.
    pub document: String,
    /// The set it belongs to.
    pub set: SetId,
    /// What the dump is read as: a Resource Dump or a Change Dump.
    pub capability: Capability,
    /// What the dump declares of the package itself.
    #[serde(default)]
    pub declaration: Declaration,
    /// What the dump says of the package beside that: its `at`, `completed`, `from` and `until`.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its place among the packages of its dump, from 0.
    pub position: u64,
    /// How many entries of its dump name it: more than one is a mistake of the Source.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub named: u64,
    /// Where a copy of its manifest is, if the dump says (`rel="contents"`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<String>,
    /// How far it has come.
    pub state: PackageState,
    /// The version whose slices are all settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<SettledPackage>,
    /// Attempts made in this run, since something came of one.
    #[serde(default)]
    pub attempts: u32,
    /// Not to be tried before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// The job that was sent to open it, until it has ended: whoever owns the Source next waits for what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Whether a run gave it up while it was received, and what had come by then is kept under its `seq`, for the next run to go on with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

fn once() -> u64 {
    1
}

fn is_once(times: &u64) -> bool {
    *times == 1
}

/// How far a package has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
#[expect(
    clippy::large_enum_variant,
    reason = "a dump has few packages, and few of their records are in memory at a time"
)]
pub enum PackageState {
    /// To be fetched.
    Wanted,
    /// Received whole; not opened yet.
    Stored {
        /// Where it lies.
        stored: StoredBitstream,
    },
    /// Its manifest was read; its slices are being worked.
    Opened {
        /// Where it lies.
        stored: StoredBitstream,
        /// What was found in it.
        contents: Contents,
        /// Slices that are settled.
        done: SliceSet,
    },
    /// Every slice is settled, or nothing in it was wanted.
    Done,
    /// Given up in this run; a problem record says why.
    Failed,
}

/// A version of a package that needs no other look.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SettledPackage {
    /// What its dump declared of it.
    #[serde(default)]
    pub declaration: Declaration,
    /// What the server gave with it.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// Its digest, when it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// Where it lies as a whole, when it was received. What nothing points into is collected all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Entries of its manifest.
    pub entries: u64,
}

/// What an opened package holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// What its manifest says of itself.
    pub manifest: ManifestHeader,
    /// Entries of the manifest, those that cannot be read and those that a later one of the same resource overtakes included.
    pub entries: u64,
    /// Entries among them that a later one of the same resource overtakes: only the last version is unpacked.
    #[serde(default)]
    pub overtaken: u64,
    /// How many slices there are.
    pub slices: u32,
    /// The index of the slices, where they are worked one by one. None for a package that can only be read from its beginning: its
    /// slices are worked by the job that opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<PackageId>,
    /// Members that no entry of the manifest names. Where a package is read from its beginning, its last slice tells of them.
    #[serde(default)]
    pub unlisted: u64,
    /// The names of the first few of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted_names: Vec<String>,
}

/// What a manifest says of itself (RS-33).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ManifestHeader {
    /// What it says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// When the snapshot began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Datetime>,
    /// When it was finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Datetime>,
    /// Where the interval of its changes begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Datetime>,
    /// Where that interval ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Datetime>,
    /// Tolerances that reading it needed, counted by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
}

/// Numbers of slices, kept as runs `[first, end)` in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SliceSet(Vec<(u32, u32)>);

/// A package of a dump, to be fetched into the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageJob {
    /// Its name.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that asks.
    pub run: RunId,
    /// The origin.
    pub lane: Lane,
    /// How the Source is asked.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The plan it belongs to, and the name of its upload.
    pub seq: Seq,
    /// What was declared of it; its algorithms are computed while the bytes pass.
    #[serde(default)]
    pub declaration: Declaration,
    /// What the server gave with the version that is known already.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub held: Validators,
}

/// What came of a job about a package; its Source's owner settles it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageOutcome {
    /// The name of the job.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that asked.
    pub run: RunId,
    /// The origin.
    pub lane: Lane,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The plan it belongs to.
    pub seq: Seq,
    /// Requests made for it.
    #[serde(default)]
    pub requests: u64,
    /// Time taken, in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// What came of it.
    pub result: PackageResult,
}

/// What came of a job about a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PackageResult {
    /// Received whole and stored; not judged yet.
    Stored(StoredBitstream),
    /// The server says that the known version is the current one.
    NotModified,
    /// Not received to its end in the job's time. What came is kept, and the next job goes on behind it.
    Deferred {
        /// Bytes that are kept.
        received: u64,
    },
    /// Judged, and its manifest read.
    Opened(Contents),
    /// What the entries of one slice came to.
    Slice {
        /// Which slice.
        number: u32,
        /// One for each of its entries.
        items: Vec<MemberOutcome>,
        /// Members that no entry of the manifest names, told with the last slice of a package that is read from its beginning.
        #[serde(default, skip_serializing_if = "is_zero")]
        unlisted: u64,
        /// The names of the first few of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unlisted_names: Vec<String>,
    },
    /// Somebody else had begun to unpack it from its beginning, and did not come to the end. What was said of it so far stands; a
    /// job that begins behind what is settled by then does the rest.
    Interrupted {
        /// Slices at the beginning that were settled when the job was sent.
        settled: u32,
    },
    /// Not received, not what was declared, or not to be read.
    Failed(Failure),
}

/// An entry of a manifest, as it is read from it. What it asks for is decided by the owner of the Source.
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
    /// The line of the manifest it begins on, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

/// What one entry of a manifest came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberOutcome {
    /// The entry.
    pub entry: ManifestEntry,
    /// What its member came to.
    pub result: MemberResult,
}

/// What the member that an entry names came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberResult {
    /// Judged against what the entry declares, and fit to be served.
    Verified {
        /// The bitstream, in the package or in a pack.
        stored: StoredBitstream,
        /// How much was proved.
        assurance: Assurance,
    },
    /// The entry names no member, as that of a deletion does.
    NoMember,
    /// The member is not there, not what was declared, or not to be read.
    Failed(Failure),
    /// The entry itself cannot be read: in words, why.
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

    /// Those below `all` that it does not hold, in their order.
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
