//! `thresher ls`: list resources and their state, or works.

mod versions;
mod works;

use std::io;
use std::pin::pin;

use api::Resource;
use catalog::{CatalogError, CatalogReader, ResourceSummary};
use futures::stream;
use futures::{Stream, StreamExt as _, TryStreamExt};
use jiff::Timestamp;
use model::moment::{self, At};
use model::{
    Bitstream, HomeSite, Linked, Links, Listing, Location, ResourceRecord, ResourceState, ResourceUri,
    Versions,
};
use serde::Serialize;

use self::versions::{KeptVersions, VersionLine};
use crate::cli::LsArgs;
use crate::client::{self, OperatorClient, ReadFrom, SourceRef};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::oai_header::OaiHeader;
use crate::target;
use crate::terminal::Out;

/// One resource, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line {
    uri: String,
    state: ResourceState,
    length: Option<u64>,
    sha256: Option<String>,
    /// The Content-Encoding of the stored bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    change_time: Option<Timestamp>,
    stored_at: Option<Timestamp>,
    location: Option<Location>,
    /// Whether it belongs to another site than the Source.
    foreign: bool,
    /// The links of the entry that listed it, each with the document that gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Links>,
    /// The header of the record that it is, of an OAI-PMH repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    oai: Option<OaiHeader>,
    /// The link that leads to it, if no list names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    linked: Option<Box<Linked>>,
    /// Its kept versions, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    versions: Vec<VersionLine>,
    /// Since when the Source has the stored version.
    #[serde(skip)]
    present_since: Option<Timestamp>,
}

/// Runs the command.
pub(crate) async fn run(args: LsArgs) -> CommandResult {
    if args.group {
        return works::run(args).await;
    }
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let mut out = Out::new();
    let into = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(_) if args.at.is_some() => {
            return Err(usage("a gateway has no --at; pass --into too"));
        }
        ReadFrom::Gateway(_) if args.source_at.is_some() => {
            return Err(usage("a gateway has no --source-at; pass --into too"));
        }
        ReadFrom::Gateway(client) => {
            for about in client.selected(args.source.as_deref()).await? {
                list_from_gateway(&client, &about, prefix, &mut out, &args).await?;
            }
            out.finish()?;
            return Ok(Exit::Good);
        }
    };
    let harvested = target::open_for_reading(&into, args.source.as_deref()).await?;
    let wanted = args.wanted();
    for (note, catalog) in &harvested.sources {
        let home = HomeSite::of_text(&note.url);
        let past = match (args.at, args.source_at) {
            (Some(time), _) => Some((time, moment::at as AtMoment)),
            (None, Some(time)) => Some((time, moment::at_source as AtMoment)),
            (None, None) => None,
        };
        // Only the present state has versions beside it.
        let has_versions = args.json && past.is_none() && catalog.history().await?.is_some();
        let mut kept = if has_versions { Some(KeptVersions::scan(catalog, prefix).await?) } else { None };
        let lines = match past {
            Some((time, at)) => versions_at(catalog, prefix, time, at).await?.left_stream(),
            None => {
                catalog.scan_known(Some(prefix), None).await?.map_ok(|known| Line::of(&known)).right_stream()
            }
        };
        let mut lines = pin!(lines);
        while let Some(mut line) = lines.try_next().await? {
            if wanted.is_none_or(|wanted| wanted.is_among(line.links.as_ref())) {
                if let Some(kept) = &mut kept {
                    line.versions = versions::lines(&kept.of(&line.uri).await?, line.present_since);
                }
                line.marked(&home).print(&mut out, args.json)?;
            }
        }
    }
    out.finish()?;
    Ok(Exit::Good)
}

/// Lists a Source's resources from a gateway, a page at a time.
async fn list_from_gateway(
    client: &OperatorClient,
    about: &SourceRef,
    prefix: &str,
    out: &mut Out,
    args: &LsArgs,
) -> Result<(), Failed> {
    let path = ["sources", about.id.as_str(), "resources"];
    let mut query = vec![("prefix", prefix.to_owned())];
    if let Some(wanted) = args.wanted() {
        query.push(("link.rel", wanted.rel().to_owned()));
        query.extend(wanted.href().map(|href| ("link.href", href.to_owned())));
    }
    let home = HomeSite::of_text(&about.entry);
    let mut resources = pin!(client.items::<Resource>(&path, &query));
    while let Some(resource) = about.found(resources.try_next().await)?.flatten() {
        Line::from(resource).marked(&home).print(out, args.json)?;
    }
    Ok(())
}

