//! Unpack jobs: packages to be read.

use serde::{Deserialize, Serialize};

use crate::wire::Message;
use crate::{JobId, Lane, ResourceUri, RunId, Seq, SourceId, StoredBitstream};

/// A package of a dump that was fetched, to be read.
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
    /// Where it lies.
    pub stored: StoredBitstream,
}

impl Message for UnpackJob {
    const KIND: &'static str = "unpack-job";
    const VERSION: u16 = 1;
}
