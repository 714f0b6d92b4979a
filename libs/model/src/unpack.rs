//! Unpack jobs: packages to be read.

use serde::{Deserialize, Serialize};

use crate::wire::Message;
use crate::{Declaration, JobId, Lane, PackageId, ResourceUri, RunId, Seq, SourceId, StoredBitstream};

/// A package of a dump that was fetched, to be read: its manifest, or one slice of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpackJob {
    /// Its name.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that asks.
    pub run: RunId,
    /// The origin it comes from.
    pub lane: Lane,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The plan it belongs to.
    pub seq: Seq,
    /// What was declared of it.
    #[serde(default)]
    pub declaration: Declaration,
    /// Where it lies.
    pub stored: StoredBitstream,
    /// What is to be done with it.
    #[serde(default)]
    pub task: UnpackTask,
}

/// What is to be done with a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "task")]
pub enum UnpackTask {
    /// Judge it, read its manifest, and divide it into slices. A package that can only be read from its beginning is unpacked
    /// at once.
    Open {
        /// Slices at the beginning that are settled already, so that they are not stored again.
        #[serde(default)]
        settled: u32,
    },
    /// Check the members of one slice.
    Slice {
        /// The index that was made when the package was opened.
        index: PackageId,
        /// Which of its slices.
        number: u32,
    },
}

impl Default for UnpackTask {
    fn default() -> Self {
        Self::Open { settled: 0 }
    }
}

impl Message for UnpackJob {
    const KIND: &'static str = "unpack-job";
    const VERSION: u16 = 1;
}
