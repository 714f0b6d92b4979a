//! `/v1/sources/{source}/subscriptions`: subscriptions to the channels of a Source, and their state.

use api::{Page, Subscription};
use axum::Json;
use axum::extract::State;

use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::sources::PageParams;
use crate::state::Gateway;

/// The subscriptions to the channels of a Source.
#[utoipa::path(get, path = "/v1/sources/{source}/subscriptions", tag = "sources",
    params(SourcePath, PageParams),
    responses((status = 200, description = "One page", body = Page<Subscription>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<PageParams>,
) -> Result<Json<Page<Subscription>>, ApiError> {
    gateway.control.sources().get(&source).await?;
    let mut all = gateway.views.subscriptions.all();
    all.retain(|subscription| subscription.source == source);
    let page = params.paginate("subscriptions", all, |subscription| subscription.id.as_str())?;
    let now = gateway.now();
    Ok(Json(page.map(|subscription| Subscription::new(&subscription, now))))
}
