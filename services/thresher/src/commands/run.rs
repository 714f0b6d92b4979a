//! `thresher run`: what the fleet is asked to do, and how far it is.

use comfy_table::{Table, presets};
use control::{AskedBy, Control, ControlError, Revised, Run, RunSpec, Standing};
use jiff::Timestamp;
use model::{RunId, SourceId};
use serde::Serialize;

use crate::cli::{RunCommand, RunTargetArgs};
use crate::commands::fleet::connect;
use crate::commands::source::{mode, source_id};
use crate::exit::{CommandResult, Exit, Failed, usage};

/// A run, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    run: RunId,
    state: &'static str,
    why: Option<String>,
    owner: Option<String>,
    counters: &'a model::Counters,
    asked_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// Runs the command.
pub(crate) async fn run(command: RunCommand) -> CommandResult {
    match command {
        RunCommand::Submit { target, mode: wanted, allow_deletes, repair, watch } => {
            let (control, source) = open(&target).await?;
            let spec = RunSpec {
                id: RunId::fresh(),
                source: source.clone(),
                mode: mode(wanted),
                asked_by: AskedBy::Operator,
                asked_at: Timestamp::now(),
                allow_deletes,
                repair,
            };
            // A typing mistake would wait for ever.
            control.sources().get(&source).await.map_err(unknown)?;
            let run = control.runs().submit(spec).await?;
            if watch {
                return follow(&control, &source, run.spec.id, target.json).await;
            }
            println!("{}", run.spec.id);
            Ok(Exit::Good)
        }
        RunCommand::Ls { fleet, json } => {
            let control = connect(&fleet).await?;
            let (runs, leases) = (control.runs().view().await?, control.leases().view().await?);
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(["source", "state", "listed", "stored", "failed", "asked", "why"]);
            for run in runs.all() {
                let tenure = leases.get(&run.spec.source).map(|lease| lease.tenure());
                let standing = run.standing(tenure.as_ref());
                let line = Line::new(&run, &standing);
                if json {
                    println!("{}", serde_json::to_string(&line)?);
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
                    line.why.unwrap_or_default(),
                ]);
            }
            if !json {
                println!("{table}");
            }
            Ok(Exit::Good)
        }
        RunCommand::Watch { target } => {
            let (control, source) = open(&target).await?;
            let run = last(&control, &source).await?;
            follow(&control, &source, run.spec.id, target.json).await
        }
        RunCommand::Pause { target } => {
            let (control, source) = open(&target).await?;
            let run = last(&control, &source).await?;
            said(&control.runs().pause(&source, run.spec.id, Timestamp::now()).await?)
        }
        RunCommand::Resume { target } => {
            let (control, source) = open(&target).await?;
            let run = last(&control, &source).await?;
            said(&control.runs().resume(&source, run.spec.id, Timestamp::now()).await?)
        }
        RunCommand::Cancel { target } => {
            let (control, source) = open(&target).await?;
            let run = last(&control, &source).await?;
            said(&control.runs().cancel(&source, run.spec.id, Timestamp::now()).await?)
        }
    }
}

async fn open(target: &RunTargetArgs) -> Result<(Control, SourceId), Failed> {
    Ok((connect(&target.fleet).await?, source_id(&target.source)?))
}

async fn last(control: &Control, source: &SourceId) -> Result<Revised<Run>, Failed> {
    control.runs().get(source).await?.ok_or_else(|| {
        usage(format!("no run of {source} was ever asked for; `thresher run submit {source}` asks for one"))
    })
}

fn unknown(error: ControlError) -> Failed {
    match error {
        ControlError::Absent { what } => {
            usage(format!("there is no {what}; `thresher source ls` shows those that there are"))
        }
        error => error.into(),
    }
}

fn said(run: &Revised<Run>) -> CommandResult {
    println!("{} of {}: {}", run.spec.id, run.spec.source, run.state.name());
    Ok(Exit::Good)
}

/// Prints each change of a run until it is over.
async fn follow(control: &Control, source: &SourceId, id: RunId, json: bool) -> CommandResult {
    let (mut runs, mut leases) = (control.runs().view().await?, control.leases().view().await?);
    let mut before = String::new();
    loop {
        let Some(run) = runs.get(source) else {
            return Err(usage(format!("there is no run of {source} any more")));
        };
        if run.spec.id != id {
            return Err(usage(format!("another run of {source} has begun: {}", run.spec.id)));
        }
        let tenure = leases.get(source).map(|lease| lease.tenure());
        let standing = run.standing(tenure.as_ref());
        let line = Line::new(&run, &standing);
        let text = if json { serde_json::to_string(&line)? } else { line.text() };
        if text != before {
            println!("{text}");
            before = text;
        }
        match standing {
            Standing::Finished { in_sync: true } => return Ok(Exit::Good),
            Standing::Finished { in_sync: false } => return Ok(Exit::Problems),
            Standing::Failed { .. } | Standing::Cancelled => return Ok(Exit::Failed),
            _ => {}
        }
        tokio::select! {
            () = runs.changed() => {}
            () = leases.changed() => {}
        }
    }
}

impl<'a> Line<'a> {
    fn new(run: &'a Run, standing: &Standing<'a>) -> Self {
        let (why, owner) = match standing {
            Standing::Failed { why } => (Some((*why).to_owned()), None),
            Standing::Running { owner, .. } | Standing::Interrupted { owner } => {
                (run.progress.waits_for.clone(), Some(owner.to_string()))
            }
            _ => (None, None),
        };
        Self {
            source: &run.spec.source,
            run: run.spec.id,
            state: standing.name(),
            why,
            owner,
            counters: &run.progress.counters,
            asked_at: run.spec.asked_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }

    fn text(&self) -> String {
        let counters = self.counters;
        let why = self.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let differ =
            counters.audit.map_or(String::new(), |audit| format!(", {} differ", audit.differences()));
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
