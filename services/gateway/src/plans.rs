//! `/v1/sources/plan`, `/v1/plans/{plan}`: the estimate of each strategy that brings a Source in sync. A scheduler
//! makes the plan; the gateway sends no request to a Source.

use std::time::Duration;

use api::{Plan, Spec};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{ControlError, Plan as FleetPlan, Plans, SourceSpec, Versioned};
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use crate::access;
use crate::api_error::ApiError;
use crate::extract::{JsonBody, Query};
use crate::state::Gateway;
use crate::tokens::Caller;

/// The longest time that a request may wait for a plan.
const LONGEST_WAIT: u8 = 20;
/// The most plans that are queued or in progress, and the most that are stored.
const MOST_PENDING: usize = 16;
const MOST_KEPT: usize = 256;
/// `Retry-After` in seconds, when too many plans are queued or stored.
const RETRY_SECONDS: u64 = 5;

/// Parameters of a plan.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanParams {
    /// How long to wait for the result, in seconds, 0 to 20.
    #[serde(default)]
    #[param(minimum = 0, maximum = 20, default = 0)]
    wait_seconds: u8,
}

/// Requests an estimate of each strategy that brings a Source in sync. The Source need not exist. A scheduler reads its
/// documents, but harvests nothing and writes nothing about it.
#[utoipa::path(post, path = "/v1/sources/plan", tag = "sources", request_body = Spec, responses(
    (status = 200, description = "The plan is done or failed", body = Plan),
    (status = 202, description = "The plan is in progress", body = Plan, headers(("Location" = String, description = "The URL of the plan"))),
))]
pub(crate) async fn ask(
    State(gateway): State<Gateway>,
    caller: Caller,
    JsonBody(spec): JsonBody<Spec>,
) -> Result<Response, ApiError> {
    let plan = begin(&gateway, &caller, spec).await?;
    let wait = Duration::from_secs(gateway.settings.plan_wait_seconds);
    let plan = until_over(&gateway, plan, wait).await;
    Ok(answer(&plan))
}

/// Queues a plan for the schedulers.
pub(crate) async fn begin(
    gateway: &Gateway,
    caller: &Caller,
    spec: Spec,
) -> Result<Versioned<FleetPlan>, ApiError> {
    let spec = SourceSpec::from(spec);
    if let Some(refusal) = refusal(gateway, caller, &spec).await? {
        return Err(refusal);
    }
    let kept = gateway.views.plans.all();
    if kept.len() >= MOST_KEPT || kept.iter().filter(|plan| !plan.is_over()).count() >= MOST_PENDING {
        let said =
            format!("more plans were asked for than are made at a time; come again in {RETRY_SECONDS} s");
        return Err(ApiError::too_many(said).after_seconds(RETRY_SECONDS));
    }
    let plan = gateway.control.plans().ask(spec, gateway.now()).await?;
    tracing::info!(plan.id = %plan.id, token = caller.name(), "a plan is asked for");
    Ok(plan)
}

/// Why the caller may not see what a plan tells, which includes how much is stored of the Source. It must see the
/// Source, or, if there is none, the one that it would add.
async fn refusal(
    gateway: &Gateway,
    caller: &Caller,
    spec: &SourceSpec,
) -> Result<Option<ApiError>, ApiError> {
    if caller.sees_all() {
        return Ok(None);
    }
    match gateway.control.sources().get(&spec.id).await {
        Ok(found) => Ok(access::check_existing(caller, &found).err()),
        Err(ControlError::Absent { .. }) => Ok(access::check_written(caller, spec).err()),
        Err(error) => Err(error.into()),
    }
}

/// A requested plan.
#[utoipa::path(get, path = "/v1/plans/{plan}", tag = "sources",
    params(("plan" = String, Path, description = "The plan ID"), PlanParams), responses(
    (status = 200, description = "The plan is done or failed", body = Plan),
    (status = 202, description = "The plan is in progress", body = Plan, headers(("Location" = String, description = "The URL of the plan"))),
))]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(plan): Path<String>,
    Query(params): Query<PlanParams>,
) -> Result<Response, ApiError> {
    if params.wait_seconds > LONGEST_WAIT {
        return Err(ApiError::bad_request(format!("wait_seconds is 0 to {LONGEST_WAIT}")));
    }
    let plan = find(&gateway, &caller, &plan).await?;
    let plan = until_over(&gateway, plan, Duration::from_secs(params.wait_seconds.into())).await;
    Ok(answer(&plan))
}

/// The plan with this ID, if the caller may see what it tells.
pub(crate) async fn find(
    gateway: &Gateway,
    caller: &Caller,
    name: &str,
) -> Result<Versioned<FleetPlan>, ApiError> {
    let id = name.parse().map_err(|error| ApiError::not_found(format!("there is no such plan: {error}")))?;
    let plan = gateway.control.plans().get(id).await?;
    match refusal(gateway, caller, &plan.source).await? {
        None => Ok(plan),
        // As if there were none.
        Some(_) => Err(Plans::absent(id).into()),
    }
}

/// Waits until the plan is over, up to this time, and returns it.
pub(crate) async fn until_over(
    gateway: &Gateway,
    plan: Versioned<FleetPlan>,
    wait: Duration,
) -> Versioned<FleetPlan> {
    if plan.is_over() {
        return plan;
    }
    let id = plan.id;
    let mut plans = gateway.views.plans.clone();
    let over = plans.wait_for(|plans| plans.get(&id).filter(|plan| plan.is_over()));
    let over = async {
        tokio::select! {
            over = timeout(wait, over) => over.ok(),
            () = gateway.stop.cancelled() => None,
        }
    };
    over.await.unwrap_or(plan)
}

fn answer(plan: &FleetPlan) -> Response {
    if plan.is_over() {
        return Json(Plan::from(plan)).into_response();
    }
    let mut response = (StatusCode::ACCEPTED, Json(Plan::from(plan))).into_response();
    if let Ok(place) = HeaderValue::try_from(format!("/v1/plans/{}", plan.id)) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}
