//! `/v1/sources/{source}/runs/{run}/events`: progress of a run as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use api::Run;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use control::{LeaseRecord, Run as FleetRun, WatchCache};
use futures::{Stream, StreamExt as _, stream};
use model::{RunId, SourceId};
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::api_error::ApiError;
use crate::extract::RunPath;
use crate::runs::{self, lookup};
use crate::state::Gateway;
use crate::tokens::Caller;

/// The interval of keep-alive events while nothing changes. It is shorter than the idle timeouts of proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

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
#[utoipa::path(get, path = "/v1/sources/{source}/runs/{run}/events", tag = "runs", params(RunPath),
    responses((status = 200, description = "Server-sent events", body = RunEvent, content_type = "text/event-stream")))]
pub(crate) async fn events(
    State(gateway): State<Gateway>,
    caller: Caller,
    RunPath { source, run }: RunPath,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    // The views lag by a moment, so a run that was just requested may be missing there.
    let Some((_, view)) = lookup::current(&gateway, &source, run).await? else {
        let past = lookup::earlier(&gateway, &source, run).await?;
        let only = event(&runs::present(&gateway, &past)).map(|(_, event)| Ok(event));
        return Ok(sse(stream::iter(only).left_stream()));
    };
    let events = RunEventStream {
        source,
        id: run,
        runs: view.clone(),
        leases: gateway.views.leases.clone(),
        changes: gateway.tokens.changes(),
        gateway,
        caller,
        before: String::new(),
        seen: false,
        is_over: false,
    };
    Ok(sse(stream::unfold(events, RunEventStream::next).right_stream()))
}

fn sse<S: Stream<Item = Result<Event, Infallible>> + Send + 'static>(
    events: S,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// The event stream of a run.
struct RunEventStream {
    source: SourceId,
    id: RunId,
    runs: WatchCache<FleetRun>,
    leases: WatchCache<LeaseRecord>,
    gateway: Gateway,
    /// Notifies when the tokens change.
    changes: watch::Receiver<()>,
    /// The caller. The stream ends when its token becomes invalid.
    caller: Caller,
    before: String,
    /// Whether the view has shown this run.
    seen: bool,
    is_over: bool,
}

impl RunEventStream {
    /// The next event. None when the run is over, a newer run replaced it, the token became invalid, the caller may not
    /// see the Source any more, or this service is to stop.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        while !self.is_over {
            self.runs.mark_seen();
            self.leases.mark_seen();
            // The labels of the Source may have changed. The view may lack a Source that was just added.
            let source = self.gateway.views.sources.get(&self.source);
            let is_hidden = source.is_some_and(|source| !self.caller.sees(&source));
            if is_hidden || !self.gateway.tokens.is_good(&self.caller) {
                return None;
            }
            match self.runs.get(&self.source).filter(|run| run.spec.id == self.id) {
                Some(run) => {
                    self.seen = true;
                    let now = runs::present(&self.gateway, &run);
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
                () = self.gateway.stop.cancelled() => return None,
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