/// The version of a resource at a moment: of what was stored, or of what the Source had.
type AtMoment = for<'a> fn(&'a ResourceRecord, &'a Versions, Timestamp) -> At<'a>;

/// Lists the versions at a moment, as far as they are kept.
async fn versions_at<'a>(
    catalog: &'a CatalogReader,
    prefix: &'a str,
    moment: Timestamp,
    at: AtMoment,
) -> Result<impl Stream<Item = Result<Line, CatalogError>> + 'a, CatalogError> {
    let resources = catalog.scan_resources(Some(prefix), None).await?;
    let streams = (resources, KeptVersions::scan(catalog, prefix).await?);
    let lines = stream::try_unfold(streams, move |(mut resources, mut versions)| async move {
        while let Some((uri, record)) = resources.try_next().await? {
            let kept = versions.of(uri.as_str()).await?;
            if let At::Stored(bitstream, listing, declaration) = at(&record, &kept, moment) {
                let change_time = listing.change_time.or(declaration.lastmod);
                let line = Line::new(&uri, ResourceState::Present, Some(bitstream), change_time);
                let line = line.linked(listing);
                return Ok(Some((line, (resources, versions))));
            }
        }
        Ok(None)
    });
    Ok(lines)
}

impl From<Resource> for Line {
    fn from(resource: Resource) -> Self {
        Self {
            state: resource.state.into(),
            length: resource.length,
            sha256: resource.sha256,
            encoding: resource.encoding,
            change_time: resource.change_time,
            stored_at: resource.stored_at,
            // A fleet does not show locations in its store.
            location: None,
            foreign: false,
            oai: OaiHeader::of(&resource.uri, resource.links.as_ref()),
            uri: resource.uri,
            links: resource.links,
            linked: resource.linked,
            versions: Vec::new(),
            present_since: None,
        }
    }
}

impl Line {
    fn new(
        uri: &ResourceUri,
        state: ResourceState,
        bitstream: Option<&Bitstream>,
        change_time: Option<Timestamp>,
    ) -> Self {
        Self {
            uri: uri.to_string(),
            state,
            length: bitstream.map(|bitstream| bitstream.computed.length()),
            sha256: bitstream.map(|bitstream| bitstream.computed.sha256().to_string()),
            encoding: bitstream.and_then(|bitstream| bitstream.encoding.clone()),
            change_time,
            stored_at: bitstream.map(|bitstream| bitstream.stored_at),
            location: bitstream.map(|bitstream| bitstream.location.clone()),
            foreign: false,
            links: None,
            oai: None,
            linked: None,
            versions: Vec::new(),
            present_since: None,
        }
    }

    /// The line of the present state.
    fn of(known: &ResourceSummary) -> Self {
        let record = known.record.as_ref();
        let change_time = record.and_then(|record| record.listing.change_time.or(record.declaration.lastmod));
        let bitstream = record.and_then(|record| record.bitstream.as_ref());
        let line = Self::new(&known.uri, known.state(), bitstream, change_time);
        match record {
            Some(record) => {
                let present_since = moment::source_time(&record.listing, &record.declaration);
                Self { present_since, ..line.linked(&record.listing) }
            }
            None => line,
        }
    }

    /// The same line, with the links of this entry.
    fn linked(self, listing: &Listing) -> Self {
        let links = listing.shown_links();
        Self { oai: OaiHeader::of(&self.uri, links.as_ref()), links, linked: listing.linked.clone(), ..self }
    }

    /// The same line, marked if it belongs to another site than the Source.
    fn marked(self, home: &HomeSite) -> Self {
        Self { foreign: home.is_foreign(&self.uri), ..self }
    }

    fn print(&self, out: &mut Out, json: bool) -> io::Result<()> {
        out.json_or_lines(json, self, || {
            let length = self.length.map_or_else(|| "-".to_owned(), |length| length.to_string());
            vec![format!("{}  {length:>12}  {}", self.state, self.uri)]
        })
    }
}
