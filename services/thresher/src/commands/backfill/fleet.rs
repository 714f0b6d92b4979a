//! `thresher backfill` through a gateway: the scheduler that owns the Source fetches the versions.

use std::time::Duration;

use api::{BackfillRequest, Run};
use indicatif::HumanDuration;

use super::{Outcome, show};
use crate::cli::BackfillArgs;
use crate::client::{OperatorClient, SourceRef, no_source};
use crate::client_error::Kind;
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::{self, note, say};

/// Requests the backfills, and waits for their ends.
pub(super) async fn run(client: &OperatorClient, args: &BackfillArgs) -> CommandResult {
    if args.exclusive {
        return Err(usage(
            "--exclusive is for a store that no fleet uses; a gateway needs no exclusive access. Leave it out",
        ));
    }
    if args.max_size.is_some() {
        return Err(usage(
            "--max-size is a setting of the Source in a fleet. Set `max_body_bytes` in its YAML (`thresher source show`), \
             and pass that to `thresher apply -f`",
        ));
    }
    let request = BackfillRequest {
        versions: args.versions,
        since: args.since,
        archives: args.archives,
        any_host: args.any_host,
    };
    let mut submitted = Vec::new();
    for source in client.selected(args.source.as_deref()).await? {
        let run = client.backfill(&source.id, &request).await.map_err(|error| match error.kind {
            Kind::Absent => no_source(&source.id),
            _ => error.into(),
        })?;
        submitted.push((source, run));
    }
    let mut exit = Exit::Good;
    for (source, run) in submitted {
        let run = client.until_over(run).await?;
        match one(args, &source, &run)? {
            Exit::Failed => exit = Exit::Failed,
            Exit::Problems if exit == Exit::Good => exit = Exit::Problems,
            _ => {}
        }
    }
    Ok(exit)
}

/// Prints the end of a run.
fn one(args: &BackfillArgs, source: &SourceRef, run: &Run) -> CommandResult {
    let counts = run.backfill.as_ref().map(|backfill| backfill.counts.clone()).unwrap_or_default();
    let took = run.started_at.zip(run.finished_at).map(|(began, ended)| ended.duration_since(began));
    let took = took.and_then(|took| Duration::try_from(took).ok()).unwrap_or_default();
    if run.state != "finished" {
        note!("{}: {}: {}", source.id, run.state, run.message.as_deref().unwrap_or("it was stopped"));
    }
    if args.json {
        let outcome = Outcome {
            source: source.id.as_str(),
            url: &source.entry,
            versions: args.versions.map(Into::into),
            report: &counts,
            duration_ms: took.as_millis(),
        };
        terminal::json(&outcome)?;
    } else {
        show::counts(&source.entry, &counts)?;
        say!("in {}", HumanDuration(took))?;
    }
    Ok(match &*run.state {
        "finished" if counts.failures() == 0 => Exit::Good,
        "finished" => Exit::Problems,
        _ => Exit::Failed,
    })
}
