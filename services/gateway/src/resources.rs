//! `/v1/sources/{source}/resources`: the stored, pending and failed resources of a Source.

use std::collections::{BTreeMap, VecDeque};

use api::{LinkEnd, Page, Resource, ResourceHistory};
use axum::Json;
use axum::extract::State;
use catalog::CatalogReader;
use futures::TryStreamExt;
use model::{ChangeLogEntry, ResourceState, ResourceUri, Subject};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::extract::{self, Query, SourcePath};
use crate::link_filter::LinkFilter;
use crate::pagination;
use crate::state::Gateway;

/// The kind of cursors.
const KIND: &str = "resources";
/// The most resources that are read for a page: few may have the wanted link.
const MOST_READ: usize = 50_000;
/// The most change log entries in a history.
const MOST_EVENTS: usize = 1000;

/// Parameters of a list of resources or works.
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

/// Parameters of the list of resources, which may be those with a link.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ResourceParams {
    /// Only resources whose URI begins with this.
    pub(crate) prefix: Option<String>,
    /// Only resources with a link of this relation, such as `collection`.
    #[serde(rename = "link.rel")]
    #[param(max_length = 2048)]
    pub(crate) link_rel: Option<String>,
    /// Only resources with a link to this target, exactly as the Source writes it; with `link.rel`, of this relation.
    #[serde(rename = "link.href")]
    #[param(max_length = 2048)]
    pub(crate) link_href: Option<String>,
    /// The most items, 1 to 1000. A page of resources with a link may have fewer, or none, and a next page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    pub(crate) cursor: Option<String>,
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
    params(SourcePath, ResourceParams),
    responses((status = 200, description = "One page", body = Page<Resource>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<ResourceParams>,
) -> Result<Json<Page<Resource>>, ApiError> {
    let ResourceParams { prefix, link_rel, link_href, limit, cursor } = params;
    let (limit, behind) = ListParams { prefix: None, limit, cursor }.position(KIND)?;
    let filter = LinkFilter::of(link_rel, link_href)?;
    let catalog = gateway.catalogs.get(&source).await?;
    let prefix = prefix.unwrap_or_default();
    Ok(Json(page_of(&catalog, &prefix, behind.as_ref(), &filter, limit).await?))
}

/// A page of stored, pending and failed resources, in one order.
async fn page_of(
    catalog: &CatalogReader,
    prefix: &str,
    behind: Option<&ResourceUri>,
    filter: &LinkFilter,
    limit: usize,
) -> Result<Page<Resource>, ApiError> {
    let mut scan = catalog.scan_known(Some(prefix), behind).await?;
    let mut items = Vec::new();
    let mut last: Option<ResourceUri> = None;
    let mut read = 0;
    while let Some(known) = scan.try_next().await? {
        // The resource before this one ends the page, whether it is in it or not.
        if items.len() == limit || read == MOST_READ {
            let next = last.map(|last| pagination::cursor(KIND, last.as_str()));
            return Ok(Page { items, next });
        }
        if filter.admits(known.record.as_ref()) {
            items.push(Resource::new(&known.uri, known.state(), known.record.as_ref()));
        }
        read += 1;
        last = Some(known.uri);
    }
    Ok(Page { items, next: None })
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
    let link_ends = match &record {
        Some(record) => report::link_ends(catalog, record).await?.into_iter().map(link_end).collect(),
        None => Vec::new(),
    };
    let state = ResourceState::of(record.as_ref(), pending.as_ref(), problem.as_ref());
    let resource = Resource::new(uri, state, record.as_ref());
    Ok(ResourceHistory {
        resource,
        record,
        pending,
        problem,
        versions,
        document_problems,
        link_ends,
        events: VecDeque::new(),
        events_omitted: 0,
    })
}

fn link_end(end: report::LinkEnd) -> LinkEnd {
    let report::LinkEnd { rel, href, state, not_followed } = end;
    LinkEnd { rel, href, state: state.map(Into::into), not_followed }
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
