use serde::{Deserialize, Serialize};

use crate::capability::{Capability, Change};
use crate::datetime::Datetime;

/// The `rs:md` of an entry. Every attribute is optional here; the specification's table lists those that a
/// document must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The capability of the document at `loc`, in a Source Description or Capability List.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// The change of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// When it happened (RS-7; version 1.0 has it in `lastmod`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datetime: Option<Datetime>,
    /// When the snapshot of the listed document or package began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Datetime>,
    /// When that snapshot was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Datetime>,
    /// The start of the interval of the listed document or package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Datetime>,
    /// The end of that interval; absent while the document is still open (RS-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Datetime>,
    /// The digests as written: whitespace-separated `algorithm:digest` values (RS-8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The representation's length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The media type, `type` in the documents.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The content coding that `length` and `hash` refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The path of the bitstream in its package, as written (RS-9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Metadata {
    /// Whether no attribute is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
