//! `thresher run submit` for several Sources, with a summary.

use api::{RunRequest, Source};
use control::SourceName;
use model::{RunId, SourceId, counted};
use regex::Regex;
use serde::Serialize;

use crate::cli::WhichArgs;
use crate::client::{OperatorClient, called};
use crate::client_error::{ClientError, Kind};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, note, say};

/// Whether a run of a Source was requested, as `--json` prints it.
#[derive(Debug, Serialize)]
struct SubmittedLine<'a> {
    source: &'a SourceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a SourceName>,
    done: SubmitOutcome,
    run: Option<RunId>,
    message: Option<String>,
}

/// The result of a request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum SubmitOutcome {
    /// The run is queued.
    Submitted,
    /// The last run of the Source is not over.
    AlreadyRunning,
    /// The request was refused for another reason.
    Refused,
}

/// Requests runs of several Sources, and prints a line about each.
pub(super) async fn many(
    client: &OperatorClient,
    which: &WhichArgs,
    submit: &RunRequest,
    json: bool,
) -> CommandResult {
    let is_meant = |source: &Source| {
        let name = source.spec.name.as_ref().map(SourceName::as_str);
        let mut texts = [source.id.as_str(), source.spec.entry.as_str()].into_iter().chain(name);
        let like = |pattern: &Regex| texts.any(|text| pattern.is_match(text));
        source.spec.enabled && which.like.as_ref().is_none_or(like)
    };
    let mut sources = client.sources(which.matching.as_ref()).await?;
    sources.retain(is_meant);
    let ids: Vec<SourceId> = sources.iter().map(|source| source.id.parse()).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(usage("no enabled Source matches; `thresher source ls` lists the Sources"));
    }
    let mut exit = Exit::Good;
    let mut all = Vec::new();
    for ((source, id), outcome) in sources.iter().zip(&ids).zip(client.submit_all(&ids, submit).await?) {
        // The others are requested all the same; the first error decides the exit status.
        if let Err(error) = &outcome
            && exit == Exit::Good
        {
            exit = Exit::of(error);
        }
        let line = SubmittedLine::new(id, source.spec.name.as_ref(), outcome);
        line.print(json)?;
        all.push(line.done);
    }
    if !json {
        let count = |done| all.iter().filter(|one| **one == done).count() as u64;
        note!(
            "{} submitted, {} already running, {} refused, of {}",
            counted(count(SubmitOutcome::Submitted), "run", "runs"),
            count(SubmitOutcome::AlreadyRunning),
            count(SubmitOutcome::Refused),
            counted(ids.len() as u64, "Source", "Sources")
        );
    }
    Ok(exit)
}

impl<'a> SubmittedLine<'a> {
    fn new(source: &'a SourceId, name: Option<&'a SourceName>, outcome: Result<RunId, ClientError>) -> Self {
        match outcome {
            Ok(run) => Self { source, name, done: SubmitOutcome::Submitted, run: Some(run), message: None },
            Err(error) => {
                let is_running = error.kind == Kind::Conflict;
                let done = if is_running { SubmitOutcome::AlreadyRunning } else { SubmitOutcome::Refused };
                Self { source, name, done, run: None, message: Some(error.to_string()) }
            }
        }
    }

    fn print(&self, json: bool) -> Result<(), Failed> {
        let called = called(self.name, self.source.as_str());
        match (json, &self.run) {
            (true, _) => terminal::json(self)?,
            (false, Some(run)) => say!("{called} {run}")?,
            (false, None) => note!("{called}: {}", self.message.as_deref().unwrap_or("no run requested")),
        }
        Ok(())
    }
}
