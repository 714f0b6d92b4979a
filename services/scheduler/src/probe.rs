//! Asks a Source whether it answers, before its run gets a place.

use control::{Run, RunSpec, RunWait, SourceSpec};
use jiff::Timestamp;
use model::Disposition;
use tokio::time::timeout;
use web::{GetRequest, WebError};

use crate::context::SchedulerContext;
use crate::{run, run_options};

/// Result of a probe.
#[derive(Debug)]
pub(crate) enum Probe {
    /// The Source answers, or its run must find out why not.
    Answers,
    /// The Source cannot be used now. Its run waits.
    Waits(RunWait),
}

/// Makes one request for the Source's entry, without its body. Any answer is one: the run judges it.
pub(crate) async fn probe(context: &SchedulerContext, source: &SourceSpec, run: &Run) -> Probe {
    let Some(client) = client(context, source, &run.spec) else { return Probe::Answers };
    let longest = context.settings.probe_timeout();
    let asked = timeout(longest, client.get(GetRequest::new(source.entry.clone()))).await;
    let now = context.clock.now();
    let before = run.waiting.as_ref();
    match asked {
        Ok(Ok(_)) => Probe::Answers,
        Ok(Err(error)) => wait_after(&error, before, now).map_or(Probe::Answers, Probe::Waits),
        Err(_) => {
            let why = format!(
                "{} did not answer within {} s; it is asked again by itself, and `run resume` asks at once",
                source.entry,
                longest.as_secs()
            );
            Probe::Waits(RunWait::unreachable(before, why, now))
        }
    }
}

/// The client of the Source's runs. None if its spec is wrong: its run fails, and says why.
pub(crate) fn client(context: &SchedulerContext, source: &SourceSpec, spec: &RunSpec) -> Option<web::Client> {
    let options = run_options::options(source, spec).ok()?;
    run::client(context, &run::with_neighbours(context, source, options)).ok()
}

/// How long a run waits after a request to its Source failed. None if waiting does not help.
pub(crate) fn wait_after(error: &WebError, before: Option<&RunWait>, now: Timestamp) -> Option<RunWait> {
    let Disposition::Retry { after } = error.disposition() else { return None };
    // A client that rests an origin says for how long, without a request.
    Some(match after.and_then(|after| now.checked_add(after).ok()) {
        Some(until) => RunWait::retry_after(before, error.to_string(), until, now),
        None => RunWait::unreachable(before, error.to_string(), now),
    })
}
