//! `/v1/sources/{source}/works`: what links say belongs together.

use std::pin::pin;

use ::report::works::{self, Work, WorksError};
use api::Page;
use axum::Json;
use axum::extract::State;
use futures::TryStreamExt;

use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::pagination;
use crate::resources::ListParams;
use crate::state::Gateway;

/// The kind of cursors.
const KIND: &str = "works";
/// The most resources and landing pages of a Source whose works are told: each page reads the links of all of them.
const MOST_RESOURCES: u64 = 250_000;

/// Works, in the byte order of their heads' URIs: a head, such as a landing page, with its metadata and files. Only of
/// Sources with at most 250,000 resources and landing pages.
#[utoipa::path(get, path = "/v1/sources/{source}/works", tag = "resources",
    params(SourcePath, ListParams),
    responses((status = 200, description = "One page", body = Page<serde_json::Value>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<ListParams>,
) -> Result<Json<Page<Work>>, ApiError> {
    let (limit, behind) = params.position(KIND)?;
    let catalog = gateway.catalogs.get(&source).await?;
    let prefix = params.prefix.unwrap_or_default();
    let works = works::scan(&catalog, &prefix, behind.as_ref(), Some(MOST_RESOURCES)).await;
    let mut works = pin!(works.map_err(refused)?);
    let mut items = Vec::new();
    let mut more = false;
    while let Some(work) = works.try_next().await.map_err(refused)? {
        if items.len() == limit {
            more = true;
            break;
        }
        items.push(work);
    }
    let next = items.last().filter(|_| more).map(|last: &Work| pagination::cursor(KIND, &last.uri));
    Ok(Json(Page { items, next }))
}

fn refused(error: WorksError) -> ApiError {
    match error {
        WorksError::Catalog(error) => error.into(),
        WorksError::TooMany(most) => ApiError::bad_request(format!(
            "the Source has more than {most} resources and landing pages, and each page would read them all; run \
             `thresher ls --group --into …` beside its store"
        )),
        error @ WorksError::Spool(_) => ApiError::internal(error.to_string()),
    }
}
