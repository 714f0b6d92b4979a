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
struct ResourceHistory {
    uri: ResourceUri,
    source: String,
    /// Whether it belongs to another site than the Source.
    foreign: bool,
    record: Option<ResourceRecord>,
    /// Kept versions, the oldest first.
    versions: Vec<Version>,
    pending: Option<PendingRecord>,
    problem: Option<ProblemRecord>,
    events: Vec<ChangeLogEntry>,
    /// Documents that list it and are problems themselves.
    document_problems: BTreeMap<String, ProblemRecord>,
    /// How many earlier events were left out.
    #[serde(skip)]
    left_out: u64,
}

/// Runs the command.
pub(crate) async fn run(args: ExplainArgs) -> CommandResult {
    terminal::text(&text(&args).await?)?;
    Ok(Exit::Good)
}

/// The text that the command prints.
pub(crate) async fn text(args: &ExplainArgs) -> Result<String, Failed> {
    let parsed: Result<ResourceUri, _> = args.uri.parse();
    let (uri, histories) = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => {
            let harvested = target::open_for_reading(&into).await?.only(args.source.as_deref())?;
            let uri = match parsed {
                Ok(uri) => uri,
                Err(error) => {
                    let text = message::text(&harvested, &args.uri, args.json).await?;
                    return text.ok_or_else(|| usage(error));
                }
            };
            let mut histories = Vec::new();
            for (note, catalog) in &harvested.sources {
                histories.push(gather(&note.url, catalog, &uri).await?);
            }
            (uri, histories)
        }
        ReadFrom::Gateway(client) => {
            let uri = parsed.map_err(usage)?;
            let histories = from_gateway(&client, args.source.as_deref(), &uri).await?;
            (uri, histories)
        }
    };
    let mut text = String::new();
    for history in histories.iter().filter(|history| !history.is_empty()) {
        if history.left_out > 0 {
            let events = counted(history.left_out, "earlier event is", "earlier events are");
            note!("{events} left out; `thresher explain --into …` shows all");
        }
        if args.json {
            text += &terminal::json_line(history)?;
        } else {
            text += &history.text();
        }
    }
    if text.is_empty() {
        let error = anyhow::anyhow!(
            "{uri} is unknown: no document that was read has listed it. URIs are compared as the Source \
             writes them; `thresher ls` shows those"
        );
        return Err(Failed { exit: Exit::Problems, error });
    }
    Ok(text)
}

async fn gather(source: &str, catalog: &CatalogReader, uri: &ResourceUri) -> Result<ResourceHistory, Failed> {
    let mut history = ResourceHistory {
        uri: uri.clone(),
        source: source.to_owned(),
        foreign: HomeSite::of_text(source).is_foreign(uri.as_str()),
        record: catalog.resource(uri).await?,
        versions: catalog.versions(uri).await?.map(|versions| versions.kept).unwrap_or_default(),
        pending: catalog.pending(uri).await?,
        problem: catalog.problem(&Subject::Resource(uri.to_string())).await?,
        events: catalog.changes_of(uri).await?.map_ok(|(_, entry)| entry).try_collect().await?,
        document_problems: BTreeMap::new(),
        left_out: 0,
    };
    let ResourceHistory { record, pending, problem, .. } = &history;
    for document in api::ResourceHistory::documents(record.as_ref(), pending.as_ref(), problem.as_ref()) {
        if let Some(problem) = catalog.problem(&Subject::Document(document.clone())).await? {
            history.document_problems.insert(document, problem);
        }
    }
    Ok(history)
}

/// The histories from a gateway: of the named Source, or of each that has one.
async fn from_gateway(
    client: &OperatorClient,
    source: Option<&str>,
    uri: &ResourceUri,
) -> Result<Vec<ResourceHistory>, Failed> {
    let mut histories = Vec::new();
    for about in client.selected(source).await? {
        let path = ["sources", about.id.as_str(), "resources", "history"];
        let history = client.get::<api::ResourceHistory>(&path, &[("uri", uri.to_string())]).await;
        // This command reports itself that nothing is known of a resource, with either client.
        let history = match history {
            Err(error) if error.kind == Kind::Absent => continue,
            history => history?,
        };
        histories.push(ResourceHistory {
            uri: uri.clone(),
            foreign: HomeSite::of_text(&about.entry).is_foreign(uri.as_str()),
            source: about.entry,
            record: history.record,
            versions: history.versions,
            pending: history.pending,
            problem: history.problem,
            events: history.events.into(),
            document_problems: history.document_problems,
            left_out: history.events_omitted,
        });
    }
    Ok(histories)
}

