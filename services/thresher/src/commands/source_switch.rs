//! `thresher source pause` and `resume`: disable and enable Sources.

use std::collections::HashSet;

use api::{Source, SourceInBatch, Spec};
use control::SourceName;
use model::counted;
use serde::Serialize;

use crate::cli::{SourceTargetArgs, WhichSourcesArgs};
use crate::client::{OperatorClient, called, no_source};
use crate::client_error::{ClientError, Kind};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, note, say};

/// Attempts to change a Source that other clients change at the same time.
const TRIES: usize = 3;

/// What the command does with Sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    /// Disable them.
    Pause,
    /// Enable them.
    Resume,
}

impl Switch {
    fn enables(self) -> bool {
        self == Self::Resume
    }

    /// The state of the Sources afterwards.
    fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}

/// The result of a Source, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a SourceName>,
    /// `paused`, `resumed`, `unchanged` or `refused`.
    done: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Runs the command.
pub(super) async fn run(args: SourceTargetArgs, switch: Switch) -> CommandResult {
    let client = OperatorClient::of(&args.gateway)?;
    let sources = sources(&client, &args.which).await?;
    if sources.is_empty() {
        return Err(usage("no Source matches; `thresher source ls` lists the Sources"));
    }
    let is_due = |source: &&Source| source.spec.enabled != switch.enables();
    let due: Vec<SourceInBatch> =
        sources.iter().filter(is_due).map(|source| switched(source, switch)).collect();
    let mut results = client.apply(&due, false).await?.into_iter();
    let mut exit = Exit::Good;
    let mut switched = 0;
    let mut refused = 0;
    for source in &sources {
        let result = if is_due(&source) { results.next() } else { None };
        let result = match result {
            Some(Err(error)) if error.kind == Kind::Changed => Some(again(&client, source, switch).await),
            result => result.map(|result| result.map(drop)),
        };
        let line =
            |done, message| Line { source: &source.id, name: source.spec.name.as_ref(), done, message };
        let line = match result {
            None => line("unchanged", None),
            Some(Ok(())) => {
                switched += 1;
                line(switch.done(), None)
            }
            Some(Err(error)) => {
                // The others are changed all the same; the first error decides the exit status.
                exit = if exit == Exit::Good { Exit::of(&error) } else { exit };
                refused += 1;
                line("refused", Some(error.to_string()))
            }
        };
        line.print(args.json)?;
    }
    if !args.json {
        let unchanged = sources.len() as u64 - switched - refused;
        let all = counted(sources.len() as u64, "Source", "Sources");
        note!("{switched} {}, {unchanged} unchanged, {refused} refused, of {all}", switch.done());
    }
    Ok(exit)
}

impl Line<'_> {
    fn print(&self, json: bool) -> Result<(), Failed> {
        let Self { source, name, done, message } = self;
        let called = called(*name, source);
        match (json, message) {
            (true, _) => terminal::json(self)?,
            (false, None) => say!("{called} {done}")?,
            (false, Some(message)) => note!("{called}: {message}"),
        }
        Ok(())
    }
}

/// The Sources that the operator means, each once.
async fn sources(client: &OperatorClient, which: &WhichSourcesArgs) -> Result<Vec<Source>, Failed> {
    if which.sources.is_empty() {
        return Ok(client.sources(which.matching.as_ref()).await?);
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for text in &which.sources {
        let id = client.source_id(text).await?;
        if seen.insert(id.clone()) {
            found.push(client.source(&id).await?.ok_or_else(|| no_source(text))?);
        }
    }
    Ok(found)
}

/// The change of a Source that was read.
fn switched(source: &Source, switch: Switch) -> SourceInBatch {
    let spec = Spec { enabled: switch.enables(), ..source.spec.clone() };
    SourceInBatch { spec, revision: source.revision }
}

/// Reads and changes a Source again that another client has changed meanwhile.
async fn again(client: &OperatorClient, source: &Source, switch: Switch) -> Result<(), ClientError> {
    let id =
        source.id.parse().map_err(|_| ClientError::new(Kind::Broken, "the gateway sent no Source ID"))?;
    let mut last = None;
    for _ in 0..TRIES {
        let Some(found) = client.source(&id).await? else {
            return Err(ClientError::new(Kind::Absent, "it was removed meanwhile"));
        };
        let SourceInBatch { spec, revision } = switched(&found, switch);
        match client.change(&id, &spec, revision.unwrap_or_default()).await {
            Err(error) if error.kind == Kind::Changed => last = Some(error),
            changed => return changed.map(drop),
        }
    }
    Err(last.unwrap_or_else(|| ClientError::new(Kind::Changed, "other clients change it all the time")))
}
