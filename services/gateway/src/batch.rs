//! `/v1/sources:batch`, `/v1/runs:batch`: many items in one request, with one result for each.
//!
//! A repeated request changes nothing. A Source that already matches its spec stays unchanged, and the same
//! `Idempotency-Key` requests a run only once.

use api::{Page, Run, RunBatch, RunRequest, RunResult, SourceBatch, SourceDone, SourceInBatch, SourceResult};
use axum::Json;
use axum::extract::State;
use control::{ControlError, SourceSpec, Spec};
use futures::{Stream, StreamExt as _, stream};

use crate::access;
use crate::api_error::ApiError;
use crate::extract::{BatchBody, IdempotencyKey, Query};
use crate::runs::{self, Requested};
use crate::sources::{DryRunParams, as_precondition};
use crate::state::Gateway;
use crate::tokens::Caller;

/// How many batches the gateway processes at a time. Each takes memory.
pub(crate) const AT_A_TIME: usize = 2;
/// The most copies of a batch in memory: as received, as parsed, and as what is written of it. A multiple of its bytes.
const COPIES: usize = 6;
/// How many items of a batch are processed at a time.
const ITEMS_AT_A_TIME: usize = 32;

/// Attempts to change a Source that other clients change at the same time.
const TRIES: usize = 3;

/// The most memory for batches of at most `batch_bytes`.
pub(crate) fn memory_bytes(batch_bytes: usize) -> usize {
    AT_A_TIME * COPIES * batch_bytes
}

/// Creates or updates many Sources. Each succeeds or is refused by itself; the response lists the results in the order
/// of the request.
#[utoipa::path(post, path = "/v1/sources:batch", tag = "sources", params(DryRunParams), request_body = SourceBatch,
    responses((status = 200, description = "The result of each Source", body = Page<SourceResult>)))]
pub(crate) async fn sources(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(params): Query<DryRunParams>,
    BatchBody { body, permit: _permit }: BatchBody<SourceBatch>,
) -> Json<Page<SourceResult>> {
    let requests = body.sources.into_iter().map(|item| apply(&gateway, &caller, item, params.dry_run));
    let items: Vec<SourceResult> = stream::iter(requests).buffered(ITEMS_AT_A_TIME).collect().await;
    let count = |done| items.iter().filter(|item| item.done == done).count();
    tracing::info!(
        created = count(SourceDone::Created),
        changed = count(SourceDone::Changed),
        refused = count(SourceDone::Refused),
        dry_run = params.dry_run,
        token = caller.name(),
        "Sources are added and changed"
    );
    Json(Page::all(items))
}

async fn apply(gateway: &Gateway, caller: &Caller, item: SourceInBatch, dry_run: bool) -> SourceResult {
    let SourceInBatch { spec, revision } = item;
    let spec = SourceSpec::from(spec);
    let source = spec.id.to_string();
    match create_or_update(gateway, caller, &spec, revision, dry_run).await {
        Ok((done, revision)) => SourceResult { source, done, revision, problem: None },
        Err(error) => {
            let problem = Some(error.at(&format!("/v1/sources/{source}")));
            SourceResult { source, done: SourceDone::Refused, revision: None, problem }
        }
    }
}

