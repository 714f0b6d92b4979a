//! `/v1/sources/{source}/resources`: the stored, pending and failed resources of a Source.

use std::collections::{BTreeMap, VecDeque};

use api::{Page, Resource, ResourceHistory};
use axum::Json;
use axum::extract::State;
use catalog::{CatalogReader, ResourceSummary};
use futures::{StreamExt, TryStreamExt};
use model::{ChangeLogEntry, ResourceState, ResourceUri, Subject};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::extract::{self, Query, SourcePath};
use crate::pagination;
use crate::state::Gateway;

/// The kind of cursors.
const KIND: &str = "resources";
/// The most change log entries in a history.
const MOST_EVENTS: usize = 1000;

/// Parameters of the list of resources.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Only resources whose URI begins with this.
    pub(crate) prefix: Option<String>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    pub(crate) cursor: Option<String>,
}

impl ListParams {
    /// The most items of a page, and the URI behind which it begins.
    pub(crate) fn position(&self, kind: &str) -> Result<(usize, Option<ResourceUri>), ApiError> {
        let limit = pagination::limit(self.limit)?;
        let behind = pagination::decode_cursor(kind, self.cursor.as_deref())?;
        Ok((limit, behind.map(|uri| extract::resource_uri(&uri)).transpose()?))
    }
}

/// Selects a resource.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UriParams {
    /// The URI, exactly as the Source writes it.
    #[param(max_length = 8192)]
    pub(crate) uri: String,
}

/// Resources, in the byte order of their URIs.
#[utoipa::path(get, path = "/v1/sources/{source}/resources", tag = "resources",
    params(SourcePath, ListParams),
    responses((status = 200, description = "One page", body = Page<Resource>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<ListParams>,
) -> Result<Json<Page<Resource>>, ApiError> {
    let (limit, behind) = params.position(KIND)?;
    let catalog = gateway.catalogs.get(&source).await?;
    let prefix = params.prefix.unwrap_or_default();
    Ok(Json(page_of(&catalog, &prefix, behind.as_ref(), limit).await?))
}

/// A page of stored, pending and failed resources, in one order.
async fn page_of(
    catalog: &CatalogReader,
    prefix: &str,
    behind: Option<&ResourceUri>,
    limit: usize,
) -> Result<Page<Resource>, ApiError> {
    let mut known: Vec<ResourceSummary> =
        catalog.scan_known(Some(prefix), behind).await?.take(limit + 1).try_collect().await?;
    let more = known.len() > limit;
    known.truncate(limit);
    let next = known.last().filter(|_| more).map(|last| pagination::cursor(KIND, last.uri.as_str()));
    let resource = |known: &ResourceSummary| Resource::new(&known.uri, known.state(), known.record.as_ref());
    Ok(Page { items: known.iter().map(resource).collect(), next })
}

/// The history of a resource: the stored record, the document that declared it, and its events.
#[utoipa::path(get, path = "/v1/sources/{source}/resources/history", tag = "resources",
    params(SourcePath, UriParams),
    responses((status = 200, description = "The history", body = ResourceHistory)))]
pub(crate) async fn history(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<UriParams>,
) -> Result<Json<ResourceHistory>, ApiError> {
    let uri = extract::resource_uri(&params.uri)?;
    let catalog = gateway.catalogs.get(&source).await?;
    let mut history = lookup(&catalog, &uri).await?;
    (history.events, history.events_omitted) = events(&catalog, &uri).await?;
    if history.is_empty() {
        return Err(unknown(&uri));
    }
    Ok(Json(history))
}

/// All that is known of a resource except its events. This takes a few lookups, however large the catalog is.
pub(crate) async fn lookup(catalog: &CatalogReader, uri: &ResourceUri) -> Result<ResourceHistory, ApiError> {
    let record = catalog.resource(uri).await?;
    let pending = catalog.pending(uri).await?;
    let problem = catalog.problem(&Subject::Resource(uri.to_string())).await?;
    let versions = catalog.versions(uri).await?.map(|versions| versions.kept).unwrap_or_default();
    let mut document_problems = BTreeMap::new();
    for document in ResourceHistory::documents(record.as_ref(), pending.as_ref(), problem.as_ref()) {
        if let Some(problem) = catalog.problem(&Subject::Document(document.clone())).await? {
            document_problems.insert(document, problem);
        }
    }
    let state = ResourceState::of(record.as_ref(), pending.as_ref(), problem.as_ref());
    let resource = Resource::new(uri, state, record.as_ref());
    Ok(ResourceHistory {
        resource,
        record,
        pending,
        problem,
        versions,
        document_problems,
        events: VecDeque::new(),
        events_omitted: 0,
    })
}

/// The last events of a resource, oldest first, and the number of earlier ones. This reads the whole change log.
pub(crate) async fn events(
    catalog: &CatalogReader,
    uri: &ResourceUri,
) -> Result<(VecDeque<ChangeLogEntry>, u64), ApiError> {
    let mut changes = VecDeque::new();
    let mut left_out = 0;
    let mut events = catalog.changes_of(uri).await?;
    while let Some((_, event)) = events.try_next().await? {
        if changes.len() == MOST_EVENTS {
            changes.pop_front();
            left_out += 1;
        }
        changes.push_back(event);
    }
    Ok((changes, left_out))
}

/// The refusal for a resource of which nothing is known.
pub(crate) fn unknown(uri: &ResourceUri) -> ApiError {
    ApiError::not_found(format!(
        "nothing is known of {uri}: no document that was read has listed it. URIs are compared as the Source writes them"
    ))
}
