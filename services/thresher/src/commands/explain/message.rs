//! Shows a dead letter.

use model::{DeadLetterSummary, KeptPayload, ProblemRecord, Subject, bytes};
use serde::Serialize;

use super::history_text::Text;
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
        let ProblemRecord { reason, message, first_seen, last_seen, evidence, .. } = self.problem;
        let mut text = Text::about(&format!("message {}", self.message), self.source);
        text.section(format!("Problem: {reason}"));
        text.line(message);
        text.line(format!(
            "first seen {first_seen}, last seen {last_seen}; resolved by the next run that ends without it"
        ));
        if let Some(kept) = &evidence.given_up {
            payload(&mut text, kept);
        }
        text.finish()
    }
}

fn payload(text: &mut Text, kept: &DeadLetterSummary) {
    let form = match kept.payload {
        KeptPayload::Text(_) => "text",
        KeptPayload::Base64(_) => "base64",
    };
    text.line(format!("why: {}", kept.why));
    text.line(format!("met by run {}", kept.run));
    text.section(format!("Payload ({} in all; its beginning as {form})", bytes(kept.length)));
    text.lines(kept.payload.as_str().lines());
}
