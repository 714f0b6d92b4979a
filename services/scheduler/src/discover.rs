//! What a Source offers: from any way in to its sets of resources.

use std::collections::VecDeque;

use model::{CapabilityLink, SetId, SetRecord, Validators};
use resourcesync::{Capability, Entry, Header, Item, Options, Root};
use serde::Serialize;
use url::Url;
use web::{Client, WebError};

use crate::read::{self, DocumentError, Opened, Part};

/// Where a host tells of its Source Description (RS-20).
const WELL_KNOWN: &str = "/.well-known/resourcesync";
/// Source Descriptions and Capability Lists read in one discovery; more are a loop or an attack.
const MOST_DOCUMENTS: usize = 1_000;
/// Entries read of one Source Description or Capability List.
const MOST_ENTRIES: usize = 50_000;

/// What was found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Discovery {
    /// Every document that was read on the way, in order.
    pub documents: Vec<Visited>,
    /// The sets of resources.
    pub sets: Vec<(SetId, SetRecord)>,
    /// Documents that should have been read, and why they were not.
    pub failures: Vec<Unread>,
    /// Requests made.
    pub requests: u64,
}

/// A document on the way.
#[derive(Debug, Clone, Serialize)]
pub struct Visited {
    /// Its URL.
    pub url: String,
    /// Its capability, where it names one.
    pub capability: Option<Capability>,
    /// Its root element.
    pub root: Root,
    /// Entries that were read.
    pub entries: usize,
}

/// A document that could not be read.
#[derive(Debug, Clone, Serialize)]
pub struct Unread {
    /// Its URL.
    pub url: String,
    /// What happened.
    pub why: String,
}

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The URL did not answer.
    #[error("{0}")]
    Unreachable(WebError),
    /// It answered, but nothing there leads to resources.
    #[error(
        "nothing to harvest at {url}: {why}. Give the URL of a site with {WELL_KNOWN}, of a Source Description, of a \
         Capability List, or of a Resource List or Change List itself"
    )]
    Nothing {
        /// The way in.
        url: Url,
        /// What was found instead.
        why: String,
    },
}

/// A small document, read whole.
struct Small {
    url: Url,
    header: Header,
    entries: Vec<Entry>,
}

enum Attempt {
    Read(Box<Small>),
    NotADocument(DocumentError),
}

/// Finds the sets of resources that `entry` leads to. The entry is a site, a Source Description (or its index), a
/// Capability List, or a list itself, which then is a set of its own.
///
/// # Errors
/// When the entry cannot be reached, or leads to nothing.
pub async fn discover(client: &Client, entry: &Url, options: &Options) -> Result<Discovery, DiscoverError> {
    let mut found = Discovery::default();
    let well_known = entry.join(WELL_KNOWN).ok().filter(|url| url != entry);
    let is_site = matches!(entry.path(), "" | "/") && entry.query().is_none();

    let mut first = None;
    if is_site && let Some(url) = &well_known {
        first = match found.read(client, url, options).await {
            Ok(attempt) => attempt.document(),
            Err(error) if error.is_answer() => None,
            // Nobody is there: the same host would not answer the next question either.
            Err(error) => return Err(DiscoverError::Unreachable(error)),
        };
    }
    let mut why = None;
    if first.is_none() {
        match found.read(client, entry, options).await {
            Ok(Attempt::Read(document)) => first = Some(document),
            Ok(Attempt::NotADocument(error)) => why = Some(error.to_string()),
            Err(error) if error.is_answer() => why = Some(error.to_string()),
            Err(error) => return Err(DiscoverError::Unreachable(error)),
        }
    }
    if first.is_none()
        && !is_site
        && let Some(url) = &well_known
    {
        first = found.read(client, url, options).await.ok().and_then(Attempt::document);
    }
    let Some(first) = first else {
        let why = why.unwrap_or_else(|| "no document there could be read".to_owned());
        return Err(DiscoverError::Nothing { url: entry.clone(), why });
    };
    let route = first.url.clone();
    found.follow(client, first, options).await;
    if found.sets.is_empty() {
        let why = match found.failures.first() {
            Some(unread) => unread.why.clone(),
            None => format!("{route} names no Capability List and no list of resources"),
        };
        return Err(DiscoverError::Nothing { url: entry.clone(), why });
    }
    Ok(found)
}

