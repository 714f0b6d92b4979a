//! Packages of dumps: their records, their progress, and what their manifests say of themselves.

use std::collections::BTreeMap;

use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::{Capability, Datetime, Header, Metadata};
use serde::{Deserialize, Serialize};

use crate::{
    Declaration, JobId, Location, PackageId, RunId, SelectionId, Seq, SetId, SliceSet, StoredBitstream,
    Validators,
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
