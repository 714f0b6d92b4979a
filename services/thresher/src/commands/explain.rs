//! `thresher explain`: the story of one resource, or of a message that was given up.

mod message;

use catalog::CatalogReader;
use futures::TryStreamExt;
use model::{
    Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Listing, Location, PendingRecord,
    ProblemRecord, ResourceRecord, ResourceUri, StoredBitstream, Subject,
};
use serde::Serialize;
use store::Key;

use crate::cli::ExplainArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;

/// All that is known of a resource, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Story {
    uri: ResourceUri,
    source: String,
    record: Option<ResourceRecord>,
    pending: Option<PendingRecord>,
    problem: Option<ProblemRecord>,
    changes: Vec<ChangeLogEntry>,
}

/// Runs the command.
pub(crate) async fn run(args: ExplainArgs) -> CommandResult {
    print!("{}", told(&args).await?);
    Ok(Exit::Good)
}

/// What the command prints.
pub(crate) async fn told(args: &ExplainArgs) -> Result<String, Failed> {
    let harvested = target::open_for_reading(&args.resource.harvest.into).await?;
    let uri: ResourceUri = match args.resource.uri.parse() {
        Ok(uri) => uri,
        Err(error) => {
            let told = message::told(&harvested, &args.resource.uri, args.json).await?;
            return told.ok_or_else(|| usage(error));
        }
    };
    let mut told = String::new();
    for (note, catalog) in &harvested.sources {
        let story = gather(&note.url, catalog, &uri).await?;
        if story.is_empty() {
            continue;
        }
        if args.json {
            told += &(serde_json::to_string(&story)? + "\n");
        } else {
            told += &story.tell();
        }
    }
    if told.is_empty() {
        let error = anyhow::anyhow!(
            "nothing is known of {uri}: no document that was read has listed it. Mind that URIs are compared as the Source \
             writes them; `thresher ls` shows those"
        );
        return Err(Failed { exit: Exit::Problems, error });
    }
    Ok(told)
}

async fn gather(source: &str, catalog: &CatalogReader, uri: &ResourceUri) -> Result<Story, Failed> {
    Ok(Story {
        uri: uri.clone(),
        source: source.to_owned(),
        record: catalog.resource(uri).await?,
        pending: catalog.pending(uri).await?,
        problem: catalog.problem(&Subject::Resource(uri.to_string())).await?,
        changes: catalog.changes_of(uri).await?.map_ok(|(_, entry)| entry).try_collect().await?,
    })
}

impl Story {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.pending.is_none() && self.problem.is_none() && self.changes.is_empty()
    }

    fn tell(&self) -> String {
        let mut lines = vec![self.uri.to_string(), format!("  of the Source {}", self.source), String::new()];
        lines.push("History".to_owned());
        lines.extend(self.changes.iter().map(|entry| format!("  {}", history(entry))));
        if self.changes.is_empty() {
            lines.push("  nothing has happened to it here yet".to_owned());
        }
        if let Some(record) = &self.record {
            lines.push(String::new());
            lines.push("Held".to_owned());
            match &record.bitstream {
                Some(bitstream) => lines.extend(held(bitstream)),
                None => lines.push(gone(record)),
            }
            lines.extend(listed(&record.listing));
            lines.extend(declared(&record.declaration));
            if let Some(absence) = &record.absent {
                lines.push(format!(
                    "  {} did not name it any more, seen {}; it is kept until a later list confirms that",
                    absence.document, absence.seen_at
                ));
            }
        }
        if let Some(pending) = &self.pending {
            lines.push(String::new());
            lines.push(match pending.action {
                Action::Fetch { .. } if pending.mend => "Pending: what is held is to be replaced".to_owned(),
                Action::Fetch { .. } => "Pending: to be brought in step".to_owned(),
                Action::Delete => "Pending: to be deleted".to_owned(),
            });
            lines.extend(listed(&pending.listing));
            lines.extend(declared(&pending.declaration));
            lines.extend(pending.candidate.iter().flat_map(|kept| candidate(kept)));
            if let Some(next) = pending.next_attempt_at {
                lines.push(format!("  {} attempts failed; the next is due at {next}", pending.attempts));
            }
        }
        if let Some(problem) = &self.problem {
            lines.push(String::new());
            lines.push(format!("Problem: {}", problem.reason));
            lines.push(format!("  {}", problem.message));
            lines.push(format!(
                "  first seen {}, last seen {}, {} attempts; the next run tries it again",
                problem.first_seen, problem.last_seen, problem.attempts
            ));
            if problem.mend {
                lines.push("  what is held of it is not to be relied on, and is to be replaced".to_owned());
            }
            lines.extend(problem.evidence.status.map(|status| format!("  HTTP status {status}")));
            lines.extend(problem.evidence.redirects.iter().map(|url| format!("  sent on by {url}")));
            lines.extend(problem.evidence.final_url.iter().map(|url| format!("  answered by {url}")));
            lines.extend(problem.evidence.expected.iter().map(|value| format!("  declared {value}")));
            lines.extend(problem.evidence.computed.iter().map(|value| format!("  received {value}")));
            if let Some(kept) = &problem.evidence.candidate {
                lines.extend(candidate(kept));
                lines.push(
                    "  it is not served, because no list has declared it yet: the next one that declares its digest makes it \
                     current without another request, one that declares another has it fetched anew"
                        .to_owned(),
                );
            }
        }
        lines.join("\n") + "\n"
    }
}

