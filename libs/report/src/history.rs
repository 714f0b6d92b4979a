//! The history of a resource in words: each failed attempt, and the final result. The command line and the console
//! share these texts.

use model::{Account, Attempt, ChangeEvent, ChangeLogEntry, Why};

/// The lines of one change log entry: the failed attempts before it, the event, and its cause.
pub fn told(entry: &ChangeLogEntry) -> Vec<String> {
    let mut lines: Vec<String> = entry.account.tried.iter().map(attempt).collect();
    lines.push(format!("{}  {}", entry.at, what(&entry.event)));
    lines.push(format!("    {}", because(entry)));
    lines
}

/// The cause of an event: the document that requested it, and the run that did it.
pub fn because(entry: &ChangeLogEntry) -> String {
    let Account { why, change, as_of, .. } = &entry.account;
    let change = change.map_or("listed".to_owned(), |change| change.to_string());
    let when = as_of.map_or(String::new(), |time| format!(" as of {time}"));
    let because = why.map_or(String::new(), |why| format!(", and {}", reason(why)));
    format!("{change}{when} by {}{because}; run {}", entry.document, entry.run)
}

/// A failed attempt, with its time.
pub fn attempt(attempt: &Attempt) -> String {
    format!("{}  {}", attempt.at, failed(attempt))
}

/// A failed attempt.
pub fn failed(attempt: &Attempt) -> String {
    let Attempt { reason, message, status, expected, computed, .. } = attempt;
    let seen = match (expected, computed, status) {
        (Some(expected), Some(computed), _) => format!("declared {expected}, received {computed}"),
        (_, _, Some(status)) => format!("HTTP status {status}"),
        _ => message.clone(),
    };
    format!("an attempt failed ({reason}): {seen}")
}

/// The event.
pub fn what(event: &ChangeEvent) -> String {
    match event {
        ChangeEvent::Created { sha256 } => format!("stored and verified, sha-256 {sha256}"),
        ChangeEvent::Updated { sha256, before } => {
            format!("new version stored and verified, sha-256 {sha256} (before: {before})")
        }
        ChangeEvent::Confirmed { sha256 } => {
            format!("what is held was found to be what the Source has, sha-256 {sha256}")
        }
        ChangeEvent::Deleted { absent: false } => "deleted, as the Source says".to_owned(),
        ChangeEvent::Deleted { absent: true } => {
            "deleted: its Source's lists do not name it any more".to_owned()
        }
        ChangeEvent::Healed { sha256, before } if sha256 == before => {
            format!("fetched and verified anew, since what was held was damaged, sha-256 {sha256}")
        }
        ChangeEvent::Healed { sha256, before } => format!(
            "fetched and verified anew, since what was held was not to be relied on, sha-256 {sha256} (before: {before})"
        ),
        ChangeEvent::Restored { sha256 } => format!("restored by the operator, sha-256 {sha256}"),
        ChangeEvent::Ignored { note } => format!("its problem is ignored by the operator: {note}"),
        ChangeEvent::Retried => "the operator had its problem tried again".to_owned(),
        ChangeEvent::VersionLost { sha256, from, until, message } => format!(
            "the version held from {from} until {until} was found damaged and given up, sha-256 {sha256}: {message}"
        ),
        ChangeEvent::Problem { reason, message } => format!("problem ({reason}): {message}"),
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::New => "nothing was held of it",
        Why::OtherDigest => "declared with another digest than that of what was held",
        Why::OtherLength => "declared with another length than that of what was held",
        Why::OtherLastmod => "declared with another last modification than before",
        Why::NothingToCompare => "nothing was declared that could be compared with what was held",
        Why::Problem => "tried again, since it was a problem before",
        Why::Mend => "what was held of it was not to be relied on",
        Why::Deleted => "the Source says it deleted it",
        Why::DeletedPerhaps => {
            "nobody could tell whether it was deleted before what was held, so the server was asked"
        }
        Why::Absent => "not named any more for the second time",
    }
}
