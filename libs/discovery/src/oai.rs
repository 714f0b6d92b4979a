//! Discovery of an OAI-PMH repository: Identify, its metadata formats, its sets.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    CapabilityLink, OaiDeletions, OaiFormat, OaiList, OaiNamed, OaiOptions, OaiProgress, OaiRepository,
    OaiSet, SetId, SetRecord, TextEncoding,
};
use oaipmh::{
    Answer, BaseUrl, DeletedRecord, Granularity, Identify, Item, KnownFormat, Options, Pasted, Quirk,
    Request, Selection,
};
use resourcesync::{Capability, Reader};
use url::Url;
use web::{Client, GetRequest};

use crate::error::{DiscoverError, WELL_KNOWN};
use crate::found::Discovery;

/// The largest answer that discovery reads, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// The largest Source Description, in bytes.
const LARGEST_DESCRIPTION: u64 = 8 * 1024 * 1024;
/// The format that every repository has.
const OAI_DC: &str = "oai_dc";
/// What a link to a repository ends with.
const IDENTIFY: &str = "verb=Identify";
/// Repositories of a page that are tried.
const MOST_LINKED: usize = 2;
/// Sets that are kept for display.
const SHOWN_SETS: usize = 1_000;

/// Finds the lists of a repository.
///
/// # Errors
/// When it cannot be reached, or does not answer Identify, or does not offer what the options choose.
pub(crate) async fn discover(
    client: &Client,
    pasted: &Pasted,
    wanted: &OaiOptions,
) -> Result<Discovery, DiscoverError> {
    let mut asked = Asked { encoding: wanted.encoding, ..Asked::of(client, &pasted.base) };
    let nothing = |why: String| DiscoverError::Nothing {
        url: Box::new(pasted.base.as_url().clone()),
        why,
        has_documents: false,
    };
    let (_, answer) = asked.ask(&Request::Identify).await?;
    let Some(identify) = answer.identify else {
        let said =
            answer.errors.first().map_or("it does not answer Identify".to_owned(), ToString::to_string);
        return Err(nothing(format!("it is no OAI-PMH repository: {said}")));
    };
    if !identify.is_supported() {
        let version = identify.protocol_version;
        return Err(nothing(format!("it speaks version {version:?} of OAI-PMH; only 2.0 is harvested")));
    }
    let chosen = wanted.metadata_prefix.as_ref().or(pasted.prefix.as_ref());
    let formats = match asked.ask(&Request::ListMetadataFormats { identifier: None }).await {
        Ok((items, _)) => items.into_iter().filter_map(format).collect(),
        Err(_) if chosen.is_some() => Vec::new(),
        // A guess could be another format than the last run's, and harvest everything anew.
        Err(error) => return Err(error),
    };
    let prefix = prefix(chosen, &formats).map_err(nothing)?;
    let (sets, more_sets) = match asked.ask(&Request::ListSets).await {
        Ok((items, answer)) => {
            let has_more = answer.has_more() || items.len() > SHOWN_SETS;
            (items.into_iter().filter_map(set).take(SHOWN_SETS).collect(), has_more)
        }
        // A repository need not have sets, and the names of those that are harvested are known.
        Err(_) => {
            asked.count(Quirk::SetsUnreadable);
            (Vec::new(), false)
        }
    };
    if identify.base_url != pasted.base.as_str() {
        asked.count(Quirk::BaseUrlMismatch);
    }
    let mut wished: Vec<Option<String>> = wanted.sets.iter().cloned().map(Some).collect();
    if wished.is_empty() {
        wished.push(pasted.set.clone());
    }
    wished.dedup();
    let mut found = Discovery::default();
    for set in wished {
        if let Some(spec) = &set
            && !more_sets
            && !sets.is_empty()
            && !sets.iter().any(|known: &OaiSet| known.spec == *spec)
        {
            asked.count(Quirk::SetVanished);
            found.fail(
                list_uri(&pasted.base, &prefix, set.as_deref()),
                format!("ListSets names no set {spec:?}"),
            );
        }
        let (id, record) = list(&pasted.base, &prefix, set, &identify);
        found.sets.push((id, record));
    }
    let resourcesync = asked.resourcesync().await;
    found.requests = asked.requests;
    found.oai = Some(Box::new(OaiRepository {
        base: pasted.base.as_str().to_owned(),
        other_base: Some(identify.base_url.clone()).filter(|base| base != pasted.base.as_str()),
        granularity: identify.usable_granularity().as_str().to_owned(),
        deletions: deletions(&identify),
        earliest: identify.earliest_datestamp.as_ref().map(ToString::to_string).unwrap_or_default(),
        name: identify.repository_name,
        formats: formats
            .into_iter()
            .map(|format| OaiFormat {
                names: KnownFormat::of_format(&format).map(named),
                prefix: format.prefix,
                namespace: format.namespace,
            })
            .collect(),
        prefix,
        sets,
        more_sets,
        resourcesync,
        quirks: asked.quirks,
    }));
    Ok(found)
}

