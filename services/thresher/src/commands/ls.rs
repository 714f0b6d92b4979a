//! `thresher ls`: list resources and their state.

use std::pin::{Pin, pin};

use api::Resource;
use catalog::{CatalogError, CatalogReader, ResourceSummary};
use futures::stream::{self, Peekable};
use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use model::{Bitstream, HomeSite, Location, ResourceRecord, ResourceState, ResourceUri};
use serde::Serialize;

use crate::cli::LsArgs;
use crate::client::{self, OperatorClient, ReadFrom, SourceRef};
use crate::commands::moment::{self, At};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::Out;

/// One resource, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) uri: String,
    pub(crate) state: ResourceState,
    pub(crate) length: Option<u64>,
    pub(crate) sha256: Option<String>,
    /// The Content-Encoding of the stored bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) encoding: Option<String>,
    pub(crate) change_time: Option<jiff::Timestamp>,
    pub(crate) stored_at: Option<jiff::Timestamp>,
    pub(crate) location: Option<Location>,
    /// Whether it belongs to another site than the Source.
    pub(crate) foreign: bool,
}

/// Runs the command.
pub(crate) async fn run(args: LsArgs) -> CommandResult {
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let mut out = Output { out: Out::new(), json: args.json };
    let into = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(_) if args.at.is_some() => {
            return Err(usage("a gateway has no --at; pass --into too"));
        }
        ReadFrom::Gateway(client) => {
            for about in client.selected(args.source.as_deref()).await? {
                list_from_gateway(&client, &about, prefix, &mut out).await?;
            }
            out.out.finish()?;
            return Ok(Exit::Good);
        }
    };
    let harvested = target::open_for_reading(&into).await?.only(args.source.as_deref())?;
    for (note, catalog) in &harvested.sources {
        let home = HomeSite::of_text(&note.url);
        let lines = match args.at {
            Some(moment) => stored_at_moment(catalog, prefix, moment).await?.left_stream(),
            None => {
                catalog.scan_known(Some(prefix), None).await?.map_ok(|known| Line::of(&known)).right_stream()
            }
        };
        let mut lines = pin!(lines);
        while let Some(line) = lines.try_next().await? {
            out.line(&line.marked(&home))?;
        }
    }
    out.out.finish()?;
    Ok(Exit::Good)
}

/// The target of the lines.
struct Output {
    out: Out,
    json: bool,
}

impl Output {
    fn line(&mut self, line: &Line) -> Result<(), Failed> {
        if self.json { Ok(self.out.json(line)?) } else { Ok(self.out.line(&line.text())?) }
    }
}

