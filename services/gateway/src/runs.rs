//! `/v1/runs`, `/v1/sources/{source}/runs`: requests for runs, and their progress.

pub(crate) mod backfill;
pub(crate) mod lookup;
pub(crate) mod moving;
pub(crate) mod transitions;

use std::cmp::Reverse;
use std::time::Duration;

use api::schema::STATES;
use api::{BackfillRequest, Page, Run, RunRequest};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{
    AskedBy, ControlError, Run as FleetRun, RunSpec, Selector, SourceSpec, Submission, SubmissionKey, Task,
};
use model::{RunId, RunMode, SourceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;

use crate::access::SourceFilter;
use crate::api_error::ApiError;
use crate::extract::{IdempotencyKey, JsonBody, Query, RunPath, SourcePath};
use crate::pagination;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Parameters of the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunParams {
    /// Only runs in this state.
    #[param(schema_with = api::schema::state)]
    state: Option<String>,
    /// Only runs of Sources whose labels match: `country=jp`, `country!=jp`, `country`, `!country`, joined by commas.
    #[serde(rename = "match")]
    #[param(value_type = Option<String>, example = "country=jp,!test")]
    selector: Option<Selector>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    cursor: Option<String>,
}

/// The API form of a run in its current state.
pub(crate) fn present(gateway: &Gateway, run: &FleetRun) -> Run {
    let source = &run.spec.source;
    let term = gateway.views.leases.get(source).map(|lease| lease.term());
    let name = gateway.views.sources.get(source).and_then(|source| source.name.clone());
    Run { name, ..Run::new(run, &run.status(term.as_ref())) }
}

/// The current or last run of each Source, in the order of the Source IDs.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(RunParams),
    responses((status = 200, description = "One page", body = Page<Run>)))]
pub(crate) async fn all(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(params): Query<RunParams>,
) -> Result<Json<Page<Run>>, ApiError> {
    if let Some(state) = params.state.as_deref().filter(|state| !STATES.contains(state)) {
        return Err(ApiError::bad_request(format!(
            "{state:?} is no state of a run; it is one of {}",
            STATES.join(", ")
        )));
    }
    let filter = SourceFilter::new(&caller, params.selector.as_ref());
    let runs =
        gateway.views.runs.all().into_iter().filter(|run| filter.admits_id(&gateway, &run.spec.source));
    let runs = runs.map(|run| present(&gateway, &run));
    let wanted = runs.filter(|run| params.state.as_deref().is_none_or(|state| state == run.state));
    pagination::paginate("runs", wanted, |run| run.source.as_str(), params.limit, params.cursor.as_deref())
        .map(Json)
}

/// The stored runs of a Source, backfills included: those that are not over, then the newest first.
#[utoipa::path(get, path = "/v1/sources/{source}/runs", tag = "runs", params(SourcePath),
    responses((status = 200, description = "All items", body = Page<Run>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
) -> Result<Json<Page<Run>>, ApiError> {
    let runs = gateway.control.runs();
    let last = runs.get(&source).await?;
    let mut past = runs.past(&source).await?;
    // A new run may have replaced it between the two reads.
    past.retain(|past| last.as_ref().is_none_or(|last| last.spec.id != past.spec.id));
    if last.is_none() {
        // The Source may not exist.
        gateway.control.sources().get(&source).await?;
    }
    let task = gateway.control.tasks().get(&source).await?;
    past.retain(|past| task.as_ref().is_none_or(|task| task.spec.id != past.spec.id));
    let mut all: Vec<&FleetRun> = last.iter().chain(&task).map(|run| &*run.value).chain(&past).collect();
    // A sync before a task: commands that name no run mean the sync.
    all.sort_by_key(|run| (run.state.is_over(), run.state.is_over().then_some(Reverse(run.spec.id))));
    Ok(Json(Page::all(all.into_iter().map(|run| present(&gateway, run)))))
}

/// Requests a run. With an `Idempotency-Key`, a repeated request gets the same response and starts no second run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs", tag = "runs",
    params(SourcePath, IdempotencyKey),
    request_body = RunRequest, responses(
    (status = 201, description = "The run is queued", body = Run, headers(("Location" = String, description = "The URL of the run"))),
    (status = 409, description = "The last run has not ended"),
))]
pub(crate) async fn submit(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    key: IdempotencyKey,
    JsonBody(request): JsonBody<RunRequest>,
) -> Result<Response, ApiError> {
    Ok(submit_once(&gateway, &caller, key.get(), &source, Requested::Run(&request))
        .await?
        .into_response(&source))
}

