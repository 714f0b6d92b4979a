//! `thresher run`: start, watch, pause, cancel or approve runs of a fleet.

mod submit;

use api::{Counters, Run, RunRequest, RunWait};
use control::{SourceName, WaitReason};
use jiff::Timestamp;
use model::{RunId, SourceId, counted, displayed};
use serde::Serialize;

use crate::cli::{ListArgs, RunCommand, RunTargetArgs};
use crate::client::{OperatorClient, called, no_source};
use crate::client_error::Kind;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, say};

/// A run, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a SourceName>,
    run: RunId,
    state: &'a str,
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<&'a RunWait>,
    owner: Option<&'a str>,
    counters: &'a Counters,
    requested_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// Runs the command.
pub(crate) async fn run(command: RunCommand) -> CommandResult {
    match command {
        RunCommand::Submit { which, gateway, json, mode: wanted, allow_deletes, repair, watch } => {
            let submit = RunRequest { mode: wanted, allow_deletes, repair };
            if submit.repairs_nothing() {
                return Err(usage("--repair needs --mode audit: only an audit finds what to repair"));
            }
            let client = OperatorClient::of(&gateway)?;
            let Some(source) = &which.source else {
                return submit::many(&client, &which, &submit, json).await;
            };
            let source = client.source_id(source).await?;
            let run = client.submit(&source, &submit).await.map_err(|error| match error.kind {
                Kind::Absent => no_source(&source),
                _ => error.into(),
            })?;
            submitted(&client, &run, watch, json).await
        }
        RunCommand::Ls(ListArgs { gateway, matching, json }) => {
            let runs = OperatorClient::of(&gateway)?.runs(matching.as_ref()).await?;
            let header = ["name", "source", "state", "listed", "stored", "failed", "requested", "message"];
            let mut table = terminal::table(header);
            for run in &runs {
                let line = Line::new(run);
                if json {
                    terminal::json(&line)?;
                    continue;
                }
                let counters = line.counters;
                table.add_row([
                    line.name.map_or("-", SourceName::as_str).to_owned(),
                    line.source.to_string(),
                    line.state.to_owned(),
                    counters.listed.to_string(),
                    counters.stored.to_string(),
                    counters.failed.to_string(),
                    line.requested_at.to_string(),
                    line.message_with_wait(),
                ]);
            }
            if !json {
                terminal::text(&format!("{table}\n"))?;
            }
            Ok(Exit::Good)
        }
        RunCommand::Watch(target) => {
            let (client, run) = last(&target).await?;
            follow(&client, &run.source, run.run, target.json).await
        }
        RunCommand::Pause(target) => control(&target, "pause").await,
        RunCommand::Resume(target) => control(&target, "resume").await,
        RunCommand::Cancel(target) => control(&target, "cancel").await,
        RunCommand::Approve { target, watch } => {
            let (client, stopped) = last(&target).await?;
            let run = client.control(&stopped.source, stopped.run, "approve").await?;
            submitted(&client, &run, watch, target.json).await
        }
    }
}

/// The gateway, and the current or last run of the Source.
async fn last(target: &RunTargetArgs) -> Result<(OperatorClient, Run), Failed> {
    let client = OperatorClient::of(&target.gateway)?;
    let source = client.source_id(&target.source).await?;
    let run = match client.last_run(&source).await {
        Err(error) if error.kind == Kind::Absent => None,
        found => found?,
    };
    let none = || usage(format!("{source} has no run; start one with `thresher run submit {source}`"));
    Ok((client, run.ok_or_else(none)?))
}

/// Prints a run that was just requested.
async fn submitted(client: &OperatorClient, run: &Run, watch: bool, json: bool) -> CommandResult {
    if watch {
        return follow(client, &run.source, run.run, json).await;
    }
    say!("{}", run.run)?;
    Ok(Exit::Good)
}

async fn control(target: &RunTargetArgs, action: &str) -> CommandResult {
    let (client, run) = last(target).await?;
    let run = client.control(&run.source, run.run, action).await?;
    say!("{} of {}: {}", run.run, called(run.name.as_ref(), run.source.as_str()), run.state)?;
    Ok(Exit::Good)
}

/// Prints each change of a run until it is over.
pub(super) async fn follow(
    client: &OperatorClient,
    source: &SourceId,
    id: RunId,
    json: bool,
) -> CommandResult {
    let mut events = client.follow(source, id);
    let mut before = String::new();
    loop {
        let run = events.next().await?;
        let line = Line::new(&run);
        let text = if json { serde_json::to_string(&line)? } else { line.text() };
        if text != before {
            say!("{text}")?;
            before = text;
        }
        match (&*run.state, run.in_sync) {
            ("finished", Some(true)) => return Ok(Exit::Good),
            ("finished", None) if run.backfill.as_ref().is_none_or(|one| one.counts.failures() == 0) => {
                return Ok(Exit::Good);
            }
            ("finished", _) => return Ok(Exit::Problems),
            _ if run.is_over() => return Ok(Exit::Failed),
            _ => {}
        }
    }
}

impl<'a> Line<'a> {
    fn new(run: &'a Run) -> Self {
        Self {
            source: &run.source,
            name: run.name.as_ref(),
            run: run.run,
            state: &run.state,
            message: run.message.as_deref(),
            waiting: run.waiting.as_ref(),
            owner: run.owner.as_deref(),
            counters: &run.counters,
            requested_at: run.requested_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }

    /// Why it waits, since when and until when; else its message.
    fn message_with_wait(&self) -> String {
        let message = displayed(self.message.unwrap_or_default()).into_owned();
        match self.waiting {
            Some(wait) if wait.reason == WaitReason::Turn => message,
            Some(RunWait { reason, since, until, .. }) => {
                format!("{} since {since}, next try {until}: {message}", reason.as_str())
            }
            None => message,
        }
    }

    fn text(&self) -> String {
        let counters = self.counters;
        let message = match self.message_with_wait() {
            message if message.is_empty() => message,
            message => format!(": {message}"),
        };
        let differ = counters.audit.map_or(String::new(), |audit| {
            format!(", {}", counted(audit.differences(), "difference", "differences"))
        });
        format!(
            "{} {}: {} listed, {} stored, {} unchanged, {} deleted, {} failed{differ}{message}",
            called(self.name, self.source.as_str()),
            self.state,
            counters.listed,
            counters.stored,
            counters.unchanged,
            counters.deleted,
            counters.failed
        )
    }
}