/// The repositories that a web page links to by a request to identify themselves, as many home pages do. Those of other
/// hosts are not the site's own.
pub(crate) fn linked(page: &str, base: &Url) -> Vec<Url> {
    let mut found: Vec<Url> = Vec::new();
    for (at, request) in page.match_indices(IDENTIFY) {
        let Some(begin) = page[..at].rfind(['"', '\'', '<', '>']) else { continue };
        let is_quoted = page[begin..].starts_with(['"', '\'']);
        let written = page[begin + 1..at + request.len()].replace("&amp;", "&");
        let url = base.join(written.trim()).ok().filter(|url| is_quoted && url.host() == base.host());
        let repository =
            url.and_then(|url| Pasted::read(&url).ok()).map(|pasted| pasted.base.as_url().clone());
        if let Some(repository) = repository.filter(|repository| !found.contains(repository)) {
            found.push(repository);
        }
        if found.len() >= MOST_LINKED {
            break;
        }
    }
    found
}

/// The requests of one discovery.
pub(crate) struct Asked<'a> {
    client: &'a Client,
    base: &'a BaseUrl,
    /// The encoding of what is not UTF-8.
    encoding: Option<TextEncoding>,
    pub(crate) requests: u64,
    quirks: BTreeMap<String, u64>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(client: &'a Client, base: &'a BaseUrl) -> Self {
        Self { client, base, encoding: None, requests: 0, quirks: BTreeMap::new() }
    }

    fn count(&mut self, quirk: Quirk) {
        *self.quirks.entry(quirk.as_str().to_owned()).or_default() += 1;
    }

    /// Asks for one answer, and reads all of it.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<(Vec<Item>, Answer), DiscoverError> {
        let text = request.url(self.base);
        let nothing = |why: String| DiscoverError::Nothing {
            url: Box::new(self.base.as_url().clone()),
            why,
            has_documents: false,
        };
        let url = Url::parse(&text).map_err(|error| nothing(error.to_string()))?;
        let get = GetRequest { takes_error_documents: true, largest: Some(LARGEST), ..GetRequest::new(url) };
        let mut response = match self.client.get_with_retries(get).await {
            Ok(response) => response,
            Err(error) => {
                self.requests += u64::from(error.requests());
                return Err(if error.is_answer() {
                    nothing(error.to_string())
                } else {
                    DiscoverError::Unreachable(error)
                });
            }
        };
        self.requests += u64::from(response.requests());
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(DiscoverError::Unreachable)? {
            bytes.extend_from_slice(&chunk);
        }
        let encoding = self.encoding.map(TextEncoding::get);
        let (items, answer, read) = oaipmh::read(&bytes, Options { encoding, ..Options::default() });
        read.map_err(|error| nothing(format!("{text}: {error}")))?;
        for (quirk, times) in answer.quirks.iter() {
            *self.quirks.entry(quirk.as_str().to_owned()).or_default() += times;
        }
        Ok((items, answer))
    }
}

impl Asked<'_> {
    /// The Source Description at the host's well-known URI, where the site offers ResourceSync too. Whatever else is
    /// there, or fails, is no fault of the repository.
    async fn resourcesync(&mut self) -> Option<String> {
        let url = self.base.as_url().join(WELL_KNOWN).ok()?;
        let get = GetRequest { largest: Some(LARGEST_DESCRIPTION), ..GetRequest::new(url.clone()) };
        let mut response = match self.client.get(get).await {
            Ok(response) => response,
            Err(error) => {
                self.requests += u64::from(error.requests());
                return None;
            }
        };
        self.requests += u64::from(response.requests());
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            bytes.extend_from_slice(&chunk);
        }
        let mut reader = Reader::new(bytes.as_slice(), resourcesync::Options::default()).ok()?;
        let is_description = reader.header().ok()?.capability == Some(Capability::Description);
        is_description.then(|| url.to_string())
    }
}