/// Lists a Source's resources from a gateway, a page at a time.
async fn list_from_gateway(
    client: &OperatorClient,
    about: &SourceRef,
    prefix: &str,
    out: &mut Output,
) -> Result<(), Failed> {
    let path = ["sources", about.id.as_str(), "resources"];
    let query = [("prefix", prefix.to_owned())];
    let home = HomeSite::of_text(&about.entry);
    let mut cursor = None;
    loop {
        let page = client.page::<Resource>(&path, &query, cursor).await;
        let Some(page) = about.found(page)? else { return Ok(()) };
        for resource in page.items {
            out.line(&Line::from(resource).marked(&home))?;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Lists the versions at a moment, as far as they are kept.
async fn stored_at_moment<'a>(
    catalog: &'a CatalogReader,
    prefix: &'a str,
    moment: Timestamp,
) -> Result<impl Stream<Item = Result<Line, CatalogError>> + 'a, CatalogError> {
    let resources = catalog.scan_resources(Some(prefix), None).await?;
    let versions = Box::pin(catalog.scan_versions(Some(prefix)).await?.peekable());
    let streams = (resources, versions);
    let lines = stream::try_unfold(streams, move |(mut resources, mut versions)| async move {
        while let Some((uri, record)) = resources.try_next().await? {
            // A resource with versions has a record, before the scans or after.
            while peek(&mut versions, |(found, _)| found).await?.is_some_and(|found| found < uri) {
                versions.try_next().await?;
            }
            let kept = take_if(&mut versions, |(found, _)| *found == uri).await?;
            let kept = kept.map(|(_, kept)| kept).unwrap_or_default();
            if let At::Stored(bitstream, listing, declaration) = moment::at(&record, &kept, moment) {
                let change_time = listing.change_time.or(declaration.lastmod);
                let line = Line::of_version(&uri, bitstream, change_time);
                return Ok(Some((line, (resources, versions))));
            }
        }
        Ok(None)
    });
    Ok(lines)
}

async fn peek<S, T>(
    stream: &mut Pin<Box<Peekable<S>>>,
    uri: impl Fn(&T) -> &ResourceUri,
) -> Result<Option<ResourceUri>, CatalogError>
where
    S: Stream<Item = Result<T, CatalogError>>,
{
    match stream.as_mut().peek().await {
        None => Ok(None),
        Some(Ok(item)) => Ok(Some(uri(item).clone())),
        // The error is taken out with the item.
        Some(Err(_)) => stream.next().await.transpose().map(|_| None),
    }
}

async fn take_if<S, T>(
    stream: &mut Pin<Box<Peekable<S>>>,
    wanted: impl Fn(&T) -> bool,
) -> Result<Option<T>, CatalogError>
where
    S: Stream<Item = Result<T, CatalogError>>,
{
    let matches = matches!(stream.as_mut().peek().await, Some(Ok(item)) if wanted(item));
    if matches { stream.next().await.transpose() } else { Ok(None) }
}

impl From<Resource> for Line {
    fn from(resource: Resource) -> Self {
        Self {
            uri: resource.uri,
            state: resource.state.into(),
            length: resource.length,
            sha256: resource.sha256,
            encoding: resource.encoding,
            change_time: resource.change_time,
            stored_at: resource.stored_at,
            // A fleet does not show locations in its store.
            location: None,
            foreign: false,
        }
    }
}

impl Line {
    pub(crate) fn new(uri: &ResourceUri, state: ResourceState, record: Option<&ResourceRecord>) -> Self {
        let bitstream = record.and_then(|record| record.bitstream.as_ref());
        Self {
            uri: uri.to_string(),
            state,
            length: bitstream.map(|bitstream| bitstream.computed.length()),
            sha256: bitstream.map(|bitstream| bitstream.computed.sha256().to_string()),
            encoding: bitstream.and_then(|bitstream| bitstream.encoding.clone()),
            change_time: record.and_then(|record| record.listing.change_time.or(record.declaration.lastmod)),
            stored_at: bitstream.map(|bitstream| bitstream.stored_at),
            location: bitstream.map(|bitstream| bitstream.location.clone()),
            foreign: false,
        }
    }

    fn of(known: &ResourceSummary) -> Self {
        Self::new(&known.uri, known.standing(), known.record.as_ref())
    }

    /// The line of an earlier version.
    fn of_version(uri: &ResourceUri, bitstream: &Bitstream, change_time: Option<Timestamp>) -> Self {
        Self {
            uri: uri.to_string(),
            state: ResourceState::Present,
            length: Some(bitstream.computed.length()),
            sha256: Some(bitstream.computed.sha256().to_string()),
            encoding: bitstream.encoding.clone(),
            change_time,
            stored_at: Some(bitstream.stored_at),
            location: Some(bitstream.location.clone()),
            foreign: false,
        }
    }

    /// The same line, marked if it belongs to another site than the Source.
    fn marked(self, home: &HomeSite) -> Self {
        Self { foreign: home.is_foreign(&self.uri), ..self }
    }

    fn text(&self) -> String {
        let length = self.length.map_or_else(|| "-".to_owned(), |length| length.to_string());
        format!("{}  {length:>12}  {}", self.state, self.uri)
    }
}