fn history(entry: &ChangeLogEntry) -> String {
    let what = match &entry.event {
        ChangeEvent::Created { sha256 } => format!("stored and verified, sha-256 {sha256}"),
        ChangeEvent::Updated { sha256, before } => {
            format!("new version stored and verified, sha-256 {sha256} (before: {before})")
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
        ChangeEvent::Problem { reason, message } => format!("problem ({reason}): {message}"),
    };
    format!("{}  {what}\n      asked for by {}, in run {}", entry.at, entry.document, entry.run)
}

fn gone(record: &ResourceRecord) -> String {
    let what = match (&record.deleted, record.collected) {
        (Some(_), _) => "; what was held of it is kept, and can be restored until `thresher gc` gives it up",
        (None, Some(at)) => &format!("; `thresher gc` gave its bytes up at {at}, so it cannot be restored"),
        (None, None) => "",
    };
    format!("  nothing: the Source deleted it{what}")
}

fn held(bitstream: &Bitstream) -> Vec<String> {
    let proof = match bitstream.assurance {
        Assurance::Digest => "its digest is the one declared",
        Assurance::Length => "its length is the one declared; no digest was declared",
        Assurance::None => "nothing was declared that could be compared",
    };
    let mut lines = vec![
        format!("  {} bytes, stored {}: {proof}", bitstream.computed.length(), bitstream.stored_at),
        format!("  lies in {}", place(&bitstream.location)),
    ];
    lines.extend(bitstream.computed.digests().iter().map(|digest| format!("  computed {digest}")));
    lines.extend(bitstream.final_url.iter().map(|url| format!("  came from {url}, where it was sent on to")));
    lines.extend(bitstream.media_type.iter().map(|media_type| format!("  served as {media_type}")));
    lines
}

fn place(location: &Location) -> String {
    let key = Key::of(location);
    match location.span() {
        None => key.to_string(),
        Some(span) => format!("{key}, {} bytes at {}", span.stored_length, span.offset),
    }
}

/// What was received and waits for a list that declares it.
fn candidate(kept: &StoredBitstream) -> Vec<String> {
    let modified = kept.modified.map_or(String::new(), |time| format!(", last modified {time}"));
    let length = kept.computed.length();
    let mut lines = vec![format!("  kept as a candidate: {length} bytes{modified}")];
    lines.push(format!("  the candidate lies in {}", place(&kept.location)));
    lines.extend(kept.computed.digests().iter().map(|digest| format!("  the candidate has {digest}")));
    lines
}

fn listed(listing: &Listing) -> Vec<String> {
    let change = listing.change.map_or("listed".to_owned(), |change| change.to_string());
    let when = listing.change_time.or(listing.as_of).map_or(String::new(), |time| format!(" as of {time}"));
    vec![format!("  {change}{when} by {}", listing.document)]
}

fn declared(declaration: &Declaration) -> Vec<String> {
    let mut lines: Vec<String> =
        declaration.digests.iter().map(|digest| format!("  declared {digest}")).collect();
    lines.extend(declaration.unjudged.iter().map(|value| format!("  declared {value} (cannot be judged)")));
    lines.extend(declaration.length.map(|length| format!("  declared length {length}")));
    lines.extend(declaration.lastmod.map(|lastmod| format!("  last modified {lastmod}")));
    lines
}
