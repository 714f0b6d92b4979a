//! `thresher run`: start, watch, pause, cancel or approve runs of a fleet.

use api::{Run, Source, Submit};
use comfy_table::{Table, presets};
use jiff::Timestamp;
use model::{RunId, SourceId, counted, displayed};
use serde::Serialize;

use crate::ask::{Asked, Kind, Steer};
use crate::cli::{RunCommand, RunTargetArgs, WhichArgs};
use crate::commands::source::{no_source, source_id};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::glob;
use crate::terminal::{self, note, say};

/// A run, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    run: RunId,
    state: &'a str,
    why: Option<&'a str>,
    owner: Option<&'a str>,
    counters: &'a model::Counters,
    asked_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// Runs the command.
pub(crate) async fn run(command: RunCommand) -> CommandResult {
    match command {
        RunCommand::Submit { which, fleet, json, mode: wanted, allow_deletes, repair, watch } => {
            let submit = Submit { mode: wanted, allow_deletes, repair };
            let asked = Asked::of(&fleet).await?;
            let Some(source) = &which.source else { return submit_many(&asked, &which, &submit, json).await };
            let source = source_id(source)?;
            let run = asked.submit(&source, &submit).await.map_err(|error| match error.kind {
                Kind::Absent => no_source(&source),
                _ => error.into(),
            })?;
            begun(&asked, &run, watch, json).await
        }
        RunCommand::Ls { fleet, json } => {
            let runs = Asked::of(&fleet).await?.runs().await?;
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(["source", "state", "listed", "stored", "failed", "asked", "why"]);
            for run in &runs {
                let line = Line::new(run);
                if json {
                    terminal::json(&line)?;
                    continue;
                }
                let counters = line.counters;
                table.add_row([
                    line.source.to_string(),
                    line.state.to_owned(),
                    counters.listed.to_string(),
                    counters.stored.to_string(),
                    counters.failed.to_string(),
                    line.asked_at.to_string(),
                    displayed(line.why.unwrap_or_default()).into_owned(),
                ]);
            }
            if !json {
                terminal::text(&format!("{table}\n"))?;
            }
            Ok(Exit::Good)
        }
        RunCommand::Watch { target } => {
            let (asked, source) = open(&target).await?;
            let run = last(&asked, &source).await?;
            follow(&asked, &source, run.run, target.json).await
        }
        RunCommand::Pause { target } => steer(&target, Steer::Pause).await,
        RunCommand::Resume { target } => steer(&target, Steer::Resume).await,
        RunCommand::Cancel { target } => steer(&target, Steer::Cancel).await,
        RunCommand::Approve { target, watch } => {
            let (asked, source) = open(&target).await?;
            let stopped = last(&asked, &source).await?;
            let run = asked.approve(&source, stopped.run).await?;
            begun(&asked, &run, watch, target.json).await
        }
    }
}

/// Whether a run of a Source was requested, as `--json` prints it.
#[derive(Debug, Serialize)]
struct AskedLine<'a> {
    source: &'a SourceId,
    run: Option<RunId>,
    why: Option<String>,
}

/// Requests runs of several Sources, and prints a line about each.
async fn submit_many(asked: &Asked, which: &WhichArgs, submit: &Submit, json: bool) -> CommandResult {
    let is_meant = |source: &Source| {
        let like = |pattern: &String| {
            glob::matches(pattern, &source.id) || glob::matches(pattern, source.wanted.entry.as_str())
        };
        source.wanted.enabled && which.matching.as_ref().is_none_or(like)
    };
    let sources = asked.sources().await?;
    let ids: Vec<SourceId> = sources
        .iter()
        .filter(|source| is_meant(source))
        .map(|source| source_id(&source.id))
        .collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(usage(
            "no Source that is not disabled is meant; `thresher source ls` shows those that there are",
        ));
    }
    let (mut exit, mut count) = (Exit::Good, 0);
    for (source, outcome) in ids.iter().zip(asked.submit_all(&ids, submit).await?) {
        let (run, why) = match outcome {
            Ok(run) => (Some(run), None),
            Err(error) => {
                // The others are requested all the same; the first error decides the exit status.
                exit = if exit == Exit::Good { error.exit() } else { exit };
                (None, Some(error.to_string()))
            }
        };
        count += usize::from(run.is_some());
        match (json, &run, &why) {
            (true, ..) => terminal::json(&AskedLine { source, run, why })?,
            (false, Some(run), _) => say!("{source} {run}")?,
            (false, None, why) => note!("{source}: {}", why.as_deref().unwrap_or("no run is asked for")),
        }
    }
    if !json {
        note!(
            "{} asked for, of {}",
            counted(count as u64, "run is", "runs are"),
            counted(ids.len() as u64, "Source", "Sources")
        );
    }
    Ok(exit)
}

async fn open(target: &RunTargetArgs) -> Result<(Asked, SourceId), Failed> {
    let source = source_id(&target.source)?;
    Ok((Asked::of(&target.fleet).await?, source))
}

async fn last(asked: &Asked, source: &SourceId) -> Result<Run, Failed> {
    let none = || {
        usage(format!("no run of {source} was ever asked for; `thresher run submit {source}` asks for one"))
    };
    match asked.last_run(source).await {
        Ok(run) => run.ok_or_else(none),
        Err(error) if error.kind == Kind::Absent => Err(none()),
        Err(error) => Err(error.into()),
    }
}

/// Prints a run that was just requested.
async fn begun(asked: &Asked, run: &Run, watch: bool, json: bool) -> CommandResult {
    if watch {
        return follow(asked, &run.source, run.run, json).await;
    }
    say!("{}", run.run)?;
    Ok(Exit::Good)
}

async fn steer(target: &RunTargetArgs, how: Steer) -> CommandResult {
    let (asked, source) = open(target).await?;
    let run = last(&asked, &source).await?;
    let run = asked.steer(&source, run.run, how).await?;
    say!("{} of {}: {}", run.run, run.source, run.state)?;
    Ok(Exit::Good)
}

/// Prints each change of a run until it is over.
async fn follow(asked: &Asked, source: &SourceId, id: RunId, json: bool) -> CommandResult {
    let mut followed = asked.follow(source, id).await?;
    let mut before = String::new();
    loop {
        let run = followed.next().await?;
        let line = Line::new(&run);
        let text = if json { serde_json::to_string(&line)? } else { line.text() };
        if text != before {
            say!("{text}")?;
            before = text;
        }
        match (&*run.state, run.in_sync) {
            ("finished", Some(true)) => return Ok(Exit::Good),
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
            run: run.run,
            state: &run.state,
            why: run.why.as_deref(),
            owner: run.owner.as_deref(),
            counters: &run.counters,
            asked_at: run.asked_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }

    fn text(&self) -> String {
        let counters = self.counters;
        let why = self.why.map_or(String::new(), |why| format!(": {why}"));
        let differ = counters.audit.map_or(String::new(), |audit| {
            format!(", {}", counted(audit.differences(), "differs", "differ"))
        });
        format!(
            "{} {}: {} listed, {} stored, {} unchanged, {} deleted, {} failed{differ}{why}",
            self.source,
            self.state,
            counters.listed,
            counters.stored,
            counters.unchanged,
            counters.deleted,
            counters.failed
        )
    }
}