/// The prefix to harvest.
fn prefix(wanted: Option<&String>, formats: &[oaipmh::MetadataFormat]) -> Result<String, String> {
    let Some(wanted) = wanted else {
        let richest = oaipmh::richest(formats).map(|format| format.prefix.clone());
        return Ok(richest.unwrap_or_else(|| OAI_DC.to_owned()));
    };
    if formats.is_empty() || formats.iter().any(|format| format.prefix == *wanted) {
        return Ok(wanted.clone());
    }
    let offered: Vec<&str> = formats.iter().map(|format| format.prefix.as_str()).collect();
    Err(format!("it does not offer the metadata prefix {wanted:?}; it offers {}", offered.join(", ")))
}

/// A list as a set of resources. Its ID, which is the URL of all its records, is its document too.
fn list(base: &BaseUrl, prefix: &str, set: Option<String>, identify: &Identify) -> (SetId, SetRecord) {
    let uri = list_uri(base, prefix, set.as_deref());
    let record = SetRecord {
        capabilities: vec![
            CapabilityLink::new(Capability::ResourceList, uri.clone()),
            CapabilityLink::new(Capability::ChangeList, format!("{uri}#changes")),
        ],
        oai: Some(Box::new(OaiList {
            base: base.as_str().to_owned(),
            prefix: prefix.to_owned(),
            set,
            by_seconds: identify.usable_granularity() == Granularity::Second,
            deletions: deletions(identify),
            earliest: identify.earliest_datestamp.as_ref().map(|time| time.instant()).filter(is_usual),
            progress: OaiProgress::default(),
        })),
        ..SetRecord::default()
    };
    (SetId::new(uri), record)
}

fn list_uri(base: &BaseUrl, prefix: &str, set: Option<&str>) -> String {
    let selection = Selection { set: set.map(str::to_owned), ..Selection::all(prefix) };
    Request::list_records(selection, Granularity::Day).url(base)
}

/// Whether a time can be the beginning of a repository, so that windows are halved behind it.
fn is_usual(time: &Timestamp) -> bool {
    time.as_second() > 0
}

fn deletions(identify: &Identify) -> OaiDeletions {
    match identify.deleted_record {
        Some(DeletedRecord::Persistent) => OaiDeletions::Persistent,
        Some(DeletedRecord::Transient) => OaiDeletions::Transient,
        Some(DeletedRecord::No) | None => OaiDeletions::No,
    }
}

/// What the records of a format name.
fn named(format: KnownFormat) -> OaiNamed {
    match (format.names_files(), format.declares_fixity()) {
        (true, true) => OaiNamed::FilesWithDigests,
        (true, false) => OaiNamed::Files,
        (false, _) => OaiNamed::Pages,
    }
}

fn format(item: Item) -> Option<oaipmh::MetadataFormat> {
    match item {
        Item::Format(format) => Some(format),
        _ => None,
    }
}

fn set(item: Item) -> Option<OaiSet> {
    match item {
        Item::Set(set) => Some(OaiSet { spec: set.spec, name: set.name }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_that_a_home_page_links_to_is_found() {
        let base = Url::parse("https://r.example.org/home/").unwrap();
        let linked = |page: &str| linked(page, &base).iter().map(Url::to_string).collect::<Vec<_>>();
        for (page, found) in [
            ("<a href=\"/oai?verb=Identify\">OAI</a>", vec!["https://r.example.org/oai"]),
            ("<a href='oai2?a=b&amp;verb=Identify'>x</a>", vec!["https://r.example.org/home/oai2?a=b"]),
            (
                "<a href=\"http://r.example.org/cgi/oai2?verb=Identify\">",
                vec!["http://r.example.org/cgi/oai2"],
            ),
            ("<a href=\"https://other.org/oai?verb=Identify\">", vec![]),
            ("Ask https://r.example.org/oai?verb=Identify", vec![]),
            ("<p>oai?verb=Identify</p>", vec![]),
            ("verb=Identify", vec![]),
        ] {
            assert_eq!(linked(page), found, "{page}");
        }
        let many: String = (0..50).map(|n| format!("<a href=\"/oai{n}?verb=Identify\">")).collect();
        assert_eq!(linked(&many).len(), MOST_LINKED);
        assert_eq!(linked(&"<a href=\"/oai?verb=Identify\">".repeat(3)).len(), 1);
    }
}
