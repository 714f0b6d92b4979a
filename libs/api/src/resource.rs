//! Resources of a Source.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use model::{
    ChangeLogEntry, Linked, Links, PendingRecord, ProblemRecord, ResourceRecord, ResourceUri, Version,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// The URI, as the Source writes it.
    pub uri: String,
    /// The state of the resource.
    pub state: ResourceState,
    /// The length of the stored bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub length: Option<u64>,
    /// The SHA-256 of the stored bytes, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub sha256: Option<String>,
    /// The media type that the server sent with the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub media_type: Option<String>,
    /// The Content-Encoding of the stored bytes. Absent where they are not encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub encoding: Option<String>,
    /// When the resource changed, as the Source declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub change_time: Option<Timestamp>,
    /// When the bytes were stored and verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub stored_at: Option<Timestamp>,
    /// The links of the entry that listed it: `rel`, `href`, the other attributes that it gives, and the `document`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>, required = false)]
    pub links: Option<Links>,
    /// The link that leads to it, if no list names it: the resource that has the link (`from`) and the relation (`rel`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub linked: Option<Box<Linked>>,
}

/// The state of a resource: [`model::ResourceState`], described for the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceState {
    /// Stored, and the current version as far as is known.
    Present,
    /// The Source deleted it.
    Deleted,
    /// To be fetched. An earlier version may be stored.
    Pending,
    /// Could not be brought in sync. The history of the resource says why.
    Problem,
}

impl From<model::ResourceState> for ResourceState {
    fn from(state: model::ResourceState) -> Self {
        match state {
            model::ResourceState::Present => Self::Present,
            model::ResourceState::Deleted => Self::Deleted,
            model::ResourceState::Pending => Self::Pending,
            model::ResourceState::Problem => Self::Problem,
        }
    }
}

impl From<ResourceState> for model::ResourceState {
    fn from(state: ResourceState) -> Self {
        match state {
            ResourceState::Present => Self::Present,
            ResourceState::Deleted => Self::Deleted,
            ResourceState::Pending => Self::Pending,
            ResourceState::Problem => Self::Problem,
        }
    }
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkEnd {
    /// The relation.
    pub rel: String,
    /// The target, as the Source writes it.
    pub href: String,
    /// Its state; absent if it is no resource of the Source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub state: Option<ResourceState>,
    /// Why nothing is stored of it, if it has no state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub not_followed: Option<String>,
}

/// All that is known of a resource.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResourceHistory {
    /// The resource and its state.
    pub resource: Resource,
    /// The stored record, and the document that declared the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub record: Option<ResourceRecord>,
    /// The work that is still to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub pending: Option<PendingRecord>,
    /// Why the resource could not be brought in sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pub problem: Option<ProblemRecord>,
    /// Kept versions, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    pub versions: Vec<Version>,
    /// Documents that list the resource and are problems themselves, by URI.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub document_problems: BTreeMap<String, ProblemRecord>,
    /// What its links lead to: the state of each target, or why nothing is stored of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_ends: Vec<LinkEnd>,
    /// Events of the resource, the oldest first: the last 1000.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    pub events: VecDeque<ChangeLogEntry>,
    /// How many earlier events are omitted.
    pub events_omitted: u64,
}

impl Resource {
    /// Builds a resource from its state and its stored record.
    pub fn new(uri: &ResourceUri, state: model::ResourceState, record: Option<&ResourceRecord>) -> Self {
        let bitstream = record.and_then(|record| record.bitstream.as_ref());
        Self {
            uri: uri.to_string(),
            state: state.into(),
            length: bitstream.map(|bitstream| bitstream.computed.length()),
            sha256: bitstream.map(|bitstream| bitstream.computed.sha256().to_string()),
            media_type: bitstream.and_then(|bitstream| bitstream.media_type.clone()),
            encoding: bitstream.and_then(|bitstream| bitstream.encoding.clone()),
            change_time: record.and_then(|record| record.listing.change_time.or(record.declaration.lastmod)),
            stored_at: bitstream.map(|bitstream| bitstream.stored_at),
            links: record.and_then(|record| record.listing.shown_links()),
            linked: record.and_then(|record| record.listing.linked.clone()),
        }
    }
}

impl ResourceHistory {
    /// Whether nothing is known of the resource.
    pub fn is_empty(&self) -> bool {
        self.record.is_none() && self.pending.is_none() && self.problem.is_none() && self.events.is_empty()
    }

    /// The documents that list a resource. They may be problems themselves.
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
