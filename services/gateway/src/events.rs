//! `/v1/sources/{source}/runs/{run}/events`: progress of a run as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use api::Run;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use control::{LeaseRecord, Run as FleetRun, WatchCache};
use futures::{Stream, stream};
use model::{RunId, SourceId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::ask;
use crate::refusal::Refusal;
use crate::runs;
use crate::state::Gateway;
use crate::tokens::{Caller, Tokens};

/// The interval of keep-alive events while nothing changes. It is shorter than the idle timeouts of proxies.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// An event of a run.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written by hand")]
pub(crate) struct RunEvent {
    /// `run`
    event: String,
    /// The run, as JSON.
    data: String,
    /// The revision of the run.
    id: Option<String>,
}

/// Streams each change of a run until it is over: events named `run`, whose data are the run as JSON. The first event
/// is the current state, so a disconnected client just reconnects.
#[utoipa::path(get, path = "/v1/sources/{source}/runs/{run}/events", tag = "runs",
    params(("source" = String, Path, description = "The Source ID"), ("run" = String, Path, description = "The run ID")),
    responses((status = 200, description = "Server-sent events", body = RunEvent, content_type = "text/event-stream")))]
pub(crate) async fn events(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path((source, run)): Path<(String, String)>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let (source, id) = (ask::source(&source)?, runs::run_id(&run)?);
    // The views lag by a moment, so a run that was just requested may be missing there.
    let found = gateway.control().runs().get(&source).await?.filter(|found| found.spec.id == id);
    let views = gateway.views();
    let story = Story {
        source,
        id,
        runs: views.runs.clone(),
        leases: views.leases.clone(),
        stop: gateway.stop().clone(),
        changes: gateway.tokens().changes(),
        tokens: gateway.tokens().clone(),
        caller,
        before: String::new(),
        seen: false,
        is_over: false,
    };
    if found.is_none() {
        let past = gateway.control().runs().past(&story.source).await?;
        let past = past.into_iter().find(|past| past.spec.id == id);
        let past = past.ok_or_else(|| runs::no_run(&story.source, id))?;
        let only = event(&runs::present(&gateway, &past)).map(|(_, event)| Ok(event));
        return Ok(told(futures::StreamExt::left_stream(stream::iter(only))));
    }
    Ok(told(futures::StreamExt::right_stream(stream::unfold(story, Story::next))))
}

fn told<S: Stream<Item = Result<Event, Infallible>> + Send + 'static>(
    events: S,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE))
}

/// The event stream of a run.
struct Story {
    source: SourceId,
    id: RunId,
    runs: WatchCache<FleetRun>,
    leases: WatchCache<LeaseRecord>,
    stop: CancellationToken,
    tokens: Tokens,
    changes: watch::Receiver<()>,
    /// The caller. The stream ends when its token becomes invalid.
    caller: Caller,
    before: String,
    /// Whether the view has shown this run.
    seen: bool,
    is_over: bool,
}

impl Story {
    /// The next event. None when the run is over, a newer run replaced it, the token became invalid, or this service is
    /// to stop.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        while !self.is_over {
            self.runs.mark_seen();
            self.leases.mark_seen();
            if !self.tokens.is_good(&self.caller) {
                return None;
            }
            match self.runs.get(&self.source).filter(|run| run.spec.id == self.id) {
                Some(run) => {
                    self.seen = true;
                    let tenure = self.leases.get(&self.source).map(|lease| lease.tenure());
                    let now = Run::new(&run, &run.standing(tenure.as_ref()));
                    self.is_over = run.state.is_over();
                    if let Some((text, event)) = event(&now)
                        && text != self.before
                    {
                        self.before = text;
                        return Some((Ok(event.id(run.revision.to_string())), self));
                    }
                }
                // A newer run replaced it.
                None if self.seen => return None,
                None => {}
            }
            if self.is_over {
                break;
            }
            tokio::select! {
                () = self.runs.changed() => {}
                () = self.leases.changed() => {}
                Ok(()) = self.changes.changed() => {}
                () = self.stop.cancelled() => return None,
            }
        }
        None
    }
}

fn event(run: &Run) -> Option<(String, Event)> {
    let text = serde_json::to_string(run).ok()?;
    let event = Event::default().event("run").data(&text);
    Some((text, event))
}
