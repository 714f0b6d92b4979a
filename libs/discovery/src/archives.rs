//! ResourceSync Archives: what a Source offers of its past. A harvest does not need them, so only a look at the Source
//! reads them.

use std::collections::VecDeque;

use documents::{DocumentError, Part};
use model::counted;
use resourcesync::{Capability, Datetime, Entry, Header, Item, Options, relation};
use serde::Serialize;
use url::Url;
use web::Client;

use crate::document::MOST_ENTRIES;
use crate::found::Discovery;

/// Maximum Archives that are read.
const MOST_ARCHIVES: usize = 100;
/// Maximum documents of one Archive that are read: itself, and the parts of an index.
const MOST_DOCUMENTS: usize = 100;
/// Maximum nesting of indexes.
const MOST_LEVELS: usize = 3;

/// An Archive of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Archive {
    /// Its URL, as the Capability List writes it.
    pub url: String,
    /// Its capability.
    pub capability: Capability,
    /// Number of documents that it lists: lists or dumps of the past.
    pub documents: u64,
    /// The earliest time of them: of a snapshot, or the start of an interval.
    pub from: Option<Datetime>,
    /// The latest time of them.
    pub until: Option<Datetime>,
    /// Why it was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Reads the Archives that the sets of a discovery offer: how many documents they list, from when to when. Requests are
/// added to those of the discovery. An Archive that cannot be read is no fault of the set; the result says why.
pub async fn archives(client: &Client, found: &mut Discovery, options: &Options) -> Vec<Archive> {
    let mut archives: Vec<Archive> = Vec::new();
    let links = found.sets.iter().flat_map(|(_, set)| &set.capabilities);
    let offered = links.filter(|link| link.capability.is_archive());
    let offered = offered.map(|link| (link.uri.clone(), link.capability.clone()));
    for (url, capability) in offered.chain(back_links(found)) {
        // Capability Lists may name one Archive several times, and lists again.
        if archives.len() < MOST_ARCHIVES && archives.iter().all(|known| known.url != url) {
            archives.push(Archive::new(url, capability));
        }
    }
    for archive in &mut archives {
        found.requests += archive.read(client, options).await;
    }
    archives
}

/// The Archives to which lists point back, though their Capability List may not name them.
fn back_links(found: &Discovery) -> impl Iterator<Item = (String, Capability)> {
    found.documents.iter().flat_map(|document| {
        let capability = document.capability.as_ref().and_then(Capability::archive);
        let links = document.links.iter().filter(|link| link.rel == relation::ARCHIVES);
        links.filter_map(move |link| Some((link.href.clone(), capability.clone()?)))
    })
}

impl Archive {
    fn new(url: String, capability: Capability) -> Self {
        Self { url, capability, documents: 0, from: None, until: None, trouble: None }
    }

    /// Reads the Archive, and the parts of an index. Returns the requests made.
    async fn read(&mut self, client: &Client, options: &Options) -> u64 {
        let mut requests = 0;
        let mut seen = Vec::new();
        let mut next = VecDeque::new();
        match Url::parse(&self.url) {
            Ok(url) => next.push_back((url, 0)),
            Err(error) => self.trouble = Some(format!("it is no URL: {error}")),
        }
        while let Some((url, level)) = next.pop_front() {
            if seen.contains(&url) {
                continue;
            }
            if seen.len() >= MOST_DOCUMENTS || level > MOST_LEVELS {
                self.note(format!(
                    "{url} was not read: at most {MOST_DOCUMENTS} documents and {MOST_LEVELS} levels"
                ));
                break;
            }
            seen.push(url.clone());
            match self.read_one(client, &url, options, &mut requests).await {
                Ok(parts) => next.extend(parts.into_iter().map(|url| (url, level + 1))),
                Err(error) => self.note(format!("{url}: {error}")),
            }
        }
        requests
    }

    /// Reads one document. Returns the parts of an index.
    async fn read_one(
        &mut self,
        client: &Client,
        url: &Url,
        options: &Options,
        requests: &mut u64,
    ) -> Result<Vec<Url>, DocumentError> {
        let (made, opened) = documents::open_anew(client, url, options.clone()).await;
        *requests += made;
        let mut stream = opened?;
        let mut parts = Vec::new();
        let mut has_parts = false;
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(found) => match self.expect(&found) {
                    Ok(any) => has_parts = any,
                    Err(other) => {
                        self.note(format!("{url} is {other}"));
                        return Ok(parts);
                    }
                },
                Part::Items(items) => {
                    for item in items {
                        let Item::Entry(entry) = item else { continue };
                        if has_parts && parts.len() < MOST_DOCUMENTS {
                            parts.extend(Url::parse(&entry.loc));
                        } else if !has_parts {
                            self.take(&entry);
                        }
                    }
                    if self.documents > MOST_ENTRIES as u64 {
                        let most = counted(MOST_ENTRIES as u64, "document", "documents");
                        self.note(format!("it lists more than {most}"));
                        return Ok(Vec::new());
                    }
                }
                Part::Broken(error, _) => return Err(error),
                Part::End(_) => break,
            }
        }
        Ok(parts)
    }

    /// Whether the entries of a document are parts of this Archive; otherwise they are documents of the past.
    ///
    /// # Errors
    /// What it is, if it is no part of this Archive.
    fn expect(&self, header: &Header) -> Result<bool, String> {
        match &header.capability {
            None => Err("a sitemap without capability".to_owned()),
            Some(capability) => {
                documents::expect_archive(header, &self.capability).map_err(|_| format!("a {capability}"))
            }
        }
    }

    fn take(&mut self, entry: &Entry) {
        self.documents += 1;
        let metadata = &entry.metadata;
        let times = [metadata.at, metadata.completed, metadata.from, metadata.until];
        let stated = times.into_iter().flatten();
        for time in stated.chain(entry.lastmod.filter(|_| times.iter().all(Option::is_none))) {
            self.from = Some(self.from.map_or(time, |from| from.min(time)));
            self.until = Some(self.until.map_or(time, |until| until.max(time)));
        }
    }

    /// Keeps the first trouble.
    fn note(&mut self, trouble: String) {
        self.trouble.get_or_insert(trouble);
    }
}