impl ResourceHistory {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.pending.is_none() && self.problem.is_none() && self.events.is_empty()
    }

    fn text(&self) -> String {
        let mut lines = vec![self.uri.to_string(), format!("  of the Source {}", self.source)];
        if self.foreign {
            lines.push(
                "  which is another site: its bytes may differ from those of the URI's owner".to_owned(),
            );
        }
        lines.push(String::new());
        lines.push("History".to_owned());
        lines.extend(self.events.iter().flat_map(history::told).map(|line| format!("  {line}")));
        if self.events.is_empty() {
            lines.push("  no events yet".to_owned());
        }
        if let Some(record) = &self.record {
            lines.push(String::new());
            lines.push("Stored".to_owned());
            match &record.bitstream {
                Some(bitstream) => lines.extend(stored(bitstream)),
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
            lines.extend(versions::lines(&self.versions).map(|line| format!("  {line}")));
        }
        if let Some(pending) = &self.pending {
            lines.push(String::new());
            lines.push(match pending.action {
                Action::Fetch { .. } if pending.mend => "Pending: to be refetched and replaced".to_owned(),
                Action::Fetch { .. } => "Pending: to be fetched".to_owned(),
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
                lines.push("  its stored bytes are doubtful, and are to be replaced".to_owned());
            }
            lines.extend(problems::evidence(&problem.evidence).iter().map(|line| format!("  {line}")));
            if let Some(kept) = &problem.evidence.candidate {
                lines.extend(candidate(kept));
                lines.push(
                    "  it is not served, because no list has declared it yet. A list that declares its digest makes it \
                     current without another request; a list that declares another one starts a new fetch"
                        .to_owned(),
                );
            }
        }
        for (document, problem) in &self.document_problems {
            lines.push(String::new());
            lines.push(format!("Document problem: {} ({})", document, problem.reason));
            lines.push(format!("  {}", problem.message));
        }
        lines.iter().map(|line| displayed(line).into_owned() + "\n").collect()
    }

    /// Absence alone deletes nothing.
    fn absent(&self, absence: &Absence) -> String {
        let guard = self.document_problems.iter().any(|(document, problem)| {
            *document == absence.document && problem.reason == ProblemReason::Guard
        });
        let kept = if guard { "the deletion guard keeps it" } else { "kept until a later list confirms it" };
        format!("  absent from {}, seen {}; {kept}", absence.document, absence.seen_at)
    }
}

fn gone(record: &ResourceRecord) -> String {
    let what = match (&record.deleted, record.collected) {
        (Some(_), _) => "; its bytes can be restored until `thresher gc` removes them",
        (None, Some(at)) => &format!("; `thresher gc` removed its bytes at {at}, so it cannot be restored"),
        (None, None) => "",
    };
    format!("  nothing: the Source deleted it{what}")
}

fn stored(bitstream: &Bitstream) -> Vec<String> {
    let proof = match bitstream.assurance {
        Assurance::Digest => "its digest matches the declared one",
        Assurance::Length => "its length matches the declared one; no digest was declared",
        Assurance::None => "no digest or length was declared",
    };
    let mut lines = vec![
        format!("  {}, stored {}: {proof}", bytes(bitstream.computed.length()), bitstream.stored_at),
        format!("  stored at {}", place(&bitstream.location)),
    ];
    lines.extend(bitstream.computed.digests().iter().map(|digest| format!("  computed {digest}")));
    lines.extend(bitstream.final_url.iter().map(|url| format!("  final URL {url}")));
    lines.extend(bitstream.media_type.iter().map(|media_type| format!("  media type {media_type}")));
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
    lines.push(format!("  the candidate is stored at {}", place(&kept.location)));
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
    lines.extend(declaration.unjudged.iter().map(|value| format!("  declared {value} (unsupported)")));
    lines.extend(declaration.length.map(|length| format!("  declared length {length}")));
    lines.extend(declaration.lastmod.map(|lastmod| format!("  last modified {lastmod}")));
    lines
}
