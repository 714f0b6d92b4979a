//! `thresher explain`: show the history of a resource, or a dead letter.

mod message;
mod versions;

use std::collections::BTreeMap;

use catalog::CatalogReader;
use futures::TryStreamExt;
use model::{
    Absence, Action, Assurance, Bitstream, ChangeLogEntry, Declaration, HomeSite, Listing, Location,
    PendingRecord, ProblemReason, ProblemRecord, ResourceRecord, ResourceUri, StoredBitstream, Subject,
    Version, bytes, counted, displayed,
};
use report::history;
use serde::Serialize;
use store::Key;

use super::problems;
use crate::cli::ExplainArgs;
use crate::client::{self, Kind, OperatorClient, ReadFrom};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, note};

/// All records of a resource, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Story {
    uri: ResourceUri,
    source: String,
    /// Whether it belongs to another site than the Source.
    foreign: bool,
    record: Option<ResourceRecord>,
    /// Kept versions, the oldest first.
    versions: Vec<Version>,
    pending: Option<PendingRecord>,
    problem: Option<ProblemRecord>,
    changes: Vec<ChangeLogEntry>,
    /// Documents that list it and are problems themselves.
    concerns: BTreeMap<String, ProblemRecord>,
    /// How many earlier events were left out.
    #[serde(skip)]
    left_out: u64,
}

/// Runs the command.
pub(crate) async fn run(args: ExplainArgs) -> CommandResult {
    terminal::text(&told(&args).await?)?;
    Ok(Exit::Good)
}

