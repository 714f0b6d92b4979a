//! What is held of a Source.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use model::{ChangeLogEntry, PendingRecord, ProblemRecord, ResourceRecord, ResourceUri, Version};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// Its URI, as the Source writes it.
    pub uri: String,
    /// How it stands.
    pub state: Standing,
    /// The length of what is held, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub length: Option<u64>,
    /// The SHA-256 of what is held, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub sha256: Option<String>,
    /// The media type that the server sent with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub media_type: Option<String>,
    /// The Content-Encoding of its bytes as they are stored; absent where they are not encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub encoding: Option<String>,
    /// When it changed, as the Source tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub change_time: Option<Timestamp>,
    /// When it was stored and judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub stored_at: Option<Timestamp>,
}

/// How a resource stands: [`model::Standing`], described for the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ResourceState)]
pub enum Standing {
    /// Held, and as far as is known the current version.
    Present,
    /// The Source deleted it.
    Deleted,
    /// To be fetched; what is held, if anything, is an earlier version.
    Pending,
    /// Could not be brought in step; its story says why.
    Problem,
}

impl From<model::Standing> for Standing {
    fn from(standing: model::Standing) -> Self {
        match standing {
            model::Standing::Present => Self::Present,
            model::Standing::Deleted => Self::Deleted,
            model::Standing::Pending => Self::Pending,
            model::Standing::Problem => Self::Problem,
        }
    }
}

impl From<Standing> for model::Standing {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Present => Self::Present,
            Standing::Deleted => Self::Deleted,
            Standing::Pending => Self::Pending,
            Standing::Problem => Self::Problem,
        }
    }
}

/// All that is known of a resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Story {
    /// The resource, as it stands.
    pub resource: Resource,
    /// What is held of it, and which document brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub record: Option<ResourceRecord>,
    /// What is still to be done with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub pending: Option<PendingRecord>,
    /// Why it could not be brought in step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub problem: Option<ProblemRecord>,
    /// Earlier versions that are kept, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    pub versions: Vec<Version>,
    /// Documents that speak of it and are problems themselves, by their URIs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub concerns: BTreeMap<String, ProblemRecord>,
    /// What happened to it here, oldest first: the last 1000 events.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    pub changes: VecDeque<ChangeLogEntry>,
    /// How many events came before these.
    pub changes_left_out: u64,
}

impl Resource {
    /// A resource: how it stands, and what is held of it.
    pub fn new(uri: &ResourceUri, standing: model::Standing, record: Option<&ResourceRecord>) -> Self {
        let bitstream = record.and_then(|record| record.bitstream.as_ref());
        Self {
            uri: uri.to_string(),
            state: standing.into(),
            length: bitstream.map(|bitstream| bitstream.computed.length()),
            sha256: bitstream.map(|bitstream| bitstream.computed.sha256().to_string()),
            media_type: bitstream.and_then(|bitstream| bitstream.media_type.clone()),
            encoding: bitstream.and_then(|bitstream| bitstream.encoding.clone()),
            change_time: record.and_then(|record| record.listing.change_time.or(record.declaration.lastmod)),
            stored_at: bitstream.map(|bitstream| bitstream.stored_at),
        }
    }
}

impl Story {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.record.is_none() && self.pending.is_none() && self.problem.is_none() && self.changes.is_empty()
    }

    /// The documents that speak of a resource: they may be problems themselves.
    pub fn documents(
        record: Option<&ResourceRecord>,
        pending: Option<&PendingRecord>,
        problem: Option<&ProblemRecord>,
    ) -> BTreeSet<String> {
        let listings = [
            record.map(|record| &record.listing),
            pending.map(|pending| &pending.listing),
            problem.and_then(|problem| problem.listing.as_ref()),
        ];
        let absence = record.and_then(|record| record.absent.as_ref());
        let listed = listings.into_iter().flatten().map(|listing| listing.document.as_ref().to_owned());
        listed.chain(absence.map(|absence| absence.document.clone())).collect()
    }
}
