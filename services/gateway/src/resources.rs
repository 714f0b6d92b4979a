//! `/v1/sources/{source}/resources`: what is held of a Source, what is to be fetched, and what could not be.

use std::collections::VecDeque;

use axum::Json;
use axum::extract::{Path, State};
use catalog::{CatalogReader, Known};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use model::{ChangeLogEntry, PendingRecord, ProblemRecord, ResourceRecord, ResourceUri, Subject};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ask::{self, Asked};
use crate::page::{self, Page};
use crate::refusal::Refusal;
use crate::state::Gateway;

/// The kind of cursors.
const KIND: &str = "resources";
/// The last entries of the change log that a story tells.
const TOLD: usize = 1000;

/// A resource.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Resource {
    /// Its URI, as the Source writes it.
    uri: String,
    /// How it stands.
    state: Standing,
    /// The length of what is held, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    length: Option<u64>,
    /// The SHA-256 of what is held, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    sha256: Option<String>,
    /// The media type that the server sent with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    media_type: Option<String>,
    /// When it changed, as the Source tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    change_time: Option<Timestamp>,
    /// When it was stored and judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    stored_at: Option<Timestamp>,
}

/// How a resource stands: [`model::Standing`], described for the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ResourceState)]
enum Standing {
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

/// Parameters of the list of resources.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only those whose URI begins with this.
    prefix: Option<String>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Which resource.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UriParams {
    /// Its URI, exactly as the Source writes it.
    #[param(max_length = 8192)]
    pub(crate) uri: String,
}

/// All that is known of a resource.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Story {
    /// The resource, as it stands.
    resource: Resource,
    /// What is held of it, and which document brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    record: Option<ResourceRecord>,
    /// What is still to be done with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    pending: Option<PendingRecord>,
    /// Why it could not be brought in step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>, required = false)]
    problem: Option<ProblemRecord>,
    /// What happened to it here, oldest first: the last 1000 events.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    changes: VecDeque<ChangeLogEntry>,
    /// How many events came before these.
    changes_left_out: u64,
}

/// Resources, in the order of the bytes of their URIs.
#[utoipa::path(get, path = "/v1/sources/{source}/resources", tag = "resources",
    params(("source" = String, Path, description = "The Source's name"), ListParams),
    responses((status = 200, description = "A page of them", body = Page<Resource>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Path(source): Path<String>,
    Asked(params): Asked<ListParams>,
) -> Result<Json<Page<Resource>>, Refusal> {
    let limit = page::limit(params.limit)?;
    let behind = page::behind(KIND, params.cursor.as_deref())?.map(|uri| ask::resource(&uri)).transpose()?;
    let catalog = gateway.catalogs().get(&ask::source(&source)?).await?;
    let prefix = params.prefix.unwrap_or_default();
    Ok(Json(page_of(&catalog, &prefix, behind.as_ref(), limit).await?))
}

/// A page of what is held, what is pending and what is a problem, in one order.
async fn page_of(
    catalog: &CatalogReader,
    prefix: &str,
    behind: Option<&ResourceUri>,
    limit: usize,
) -> Result<Page<Resource>, Refusal> {
    let mut known: Vec<Known> =
        catalog.scan_known(Some(prefix), behind).await?.take(limit + 1).try_collect().await?;
    let more = known.len() > limit;
    known.truncate(limit);
    let next = known.last().filter(|_| more).map(|last| page::cursor(KIND, last.uri.as_str()));
    Ok(Page { items: known.iter().map(Resource::new).collect(), next })
}

/// The story of a resource: what is held of it, which document brought it, and what happened to it.
#[utoipa::path(get, path = "/v1/sources/{source}/resources/story", tag = "resources",
    params(("source" = String, Path, description = "The Source's name"), UriParams),
    responses((status = 200, description = "All that is known of it", body = Story)))]
pub(crate) async fn story(
    State(gateway): State<Gateway>,
    Path(source): Path<String>,
    Asked(params): Asked<UriParams>,
) -> Result<Json<Story>, Refusal> {
    let (source, uri) = (ask::source(&source)?, ask::resource(&params.uri)?);
    let catalog = gateway.catalogs().get(&source).await?;
    let (record, pending) = (catalog.resource(&uri).await?, catalog.pending(&uri).await?);
    let problem = catalog.problem(&Subject::Resource(uri.to_string())).await?;
    let (mut changes, mut changes_left_out) = (VecDeque::new(), 0);
    let mut events = catalog.changes_of(&uri).await?;
    while let Some((_, event)) = events.try_next().await? {
        if changes.len() == TOLD {
            changes.pop_front();
            changes_left_out += 1;
        }
        changes.push_back(event);
    }
    if record.is_none() && pending.is_none() && problem.is_none() && changes.is_empty() {
        return Err(unknown(&uri));
    }
    let known = Known { uri, record, pending, problem };
    let resource = Resource::new(&known);
    let Known { record, pending, problem, .. } = known;
    Ok(Json(Story { resource, record, pending, problem, changes, changes_left_out }))
}

/// Nothing is known of a resource.
pub(crate) fn unknown(uri: &ResourceUri) -> Refusal {
    Refusal::not_found(format!(
        "nothing is known of {uri}: no document that was read has listed it. URIs are compared as the Source writes them"
    ))
}

impl Resource {
    fn new(known: &Known) -> Self {
        let record = known.record.as_ref();
        let bitstream = record.and_then(|record| record.bitstream.as_ref());
        Self {
            uri: known.uri.to_string(),
            state: known.standing().into(),
            length: bitstream.map(|bitstream| bitstream.computed.length()),
            sha256: bitstream.map(|bitstream| bitstream.computed.sha256().to_string()),
            media_type: bitstream.and_then(|bitstream| bitstream.media_type.clone()),
            change_time: record.and_then(|record| record.listing.change_time.or(record.declaration.lastmod)),
            stored_at: bitstream.map(|bitstream| bitstream.stored_at),
        }
    }
}
