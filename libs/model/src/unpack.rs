//! Unpack jobs: packages to be read.

use serde::{Deserialize, Serialize};

use crate::wire::Message;
use crate::{Declaration, JobId, Origin, PackageId, ResourceUri, RunId, Seq, SourceId, StoredBitstream};

/// A fetched package of a dump, to be read: its manifest, or one slice of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpackJob {
    /// The id of the job.
    pub id: JobId,
    /// The Source it belongs to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin it comes from.
    #[serde(rename = "lane")]
    pub origin: Origin,
    /// The package's URI.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// What was declared of it.
    #[serde(default)]
    pub declaration: Declaration,
    /// Its location.
    pub stored: StoredBitstream,
    /// The task.
    #[serde(default)]
    pub task: UnpackTask,
}

/// A task for a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "task")]
pub enum UnpackTask {
    /// Verify it, read its manifest, and divide it into slices. A package that can only be read from its
    /// start is unpacked at once.
    Open {
        /// Slices at the start that are settled already, so that they are not stored again.
        #[serde(default)]
        settled: u32,
        /// Whether members of superseded entries are unpacked too, as earlier versions of their resources.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep_earlier: bool,
    },
    /// Check the members of one slice.
    Slice {
        /// The index that was written when the package was opened.
        index: PackageId,
        /// The number of the slice.
        number: u32,
    },
}

impl UnpackJob {
    /// Whether members of superseded entries are unpacked too.
    pub fn keeps_earlier(&self) -> bool {
        matches!(self.task, UnpackTask::Open { keep_earlier: true, .. })
    }
}

impl Default for UnpackTask {
    fn default() -> Self {
        Self::Open { settled: 0, keep_earlier: false }
    }
}

impl Message for UnpackJob {
    const KIND: &'static str = "unpack-job";
    const VERSION: u16 = 1;
}
