//! `/v1/runs`, `/v1/sources/{source}/runs`: requests for runs, and their progress.

pub(crate) mod steer;

use std::time::Duration;

use api::schema::STATES;
use api::{Page, Run, RunRequest};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use control::{AskedBy, ControlError, Run as FleetRun, RunSpec, Submission, SubmissionKey, Versioned};
use model::{RunId, SourceId};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;

use crate::ask::{self, Asked, Sent};
use crate::page;
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;

/// The longest `Idempotency-Key`, in bytes.
const LONGEST_KEY: usize = 255;

/// Parameters of the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunParams {
    /// Only runs in this state.
    #[param(schema_with = api::schema::state)]
    state: Option<String>,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    cursor: Option<String>,
}

/// The API form of a run in its current state.
pub(crate) fn present(gateway: &Gateway, run: &FleetRun) -> Run {
    let tenure = gateway.views().leases.get(&run.spec.source).map(|lease| lease.tenure());
    Run::new(run, &run.standing(tenure.as_ref()))
}

/// The current or last run of each Source, in the order of the Source IDs.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(RunParams),
    responses((status = 200, description = "One page", body = Page<Run>)))]
pub(crate) async fn all(
    State(gateway): State<Gateway>,
    Asked(params): Asked<RunParams>,
) -> Result<Json<Page<Run>>, Refusal> {
    if let Some(state) = params.state.as_deref().filter(|state| !STATES.contains(state)) {
        return Err(Refusal::bad_request(format!(
            "{state:?} is no state of a run; it is one of {}",
            STATES.join(", ")
        )));
    }
    let runs = gateway.views().runs.all().into_iter().map(|run| present(&gateway, &run));
    let wanted = runs.filter(|run| params.state.as_deref().is_none_or(|state| state == run.state));
    page::of_all("runs", wanted, |run| run.source.as_str(), params.limit, params.cursor.as_deref()).map(Json)
}

/// The stored runs of a Source, the newest first.
#[utoipa::path(get, path = "/v1/sources/{source}/runs", tag = "runs",
    params(("source" = String, Path, description = "The Source ID")),
    responses((status = 200, description = "All items", body = Page<Run>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Path(source): Path<String>,
) -> Result<Json<Page<Run>>, Refusal> {
    let id = ask::source(&source)?;
    let runs = gateway.control().runs();
    let (last, mut past) = (runs.get(&id).await?, runs.past(&id).await?);
    // A new run may have replaced it between the two reads.
    past.retain(|past| last.as_ref().is_none_or(|last| last.spec.id != past.spec.id));
    if last.is_none() {
        // The Source may not exist.
        gateway.control().sources().get(&id).await?;
    }
    let items = last.iter().map(|run| &**run).chain(&past).map(|run| present(&gateway, run)).collect();
    Ok(Json(Page { items, next: None }))
}

/// Requests a run. With an `Idempotency-Key`, a repeated request gets the same response and starts no second run.
#[utoipa::path(post, path = "/v1/sources/{source}/runs", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"),
        ("Idempotency-Key" = Option<String>, Header, description = "A unique key of 1 to 255 visible characters")),
    request_body = RunRequest, responses(
    (status = 201, description = "The run is queued", body = Run, headers(("Location" = String, description = "The URL of the run"))),
    (status = 409, description = "The last run has not ended"),
))]
pub(crate) async fn submit(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    headers: HeaderMap,
    Sent(asked): Sent<RunRequest>,
) -> Result<Response, Refusal> {
    let source = ask::source(&source)?;
    let key = headers.get("idempotency-key").map(key_text).transpose()?;
    let Answered { run, text } = once(&gateway, &caller, key, &source, &asked).await?;
    created(&source, run, text)
}

/// A requested run, and the response that the request got.
pub(crate) struct Answered {
    run: RunId,
    text: String,
}

impl Answered {
    /// The run, as in the first response.
    ///
    /// # Errors
    /// When another version of the gateway wrote the response.
    pub(crate) fn read(&self) -> Result<Run, Refusal> {
        serde_json::from_str(&self.text).map_err(|error| Refusal::internal(error.to_string()))
    }
}

