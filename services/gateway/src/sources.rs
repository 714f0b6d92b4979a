//! `/v1/sources`: the Sources of the fleet.

use api::{Page, Source, Spec};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{ControlError, Selector, SourceSpec, Versioned};
use model::SourceId;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::{self, SourceFilter};
use crate::api_error::ApiError;
use crate::extract::{JsonBody, Query, SourcePath};
use crate::inbox_urls;
use crate::pagination::paginate;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Parameters of lists.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    pub(crate) cursor: Option<String>,
}

impl PageParams {
    /// The requested page of an in-memory list: see [`paginate`].
    pub(crate) fn paginate<T>(
        &self,
        kind: &str,
        items: impl IntoIterator<Item = T>,
        name: impl Fn(&T) -> &str,
    ) -> Result<Page<T>, ApiError> {
        paginate(kind, items, name, self.limit, self.cursor.as_deref())
    }
}

/// Parameters of the list of Sources.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SourceParams {
    /// Only Sources whose labels match: `country=jp`, `country!=jp`, `country`, `!country`, joined by commas.
    #[serde(rename = "match")]
    #[param(value_type = Option<String>, example = "country=jp,!test")]
    selector: Option<Selector>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    cursor: Option<String>,
}

/// Parameters of requests that support a dry run.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DryRunParams {
    /// Whether to write nothing and only show the result.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

fn answer(source: &Source, status: StatusCode) -> Response {
    let mut response = (status, Json(source)).into_response();
    if let Some(Ok(value)) = source.revision.map(|revision| etag(revision).parse()) {
        response.headers_mut().insert(header::ETAG, value);
    }
    if status == StatusCode::CREATED
        && let Ok(value) = format!("/v1/sources/{}", source.id).parse()
    {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

fn etag(revision: u64) -> String {
    format!("\"{revision}\"")
}

/// Sources, in the order of their IDs.
#[utoipa::path(get, path = "/v1/sources", tag = "sources", params(SourceParams),
    responses((status = 200, description = "One page", body = Page<Source>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(params): Query<SourceParams>,
) -> Result<Json<Page<Source>>, ApiError> {
    let filter = SourceFilter::new(&caller, params.selector.as_ref());
    let sources = gateway.views.sources.all().into_iter().filter(|source| filter.admits(source));
    let page =
        paginate("sources", sources, |source| source.id.as_str(), params.limit, params.cursor.as_deref())?;
    let now = gateway.now();
    Ok(Json(page.map(|source| {
        let last = gateway.views.runs.get(&source.id);
        Source::new(&source, Some(source.revision), now).proposed_by(last.as_deref())
    })))
}

/// Adds a Source.
#[utoipa::path(post, path = "/v1/sources", tag = "sources", params(DryRunParams), request_body = Spec, responses(
    (status = 201, description = "The Source was added", body = Source,
        headers(("Location" = String, description = "The URL of the Source"), ("ETag" = String, description = "The revision"))),
    (status = 200, description = "The Source is valid (`dry_run`)", body = Source),
    (status = 409, description = "The Source exists already, or another one has its name"),
))]
pub(crate) async fn create(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(params): Query<DryRunParams>,
    JsonBody(sent): JsonBody<Spec>,
) -> Result<Response, ApiError> {
    let spec = SourceSpec::from(sent);
    spec.check().map_err(ControlError::from)?;
    access::check_written(&caller, &spec)?;
    if params.dry_run {
        gateway.control.sources().check_name(&spec).await?;
        return match gateway.control.sources().get(&spec.id).await {
            Ok(_) => Err(ControlError::Exists { what: format!("source {}", spec.id) }.into()),
            Err(ControlError::Absent { .. }) => {
                Ok(answer(&Source::new(&spec, None, gateway.now()), StatusCode::OK))
            }
            Err(error) => Err(error.into()),
        };
    }
    let revision = gateway.control.sources().create(&spec).await?;
    tracing::info!(source.id = %spec.id, token = caller.name(), "a Source is added");
    Ok(answer(&Source::new(&spec, Some(revision), gateway.now()), StatusCode::CREATED))
}

