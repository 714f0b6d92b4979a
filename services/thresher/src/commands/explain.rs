//! `thresher explain`: show the history of a resource, or a dead letter.

mod content;
mod copies;
mod history_text;
mod landing;
mod message;
mod pairs;

use std::collections::BTreeMap;

use catalog::CatalogReader;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{
    ChangeLogEntry, HomeSite, PendingRecord, ProblemRecord, ResourceRecord, ResourceUri, SourceId, Subject,
    Version, counted,
};
use serde::Serialize;
use store::SourceMove;

use crate::cli::ExplainArgs;
use crate::client::{self, OperatorClient, ReadFrom};
use crate::client_error::Kind;
use crate::exit::{CommandResult, Exit, Failed, problem, usage};
use crate::oai_header::OaiHeader;
use crate::target;
use crate::terminal::{self, note};
use pairs::Pairs;

/// All records of a resource, as `--json` prints them.
#[derive(Debug, Serialize)]
struct ResourceHistory {
    uri: ResourceUri,
    source: String,
    /// Whether it belongs to another site than the Source.
    foreign: bool,
    /// The header of the record that it is, of an OAI-PMH repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    oai: Option<OaiHeader>,
    /// What the metadata of that record names; empty where a gateway was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    named: Vec<content::Named>,
    /// The landing page that was asked for its files; none where a gateway was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    landing_page: Option<landing::LandingPage>,
    /// The URLs that the Source was harvested from before, the latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    formerly: Vec<Formerly>,
    record: Option<ResourceRecord>,
    /// Kept versions, the oldest first.
    versions: Vec<Version>,
    pending: Option<PendingRecord>,
    problem: Option<ProblemRecord>,
    events: Vec<ChangeLogEntry>,
    /// Documents that list it and are problems themselves.
    document_problems: BTreeMap<String, ProblemRecord>,
    /// What it is linked with. A gateway tells what its links lead to, and does not search for links to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<pairs::Pairs>,
    /// All copies of its origin in the store, if there are others; none where a gateway was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<copies::Copies>,
    /// How many earlier events were left out.
    #[serde(skip)]
    left_out: u64,
}

/// An earlier URL of a Source.
#[derive(Debug, Serialize)]
struct Formerly {
    url: String,
    /// When it was moved.
    until: Timestamp,
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
            let harvested = target::open_for_reading(&into, args.source.as_deref()).await?;
            let uri = match parsed {
                Ok(uri) => uri,
                Err(error) => {
                    let text = message::text(&harvested, &args.uri, args.json).await?;
                    return text.ok_or_else(|| usage(error));
                }
            };
            let mut histories = Vec::new();
            let moves = harvested.store.moves().await?;
            for (note, catalog) in &harvested.sources {
                let formerly = formerly(&moves, &note.source);
                let history = gather(&note.url, catalog, &uri).await?;
                let named = match &history.oai {
                    Some(_) => content::of(&harvested.store, history.record.as_ref()).await,
                    None => Vec::new(),
                };
                let copies = copies::of(&harvested.sources, history.record.as_ref()).await?;
                histories.push(ResourceHistory { formerly, named, copies, ..history });
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
            text += &history_text::of(history);
        }
    }
    if text.is_empty() {
        return Err(problem(format!(
            "{uri} is unknown: no document that was read has listed it. URIs are compared as the Source \
             writes them; `thresher ls` shows those"
        )));
    }
    Ok(text)
}

/// The earlier URLs of a Source.
fn formerly(moves: &[SourceMove], source: &SourceId) -> Vec<Formerly> {
    let mut all = Vec::new();
    let mut of = source;
    while all.len() <= moves.len()
        && let Some(moved) = moves.iter().find(|moved| moved.to == *of)
    {
        all.push(Formerly { url: target::shown_url(&moved.url), until: moved.at });
        of = &moved.source;
    }
    all
}

async fn gather(source: &str, catalog: &CatalogReader, uri: &ResourceUri) -> Result<ResourceHistory, Failed> {
    let mut history = ResourceHistory {
        uri: uri.clone(),
        source: source.to_owned(),
        foreign: HomeSite::of_text(source).is_foreign(uri.as_str()),
        oai: None,
        named: Vec::new(),
        landing_page: None,
        formerly: Vec::new(),
        record: catalog.resource(uri).await?,
        versions: catalog.versions(uri).await?.map(|versions| versions.kept).unwrap_or_default(),
        pending: catalog.pending(uri).await?,
        problem: catalog.problem(&Subject::Resource(uri.to_string())).await?,
        events: catalog.changes_of(uri).await?.map_ok(|(_, entry)| entry).try_collect().await?,
        document_problems: BTreeMap::new(),
        pairs: None,
        copies: None,
        left_out: 0,
    };
    if !history.is_empty() {
        let pairs = pairs::of(catalog, uri, history.record.as_ref()).await?;
        history.pairs = Some(pairs).filter(|pairs| !pairs.is_empty());
    }
    history.oai = header(uri, history.record.as_ref());
    if history.oai.is_some() {
        history.landing_page = landing::of(catalog, uri, history.record.as_ref()).await?;
    }
    let ResourceHistory { record, pending, problem, .. } = &history;
    for document in api::ResourceHistory::documents(record.as_ref(), pending.as_ref(), problem.as_ref()) {
        if let Some(problem) = catalog.problem(&Subject::Document(document.clone())).await? {
            history.document_problems.insert(document, problem);
        }
    }
    Ok(history)
}

/// The header of a record of an OAI-PMH repository.
fn header(uri: &ResourceUri, record: Option<&ResourceRecord>) -> Option<OaiHeader> {
    OaiHeader::of(uri.as_str(), record.and_then(|record| record.listing.links.as_ref()))
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
            oai: header(uri, history.record.as_ref()),
            named: Vec::new(),
            landing_page: None,
            formerly: Vec::new(),
            record: history.record,
            versions: history.versions,
            pending: history.pending,
            problem: history.problem,
            events: history.events.into(),
            document_problems: history.document_problems,
            pairs: Some(Pairs::of_gateway(history.link_ends)).filter(|pairs| !pairs.is_empty()),
            copies: None,
            left_out: history.events_omitted,
        });
    }
    Ok(histories)
}

impl ResourceHistory {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.pending.is_none() && self.problem.is_none() && self.events.is_empty()
    }
}