/// Creates or updates one Source to match its spec.
async fn create_or_update(
    gateway: &Gateway,
    caller: &Caller,
    spec: &SourceSpec,
    read: Option<u64>,
    dry_run: bool,
) -> Result<(SourceDone, Option<u64>), ApiError> {
    spec.check().map_err(ControlError::from)?;
    access::check_written(caller, spec)?;
    let sources = gateway.control.sources();
    let found = match sources.get(&spec.id).await {
        Ok(found) => {
            access::check_existing(caller, &found)?;
            Some(found)
        }
        Err(ControlError::Absent { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let now = found.as_ref().map_or(0, |found| found.revision.get());
    if let Some(found) = &found
        && **found == *spec
    {
        return Ok((SourceDone::Unchanged, Some(now)));
    }
    if read.is_some_and(|read| read != now) {
        return Err(as_precondition(ControlError::Conflict { what: format!("source {}", spec.id) }));
    }
    let done = if found.is_some() { SourceDone::Changed } else { SourceDone::Created };
    if dry_run {
        sources.check_name(spec).await?;
        return Ok((done, None));
    }
    let written = match found {
        Some(found) => sources.update(spec, found.revision).await,
        None => sources.create(spec).await,
    };
    Ok((done, Some(written.map_err(as_precondition)?.get())))
}

/// Changes the spec of each Source, some at a time. The results come in the order of the Sources.
pub(crate) fn change_sources<'a>(
    gateway: &'a Gateway,
    caller: &'a Caller,
    sources: Vec<String>,
    change: impl Fn(&mut Spec) + Copy + 'a,
) -> impl Stream<Item = SourceResult> + 'a {
    let requests = sources.into_iter().map(move |source| async move {
        match change_one(gateway, caller, &source, change).await {
            Ok((done, revision)) => SourceResult { source, done, revision, problem: None },
            Err(error) => {
                let problem = Some(error.at(&format!("/v1/sources/{source}")));
                SourceResult { source, done: SourceDone::Refused, revision: None, problem }
            }
        }
    });
    stream::iter(requests).buffered(ITEMS_AT_A_TIME)
}

/// Changes a Source as it is now; again if another client changes it at the same time.
async fn change_one(
    gateway: &Gateway,
    caller: &Caller,
    source: &str,
    change: impl Fn(&mut Spec),
) -> Result<(SourceDone, Option<u64>), ApiError> {
    let id = access::source(gateway, caller, source).await?;
    let mut tries = 0;
    loop {
        tries += 1;
        let found = access::visible(gateway, caller, &id).await?;
        let mut spec = SourceSpec::clone(&found);
        change(&mut spec.spec);
        match create_or_update(gateway, caller, &spec, Some(found.revision.get()), false).await {
            Err(error) if error.is_precondition() && tries < TRIES => {}
            done => return done,
        }
    }
}

/// Requests a run of many Sources. Each request is accepted or refused by itself; the response lists the results in the
/// order of the request.
#[utoipa::path(post, path = "/v1/runs:batch", tag = "runs",
    params(IdempotencyKey),
    request_body = RunBatch,
    responses((status = 200, description = "The result of each Source", body = Page<RunResult>)))]
pub(crate) async fn runs(
    State(gateway): State<Gateway>,
    caller: Caller,
    key: IdempotencyKey,
    BatchBody { body, permit: _permit }: BatchBody<RunBatch>,
) -> Result<Json<Page<RunResult>>, ApiError> {
    let RunBatch { sources, submit } = body;
    let results: Vec<_> = submit_runs(&gateway, &caller, key.get(), sources, &submit).collect().await;
    Ok(Json(Page::all(results)))
}

/// Requests a run of each Source, some at a time. The results come in the order of the Sources.
pub(crate) fn submit_runs<'a>(
    gateway: &'a Gateway,
    caller: &'a Caller,
    key: Option<&'a str>,
    sources: Vec<String>,
    submit: &'a RunRequest,
) -> impl Stream<Item = RunResult> + 'a {
    let requests = sources.into_iter().map(move |source| async move {
        let key = key.map(|key| format!("{key} of the batch for {source}"));
        match request_run(gateway, caller, key.as_deref(), &source, submit).await {
            Ok(run) => RunResult { source, run: Some(run), problem: None },
            Err(error) => RunResult { source, run: None, problem: Some(error.at("/v1/runs:batch")) },
        }
    });
    stream::iter(requests).buffered(ITEMS_AT_A_TIME)
}

async fn request_run(
    gateway: &Gateway,
    caller: &Caller,
    key: Option<&str>,
    source: &str,
    request: &RunRequest,
) -> Result<Run, ApiError> {
    let source = access::source(gateway, caller, source).await?;
    runs::submit_once(gateway, caller, key, &source, Requested::Run(request)).await?.read()
}