/// The text that the command prints.
pub(crate) async fn told(args: &ExplainArgs) -> Result<String, Failed> {
    let parsed: Result<ResourceUri, _> = args.uri.parse();
    let (uri, stories) = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => {
            let harvested = target::open_for_reading(&into).await?.only(args.source.as_deref())?;
            let uri = match parsed {
                Ok(uri) => uri,
                Err(error) => {
                    let told = message::told(&harvested, &args.uri, args.json).await?;
                    return told.ok_or_else(|| usage(error));
                }
            };
            let mut stories = Vec::new();
            for (note, catalog) in &harvested.sources {
                stories.push(gather(&note.url, catalog, &uri).await?);
            }
            (uri, stories)
        }
        ReadFrom::Gateway(client) => {
            let uri = parsed.map_err(usage)?;
            let stories = asked(&client, args.source.as_deref(), &uri).await?;
            (uri, stories)
        }
    };
    let mut told = String::new();
    for story in stories.iter().filter(|story| !story.is_empty()) {
        if story.left_out > 0 {
            let events = counted(story.left_out, "earlier event is", "earlier events are");
            note!("{events} left out; `thresher explain --into …` tells all");
        }
        if args.json {
            told += &terminal::json_line(story)?;
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
    let mut story = Story {
        uri: uri.clone(),
        source: source.to_owned(),
        foreign: HomeSite::of_text(source).is_foreign(uri.as_str()),
        record: catalog.resource(uri).await?,
        versions: catalog.versions(uri).await?.map(|versions| versions.kept).unwrap_or_default(),
        pending: catalog.pending(uri).await?,
        problem: catalog.problem(&Subject::Resource(uri.to_string())).await?,
        changes: catalog.changes_of(uri).await?.map_ok(|(_, entry)| entry).try_collect().await?,
        concerns: BTreeMap::new(),
        left_out: 0,
    };
    let Story { record, pending, problem, .. } = &story;
    for document in api::Story::documents(record.as_ref(), pending.as_ref(), problem.as_ref()) {
        if let Some(problem) = catalog.problem(&Subject::Document(document.clone())).await? {
            story.concerns.insert(document, problem);
        }
    }
    Ok(story)
}

/// The histories from a gateway: of the named Source, or of each that has one.
async fn asked(
    client: &OperatorClient,
    source: Option<&str>,
    uri: &ResourceUri,
) -> Result<Vec<Story>, Failed> {
    let mut stories = Vec::new();
    for about in client.selected(source).await? {
        let path = ["sources", about.id.as_str(), "resources", "story"];
        let story = client.get::<api::Story>(&path, &[("uri", uri.to_string())]).await;
        // This command reports itself that nothing is known of a resource, with either client.
        let story = match story {
            Err(error) if error.kind == Kind::Absent => continue,
            story => story?,
        };
        stories.push(Story {
            uri: uri.clone(),
            foreign: HomeSite::of_text(&about.entry).is_foreign(uri.as_str()),
            source: about.entry,
            record: story.record,
            versions: story.versions,
            pending: story.pending,
            problem: story.problem,
            changes: story.changes.into(),
            concerns: story.concerns,
            left_out: story.changes_left_out,
        });
    }
    Ok(stories)
}

impl Story {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.pending.is_none() && self.problem.is_none() && self.changes.is_empty()
    }

    fn tell(&self) -> String {
        let mut lines = vec![self.uri.to_string(), format!("  of the Source {}", self.source)];
        if self.foreign {
            lines.push(
                "  which is another site: what it gave need not be what the owner of this URI has".to_owned(),
            );
        }
        lines.push(String::new());
        lines.push("History".to_owned());
        lines.extend(self.changes.iter().flat_map(history::told).map(|line| format!("  {line}")));
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
                lines.push(self.absent(absence));
            }
        }
        if !self.versions.is_empty() {
            lines.push(String::new());
            lines.push("Kept versions".to_owned());
            lines.extend(versions::told(&self.versions).map(|line| format!("  {line}")));
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
            lines.extend(pending.account.tried.iter().map(|tried| format!("  {}", history::attempt(tried))));
            if let Some(next) = pending.next_attempt_at {
                let attempts = counted(pending.attempts.into(), "attempt", "attempts");
                lines.push(format!("  {attempts} failed; the next is due at {next}"));
            }
        }
        if let Some(problem) = &self.problem {
            lines.push(String::new());
            lines.push(format!("Problem: {}", problem.reason));
            lines.push(format!("  {}", problem.message));
            lines.push(format!(
                "  first seen {}, last seen {}, {}; {}",
                problem.first_seen,
                problem.last_seen,
                counted(problem.attempts.into(), "attempt", "attempts"),
                problems::next(false, problem.ignored.as_ref(), problem.next_attempt_at)
            ));
            if problem.mend {
                lines.push("  what is held of it is not to be relied on, and is to be replaced".to_owned());
            }
            lines.extend(problems::evidence(&problem.evidence).iter().map(|line| format!("  {line}")));
            if let Some(kept) = &problem.evidence.candidate {
                lines.extend(candidate(kept));
                lines.push(
                    "  it is not served, because no list has declared it yet: the next one that declares its digest makes it \
                     current without another request, one that declares another has it fetched anew"
                        .to_owned(),
                );
            }
        }
        for (document, problem) in &self.concerns {
            lines.push(String::new());
            lines.push(format!("Concerns it: {} is a problem ({})", document, problem.reason));
            lines.push(format!("  {}", problem.message));
        }
        lines.iter().map(|line| displayed(line).into_owned() + "\n").collect()
    }

    /// Absence alone deletes nothing.
    fn absent(&self, absence: &Absence) -> String {
        let guard = self.concerns.iter().any(|(document, problem)| {
            *document == absence.document && problem.reason == ProblemReason::Guard
        });
        let kept = match guard {
            true => "the guard keeps it, since too many would go at once",
            false => "it is kept until a later list confirms that",
        };
        format!("  {} did not name it any more, seen {}; {kept}", absence.document, absence.seen_at)
    }
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
        format!("  {}, stored {}: {proof}", bytes(bitstream.computed.length()), bitstream.stored_at),
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
        Some(span) => format!("{key}, {} at {}", bytes(span.stored_length), span.offset),
    }
}

/// The candidate that waits for a list that declares it.
fn candidate(kept: &StoredBitstream) -> Vec<String> {
    let modified = kept.modified.map_or(String::new(), |time| format!(", last modified {time}"));
    let length = bytes(kept.computed.length());
    let mut lines = vec![format!("  kept as a candidate: {length}{modified}")];
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