impl Attempt {
    fn document(self) -> Option<Box<Small>> {
        match self {
            Self::Read(document) => Some(document),
            Self::NotADocument(_) => None,
        }
    }
}

impl Discovery {
    /// Goes down from a document to the sets below it. A document that cannot be read costs its own sets only.
    async fn follow(&mut self, client: &Client, first: Box<Small>, options: &Options) {
        let mut next = VecDeque::new();
        let mut seen = vec![first.url.clone()];
        self.enter(first, &mut next);
        while let Some(url) = next.pop_front() {
            if seen.contains(&url) || seen.len() >= MOST_DOCUMENTS {
                continue;
            }
            seen.push(url.clone());
            match self.read(client, &url, options).await {
                Ok(Attempt::Read(document)) => self.enter(document, &mut next),
                Ok(Attempt::NotADocument(error)) => {
                    self.failures.push(Unread { url: url.into(), why: error.to_string() });
                }
                Err(error) => self.failures.push(Unread { url: url.into(), why: error.to_string() }),
            }
        }
    }

    fn enter(&mut self, document: Box<Small>, next: &mut VecDeque<Url>) {
        let Small { url, header, entries } = *document;
        match header.capability {
            Some(Capability::Description) => {
                next.extend(entries.iter().filter_map(|entry| Url::parse(&entry.loc).ok()));
            }
            Some(Capability::CapabilityList) => {
                let capabilities = entries.into_iter().filter_map(|entry| {
                    let capability = entry.metadata.capability?;
                    Some(CapabilityLink { capability, uri: entry.loc })
                });
                let set = SetRecord { capabilities: capabilities.collect(), ..SetRecord::default() };
                self.sets.push((SetId::new(url), set));
            }
            // A sitemap without rs:md lists resources like a Resource List does.
            capability => {
                let capability = capability.unwrap_or(Capability::ResourceList);
                let link = CapabilityLink { capability, uri: url.to_string() };
                let set = SetRecord { capabilities: vec![link], ..SetRecord::default() };
                self.sets.push((SetId::new(url), set));
            }
        }
    }

    /// Reads a document: whole when it describes or lists capabilities, only its head when it lists resources.
    async fn read(&mut self, client: &Client, url: &Url, options: &Options) -> Result<Attempt, WebError> {
        let opened = read::open(client, url, Validators::default(), options.clone()).await;
        self.requests += match &opened {
            Ok(Opened::Document(stream)) => u64::from(stream.requests),
            Ok(Opened::NotModified) => 1,
            Err(error) => u64::from(error.requests()),
        };
        let Opened::Document(mut stream) = opened? else {
            return Ok(Attempt::NotADocument(DocumentError::NothingSent));
        };
        let mut document = None;
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    let small = Small { url: stream.url.clone(), header, entries: Vec::new() };
                    let lists_resources = !matches!(
                        small.header.capability,
                        Some(Capability::Description | Capability::CapabilityList)
                    );
                    document = Some(Box::new(small));
                    if lists_resources {
                        break;
                    }
                }
                Part::Items(items) => {
                    let entries = items.into_iter().filter_map(|item| match item {
                        Item::Entry(entry) => Some(*entry),
                        Item::Bad(_) => None,
                    });
                    if let Some(small) = &mut document {
                        small.entries.extend(entries);
                        if small.entries.len() > MOST_ENTRIES {
                            break;
                        }
                    }
                }
                Part::End(_) => break,
                Part::Broken(error, _) => match &document {
                    // What was read before the break is still true.
                    Some(small) if !small.entries.is_empty() => {
                        self.failures.push(Unread { url: url.to_string(), why: error.to_string() });
                        break;
                    }
                    _ => return Ok(Attempt::NotADocument(error)),
                },
            }
        }
        let Some(small) = document else { return Ok(Attempt::NotADocument(DocumentError::Stopped)) };
        self.documents.push(Visited {
            url: small.url.to_string(),
            capability: small.header.capability.clone(),
            root: small.header.root,
            entries: small.entries.len(),
        });
        Ok(Attempt::Read(small))
    }
}
