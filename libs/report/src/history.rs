//! The history of a resource in words: each failed attempt, and the final result. The command line and the console
//! share these texts.

use model::{Attempt, ChangeEvent, ChangeLogEntry, Mirror, PatchUse, Provenance, Why, bytes};

/// The lines of one change log entry: the failed attempts before it, the event, and its cause.
pub fn lines(entry: &ChangeLogEntry) -> Vec<String> {
    let mut lines: Vec<String> = entry.account.tried.iter().map(attempt).collect();
    lines.push(format!("{}  {}", entry.at, what(&entry.event)));
    lines.push(format!("    {}", because(entry)));
    lines
}

/// The cause of an event: the document that requested it, and the run that did it.
pub fn because(entry: &ChangeLogEntry) -> String {
    let Provenance { why, change, as_of, mirror, patch, adopted, .. } = &entry.account;
    let change = change.map_or("listed".to_owned(), |change| change.to_string());
    let when = as_of.map_or(String::new(), |time| format!(" as of {time}"));
    let because = why.map_or(String::new(), |why| format!(", because {}", reason(why)));
    let from = mirror.as_ref().map_or(String::new(), |mirror| format!("; from the mirror {}", place(mirror)));
    let patched = patch.as_deref().map_or(String::new(), |used| format!("; {}", patched(used)));
    let adopted = adopted.as_ref().map_or(String::new(), |adopted| {
        format!(
            "; with the bytes of {}, stored at {}, which have its digest",
            adopted.from, adopted.stored_at
        )
    });
    format!("{change}{when} by {}{because}{from}{patched}{adopted}; run {}", entry.document, entry.run)
}

/// What became of the patches of a change.
fn patched(used: &PatchUse) -> String {
    match used {
        PatchUse::Applied { patches, bytes: received, saved } => {
            let urls: Vec<&str> = patches.iter().map(|url| url.as_str()).collect();
            let (received, saved) = (bytes(*received), bytes(*saved));
            format!(
                "made from the version before by the patch {} ({received}, {saved} saved)",
                urls.join(", then ")
            )
        }
        PatchUse::Unused(why) => format!("the patch was not applied ({why}): {}", why.text()),
    }
}

/// A mirror, with its priority if the link states one.
fn place(mirror: &Mirror) -> String {
    let pri = mirror.pri.map_or(String::new(), |pri| format!(", pri {pri}"));
    format!("{}{pri}", mirror.url)
}

/// A failed attempt, with its time.
pub fn attempt(attempt: &Attempt) -> String {
    format!("{}  {}", attempt.at, failed(attempt))
}

/// A failed attempt.
pub fn failed(attempt: &Attempt) -> String {
    let Attempt { reason, message, mirror, status, expected, computed, .. } = attempt;
    let at = mirror.as_ref().map_or(String::new(), |mirror| format!(" at the mirror {mirror}"));
    let seen = match (expected, computed, status) {
        (Some(expected), Some(computed), _) => format!("declared {expected}, received {computed}"),
        (_, _, Some(status)) => format!("HTTP status {status}"),
        _ => message.clone(),
    };
    format!("an attempt{at} failed ({reason}): {seen}")
}

/// The event.
pub fn what(event: &ChangeEvent) -> String {
    match event {
        ChangeEvent::Created { sha256 } => format!("stored and verified, sha-256 {sha256}"),
        ChangeEvent::Updated { sha256, before } => {
            format!("new version stored and verified, sha-256 {sha256} (before: {before})")
        }
        ChangeEvent::Confirmed { sha256 } => {
            format!("stored bytes confirmed, sha-256 {sha256}")
        }
        ChangeEvent::Deleted { absent: false } => "deleted by the Source".to_owned(),
        ChangeEvent::Deleted { absent: true } => "deleted: absent from the Source's lists".to_owned(),
        ChangeEvent::Healed { sha256, before } if sha256 == before => {
            format!("refetched and verified: the stored bytes were damaged, sha-256 {sha256}")
        }
        ChangeEvent::Healed { sha256, before } => format!(
            "refetched and verified: the stored bytes were doubtful, sha-256 {sha256} (before: {before})"
        ),
        ChangeEvent::Restored { sha256 } => format!("restored by the operator, sha-256 {sha256}"),
        ChangeEvent::Ignored { note } => format!("problem ignored by the operator: {note}"),
        ChangeEvent::Retried => "problem retried by the operator".to_owned(),
        ChangeEvent::VersionLost { sha256, from, until, message } => format!(
            "the version stored from {from} until {until} was damaged, and discarded, sha-256 {sha256}: {message}"
        ),
        ChangeEvent::Problem { reason, message } => format!("problem ({reason}): {message}"),
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::New => "it was not stored",
        Why::OtherDigest => "the declared digest is not the stored one",
        Why::OtherLength => "the declared length is not the stored one",
        Why::OtherLastmod => "the declared last modification changed",
        Why::NothingToCompare => "no declared digest or length could be compared",
        Why::Problem => "it was a problem before",
        Why::Repair => "the stored bytes were doubtful",
        Why::Deleted => "the Source deleted it",
        Why::DeletedPerhaps => {
            "unknown whether the deletion is newer than the stored version, so the server was asked"
        }
        Why::Absent => "absent from two lists",
        Why::Sample => "one of a sample: records may change without a new datestamp",
    }
}
