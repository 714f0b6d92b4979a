//! Selects problems, and writes the operator's actions on them into catalogs.

use std::collections::HashSet;

use api::{ProblemAction, ProblemSelector};
use model::{ProblemReason, ProblemRecord, Subject, SystemClock};
use serde::Serialize;

use crate::cli::{KindArgs, SelectArgs};
use crate::client::OperatorClient;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{note, say};

impl KindArgs {
    /// Whether a problem has one of these reasons and kinds.
    pub(crate) fn take(&self, subject: &Subject, reason: ProblemReason) -> bool {
        (self.reason.is_empty() || self.reason.contains(&reason))
            && (self.kind.is_empty() || self.kind.iter().any(|kind| kind.name() == subject.kind()))
    }

    /// The names of the reasons.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.reason.iter().map(|reason| reason.as_str().to_owned()).collect()
    }

    /// The names of the kinds.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.kind.iter().map(|kind| kind.name().to_owned()).collect()
    }

    fn is_empty(&self) -> bool {
        self.reason.is_empty() && self.kind.is_empty()
    }
}

impl SelectArgs {
    /// Whether a problem's URI is selected.
    pub(crate) fn name(&self, subject: &Subject) -> bool {
        self.uris.iter().any(|uri| uri == subject.uri())
    }

    /// Whether a problem is selected.
    pub(crate) fn take(&self, subject: &Subject, reason: ProblemReason) -> bool {
        (self.uris.is_empty() || self.name(subject))
            && self.prefix.as_ref().is_none_or(|prefix| subject.uri().starts_with(prefix.as_str()))
            && self.filter.take(subject, reason)
    }

    /// The same selection, as the API's type.
    fn about(&self) -> ProblemSelector {
        ProblemSelector {
            uris: self.uris.clone(),
            prefix: self.prefix.clone(),
            reasons: self.filter.reason.clone(),
            kind: self.filter.kinds(),
            all: self.all,
        }
    }

    fn check(&self) -> Result<(), Failed> {
        if self.all || !self.uris.is_empty() || self.prefix.is_some() || !self.filter.is_empty() {
            return Ok(());
        }
        Err(usage(
            "no problem selected; pass URIs, --prefix, --reason, --kind or --all (`thresher problems` lists them)",
        ))
    }
}

/// Sends the operator's action to a gateway, for the owner of the Source, which alone writes its catalog.
pub(crate) async fn submit<T: Serialize>(
    client: &OperatorClient,
    select: &SelectArgs,
    how: &str,
    action: impl FnOnce(ProblemSelector) -> T,
) -> CommandResult {
    select.check()?;
    let source = client.selected_one(select.source.as_deref()).await?;
    let path = ["sources", source.id.as_str(), "problems", how];
    let queued: ProblemAction = client.post(&path, &[], &action(select.about()), None).await?;
    say!(
        "queued as {}: the scheduler applies it before the next run of {}; start one with `thresher run submit {}`",
        queued.id,
        source.called(),
        source.called()
    )?;
    Ok(Exit::Good)
}

/// Writes the operator's action into all selected problems. Returns their subjects.
pub(crate) async fn apply(
    into: &str,
    select: &SelectArgs,
    action: &harvest::ProblemAction,
    is_meant: impl Fn(&Subject, &ProblemRecord) -> bool,
) -> Result<Vec<Subject>, Failed> {
    select.check()?;
    let instead = "Use its gateway (--server), or stop the fleet and pass --exclusive";
    let target = target::parse_to_write(into, select.exclusive, instead)?;
    // Reports a wrong --into, and creates nothing.
    let (_, sources) = target::find_sources(into, select.source.as_deref()).await?;
    let store = target::open_store(&target).await?;
    let mut selected = Vec::new();
    for note in sources {
        let catalog = target::open_catalog(&store, &note.source).await?;
        let wanted = |subject: &Subject, problem: &ProblemRecord| {
            select.take(subject, problem.reason) && is_meant(subject, problem)
        };
        let about = harvest::apply_problem_action(&catalog, &SystemClock, action, wanted).await;
        catalog.close().await?;
        selected.extend(about?);
    }
    Ok(selected)
}

/// Prints a remark about each given URI without a problem, and returns the exit status.
pub(crate) fn note_missed(select: &SelectArgs, selected: &[Subject], remark: &str) -> Exit {
    let known: HashSet<&str> = selected.iter().map(Subject::uri).collect();
    let mut exit = Exit::Good;
    for uri in select.uris.iter().filter(|uri| !known.contains(uri.as_str())) {
        note!("{uri}: {remark}");
        exit = Exit::Problems;
    }
    exit
}
