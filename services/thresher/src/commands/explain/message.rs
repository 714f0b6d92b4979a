//! Shows a dead letter.

use model::{DeadLetterSummary, KeptPayload, ProblemRecord, Subject, bytes, displayed};
use serde::Serialize;

use crate::exit::Failed;
use crate::target::OpenHarvest;
use crate::terminal;

/// All records of a message, as `--json` prints them.
#[derive(Debug, Serialize)]
struct MessageHistory<'a> {
    message: &'a str,
    source: &'a str,
    problem: &'a ProblemRecord,
}

/// The history of the message called `name`; None if no problem is recorded with it.
pub(super) async fn text(harvested: &OpenHarvest, name: &str, json: bool) -> Result<Option<String>, Failed> {
    let mut all = None;
    for (note, catalog) in &harvested.sources {
        let Some(problem) = catalog.problem(&Subject::Message(name.to_owned())).await? else { continue };
        let history = MessageHistory { message: name, source: &note.url, problem: &problem };
        let text = if json { terminal::json_line(&history)? } else { history.text() };
        *all.get_or_insert_with(String::new) += &text;
    }
    Ok(all)
}

impl MessageHistory<'_> {
    fn text(&self) -> String {
        let Self { message, source, problem } = self;
        let mut lines =
            vec![format!("message {message}"), format!("  of the Source {source}"), String::new()];
        lines.push(format!("Problem: {}", problem.reason));
        lines.push(format!("  {}", problem.message));
        lines.push(format!(
            "  first seen {}, last seen {}; resolved by the next run that ends without it",
            problem.first_seen, problem.last_seen
        ));
        if let Some(kept) = &problem.evidence.given_up {
            lines.extend(payload(kept));
        }
        lines.iter().map(|line| displayed(line).into_owned() + "\n").collect()
    }
}

fn payload(kept: &DeadLetterSummary) -> Vec<String> {
    let form = match kept.payload {
        KeptPayload::Text(_) => "text",
        KeptPayload::Base64(_) => "base64",
    };
    let mut lines = vec![format!("  why: {}", kept.why), format!("  met by run {}", kept.run), String::new()];
    lines.push(format!("Payload ({} in all; its beginning as {form})", bytes(kept.length)));
    lines.extend(kept.payload.as_str().lines().map(|line| format!("  {line}")));
    lines
}