/// A Source.
#[utoipa::path(get, path = "/v1/sources/{source}", tag = "sources", params(SourcePath),
    responses((status = 200, description = "The Source", body = Source, headers(("ETag" = String, description = "The revision")))))]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = access::visible(&gateway, &caller, &source).await?;
    let last = gateway.views.runs.get(&found.id);
    let shown = Source::new(&found, Some(found.revision), gateway.now()).proposed_by(last.as_deref());
    let mut response = answer(&shown, StatusCode::OK);
    response.headers_mut().extend(inbox_urls::advertised(&gateway.settings, &headers, &found.id));
    Ok(response)
}

/// Replaces the whole spec of a Source. `If-Match` names the revision that the client read.
#[utoipa::path(put, path = "/v1/sources/{source}", tag = "sources",
    params(SourcePath, DryRunParams,
        ("If-Match" = Option<String>, Header, description = "`ETag` of the last `GET`, or `*`")),
    request_body = Spec, responses(
    (status = 200, description = "The Source was changed, or is valid (`dry_run`)", body = Source,
        headers(("ETag" = String, description = "The revision"))),
    (status = 409, description = "Another Source has the name"),
    (status = 412, description = "Another client changed the Source"),
    (status = 428, description = "`If-Match` is missing"),
))]
pub(crate) async fn change(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    Query(params): Query<DryRunParams>,
    headers: HeaderMap,
    JsonBody(sent): JsonBody<Spec>,
) -> Result<Response, ApiError> {
    let found = access::visible(&gateway, &caller, &source).await?;
    if !check_if_match(&headers, &found)? {
        return Err(ApiError::unconditional(
            "If-Match is required. Send the ETag of your last GET, or * to overwrite",
        ));
    }
    let spec = SourceSpec { id: source, spec: sent };
    spec.check().map_err(ControlError::from)?;
    access::check_written(&caller, &spec)?;
    if params.dry_run {
        gateway.control.sources().check_name(&spec).await?;
        return Ok(answer(&Source::new(&spec, None, gateway.now()), StatusCode::OK));
    }
    let revision = gateway.control.sources().update(&spec, found.revision).await.map_err(as_precondition)?;
    tracing::info!(source.id = %spec.id, token = caller.name(), "a Source is changed");
    Ok(answer(&Source::new(&spec, Some(revision), gateway.now()), StatusCode::OK))
}

/// Removes a Source from the fleet, and its runs. Its stored resources stay.
#[utoipa::path(delete, path = "/v1/sources/{source}", tag = "sources",
    params(SourcePath,
        ("If-Match" = Option<String>, Header, description = "`ETag` of the last `GET`")),
    responses(
    (status = 204, description = "The Source was removed"),
    (status = 409, description = "The last run has not ended"),
    (status = 412, description = "Another client changed the Source"),
))]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let found = access::visible(&gateway, &caller, &source).await?;
    check_if_match(&headers, &found)?;
    check_no_active_run(&gateway, &source).await?;
    gateway.control.sources().delete(&source, found.revision).await.map_err(as_precondition)?;
    tracing::info!(source.id = %source, token = caller.name(), "a Source is deleted");
    // What stays of them is replaced if the Source is added again: that is no reason to fail now.
    for runs in [gateway.control.runs(), gateway.control.tasks()] {
        if let Err(error) = runs.forget(&source).await {
            tracing::warn!(source.id = %source, %error, "the runs of a deleted Source stay");
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Whether the request is conditional on this revision.
///
/// # Errors
/// When it names another revision.
fn check_if_match(headers: &HeaderMap, found: &Versioned<SourceSpec>) -> Result<bool, ApiError> {
    match serving::etag_matches(headers, header::IF_MATCH, &etag(found.revision.get())) {
        Some(false) => Err(as_precondition(ControlError::Conflict { what: format!("source {}", found.id) })),
        said => Ok(said.is_some()),
    }
}

async fn check_no_active_run(gateway: &Gateway, id: &SourceId) -> Result<(), ApiError> {
    for runs in [gateway.control.runs(), gateway.control.tasks()] {
        if let Some(run) = runs.get(id).await?.filter(|run| !run.state.is_over()) {
            return Err(ApiError::conflict(format!(
                "the run {} of {id} is {}: cancel it first, and wait until it is over",
                run.spec.id,
                run.state.name()
            )));
        }
    }
    Ok(())
}

/// The refusal for a change that another client made first.
pub(crate) fn as_precondition(error: ControlError) -> ApiError {
    match error {
        ControlError::Conflict { .. } => ApiError::precondition_failed(error.to_string()),
        error => error.into(),
    }
}