/// Requests a run of a Source. With a key, a repeated request gets the same response.
///
/// # Errors
/// When there is no such Source, its last run is not over, or the key was used for another request.
pub(crate) async fn once(
    gateway: &Gateway,
    caller: &Caller,
    key: Option<&str>,
    source: &SourceId,
    asked: &RunRequest,
) -> Result<Answered, Refusal> {
    let Some(key) = key else {
        let run = ask_for(gateway, source, RunId::fresh(), asked).await?;
        tracing::info!(source.id = %source, run.id = %run.spec.id, token = caller.name(), "a run is asked for");
        return Ok(Answered { run: run.spec.id, text: answer_of(gateway, &run)? });
    };
    let key = SubmissionKey::new(caller.name(), key);
    // The Source is part of the request.
    let content =
        serde_json::to_vec(&(source, asked)).map_err(|error| Refusal::internal(error.to_string()))?;
    let content = data_encoding::HEXLOWER.encode(&Sha256::digest(content));
    let lasts = Duration::from_secs(gateway.settings().idempotency_ttl_seconds);
    let submissions = gateway.control().submissions();
    let begin = Submission { content: content.clone(), run: RunId::fresh(), answer: None };
    let begun = submissions.begin(&key, begin, lasts).await?;
    if begun.content != content {
        return Err(Refusal::invalid(
            "this Idempotency-Key was sent with another request: take a new one for each thing to be asked for",
        ));
    }
    if let Some(answer) = &begun.answer {
        return Ok(Answered { run: begun.run, text: answer.clone() });
    }
    // This applies also where the first request got no response, because the run ID is the same.
    let run = ask_for(gateway, source, begun.run, asked).await?;
    tracing::info!(source.id = %source, run.id = %run.spec.id, token = caller.name(), "a run is asked for");
    let text = answer_of(gateway, &run)?;
    submissions.answered(&key, &begun, text.clone(), lasts).await?;
    Ok(Answered { run: run.spec.id, text })
}

/// The value of an `Idempotency-Key`.
///
/// # Errors
/// [`Refusal::bad_request`].
pub(crate) fn key_text(key: &HeaderValue) -> Result<&str, Refusal> {
    let text = key.to_str().ok().filter(|text| (1..=LONGEST_KEY).contains(&text.len()));
    text.ok_or_else(|| {
        Refusal::bad_request(format!("Idempotency-Key is 1 to {LONGEST_KEY} visible characters"))
    })
}

async fn ask_for(
    gateway: &Gateway,
    source: &SourceId,
    id: RunId,
    asked: &RunRequest,
) -> Result<Versioned<FleetRun>, Refusal> {
    // Refuse here, because no scheduler would ever start a run of a missing Source.
    gateway.control().sources().get(source).await?;
    let spec = RunSpec {
        id,
        source: source.clone(),
        mode: asked.mode,
        asked_by: AskedBy::Operator,
        asked_at: gateway.now(),
        allow_deletes: asked.allow_deletes,
        repair: asked.repair,
    };
    Ok(gateway.control().runs().submit(spec).await?)
}

fn answer_of(gateway: &Gateway, run: &FleetRun) -> Result<String, Refusal> {
    serde_json::to_string(&present(gateway, run)).map_err(|error| Refusal::internal(error.to_string()))
}

fn created(source: &SourceId, run: RunId, answer: String) -> Result<Response, Refusal> {
    let headers = [
        (header::LOCATION, format!("/v1/sources/{source}/runs/{run}")),
        (header::CONTENT_TYPE, "application/json".to_owned()),
    ];
    Ok((StatusCode::CREATED, headers, answer).into_response())
}

/// A run.
#[utoipa::path(get, path = "/v1/sources/{source}/runs/{run}", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"), ("run" = String, Path, description = "The run ID")),
    responses((status = 200, description = "The run", body = Run)))]
pub(crate) async fn read(
    State(gateway): State<Gateway>,
    Path((source, run)): Path<(String, String)>,
) -> Result<Json<Run>, Refusal> {
    let (source, id) = (ask::source(&source)?, run_id(&run)?);
    let runs = gateway.control().runs();
    if let Some(last) = runs.get(&source).await?.filter(|last| last.spec.id == id) {
        return Ok(Json(present(&gateway, &last)));
    }
    let past = runs.past(&source).await?;
    let found = past.iter().find(|past| past.spec.id == id).ok_or_else(|| no_run(&source, id))?;
    Ok(Json(present(&gateway, found)))
}

/// The run that a path names. A path with an invalid run ID names no run.
pub(crate) fn run_id(name: &str) -> Result<RunId, Refusal> {
    name.parse().map_err(|error| Refusal::not_found(format!("there is no such run: {error}")))
}

pub(crate) fn no_run(source: &SourceId, run: RunId) -> Refusal {
    ControlError::Absent { what: format!("run {run} of {source}") }.into()
}