/// What an operator requests of a Source.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum Requested<'a> {
    /// A sync, or an audit.
    Run(&'a RunRequest),
    /// Earlier versions.
    Backfill(&'a BackfillRequest),
    /// A move to the entry URL of this spec.
    Move { to: &'a SourceSpec },
    /// Taking a move back to the Source of this spec.
    MoveBack { back_to: &'a SourceSpec },
}

/// A requested run, and the response that the request got.
pub(crate) struct SubmittedRun {
    run: RunId,
    text: String,
}

impl SubmittedRun {
    fn new(gateway: &Gateway, run: &FleetRun) -> Result<Self, ApiError> {
        Ok(Self { run: run.spec.id, text: serde_json::to_string(&present(gateway, run)).map_err(internal)? })
    }

    /// The run, as in the first response.
    ///
    /// # Errors
    /// When another version of the gateway wrote the response.
    pub(crate) fn read(&self) -> Result<Run, ApiError> {
        serde_json::from_str(&self.text).map_err(internal)
    }

    fn into_response(self, source: &SourceId) -> Response {
        let headers = [
            (header::LOCATION, format!("/v1/sources/{source}/runs/{}", self.run)),
            (header::CONTENT_TYPE, "application/json".to_owned()),
        ];
        (StatusCode::CREATED, headers, self.text).into_response()
    }
}

fn internal(error: serde_json::Error) -> ApiError {
    ApiError::internal(error.to_string())
}

/// Requests a run of a Source. With a key, a repeated request gets the same response.
///
/// # Errors
/// When there is no such Source, its last run of that kind is not over, the key was used for another request, or
/// repairs are asked of a run that is no audit.
pub(crate) async fn submit_once(
    gateway: &Gateway,
    caller: &Caller,
    key: Option<&str>,
    source: &SourceId,
    request: Requested<'_>,
) -> Result<SubmittedRun, ApiError> {
    if let Requested::Run(asked) = request
        && asked.repairs_nothing()
    {
        let said = "only an audit repairs what differs: ask for the mode audit, or leave repair out";
        return Err(ApiError::invalid(said).fields([("repair", said.to_owned())]));
    }
    let Some(key) = key else {
        return submit_run(gateway, caller, source, RunId::fresh(), request).await;
    };
    let key = SubmissionKey::new(caller.name(), key);
    // The Source is part of the request.
    let content = serde_json::to_vec(&(source, request)).map_err(internal)?;
    let content = data_encoding::HEXLOWER.encode(&Sha256::digest(content));
    let ttl = Duration::from_secs(gateway.settings.idempotency_ttl_seconds);
    let submissions = gateway.control.submissions();
    let begin = Submission { content: content.clone(), run: RunId::fresh(), answer: None };
    let begun = submissions.begin(&key, begin, ttl).await?;
    if begun.content != content {
        return Err(ApiError::invalid(
            "this Idempotency-Key was sent with another request: take a new one for each thing to be asked for",
        ));
    }
    if let Some(text) = begun.answer.clone() {
        return Ok(SubmittedRun { run: begun.run, text });
    }
    // This applies also where the first request got no response, because the run ID is the same.
    let submitted = submit_run(gateway, caller, source, begun.run, request).await?;
    submissions.answered(&key, &begun, submitted.text.clone(), ttl).await?;
    Ok(submitted)
}

async fn submit_run(
    gateway: &Gateway,
    caller: &Caller,
    source: &SourceId,
    id: RunId,
    request: Requested<'_>,
) -> Result<SubmittedRun, ApiError> {
    // Refuse here, because no scheduler would ever start a run of a missing Source.
    let found = gateway.control.sources().get(source).await?;
    let spec = RunSpec {
        id,
        source: source.clone(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Operator,
        asked_at: gateway.now(),
        allow_deletes: false,
        repair: false,
        task: None,
    };
    let run = match request {
        Requested::Run(&RunRequest { mode, allow_deletes, repair }) => {
            tracing::info!(source.id = %source, run.id = %id, allow_deletes, token = caller.name(), "run requested");
            gateway.control.runs().submit(RunSpec { mode, allow_deletes, repair, ..spec }).await?
        }
        Requested::Backfill(request) => {
            if let Some((versions, keep)) = request.versions.zip(found.keep_versions)
                && keep < versions.get()
            {
                return Err(ApiError::invalid(format!(
                    "the syncs of {source} keep {keep} earlier versions, and would drop the others of {versions}; set \
                     its keep_versions to {versions} or more first"
                )));
            }
            tracing::info!(source.id = %source, run.id = %id, token = caller.name(), "backfill requested");
            let task = Some(Task::Backfill(request.into()));
            gateway.control.tasks().submit(RunSpec { task, ..spec }).await?
        }
        Requested::Move { to } => {
            tracing::info!(source.id = %source, run.id = %id, to = %to.id, token = caller.name(), "move requested");
            let task = Some(Task::Move { to: Box::new(to.clone()) });
            gateway.control.tasks().submit(RunSpec { task, ..spec }).await?
        }
        Requested::MoveBack { back_to } => {
            tracing::info!(source.id = %source, run.id = %id, to = %back_to.id, token = caller.name(), "move back requested");
            let task = Some(Task::MoveBack { to: Box::new(back_to.clone()) });
            gateway.control.tasks().submit(RunSpec { task, ..spec }).await?
        }
    };
    SubmittedRun::new(gateway, &run)
}

/// A run.
#[utoipa::path(get, path = "/v1/sources/{source}/runs/{run}", tag = "runs", params(RunPath),
    responses((status = 200, description = "The run", body = Run)))]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    RunPath { source, run }: RunPath,
) -> Result<Json<Run>, ApiError> {
    if let Some((found, _)) = lookup::current(&gateway, &source, run).await? {
        return Ok(Json(present(&gateway, &found)));
    }
    Ok(Json(present(&gateway, &lookup::earlier(&gateway, &source, run).await?)))
}

pub(crate) fn no_run(source: &SourceId, run: RunId) -> ApiError {
    ControlError::Absent { what: format!("run {run} of {source}") }.into()
}
