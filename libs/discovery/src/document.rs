//! The part of a document that discovery needs.

use std::io::Read;

use documents::DocumentError;
use model::{KnownDocument, KnownEntry, Validators};
use resourcesync::{
    Capability, Entry, Header, Item, Link, Metadata, Options, Quirk, Quirks, ReadError, Reader, Root,
    relation,
};
use url::Url;

/// Maximum entries read of one Source Description or Capability List.
pub(crate) const MOST_ENTRIES: usize = 50_000;
/// Maximum hubs kept of one channel.
const MOST_HUBS: usize = 8;
/// Maximum bytes of a document's own links that are shown.
const MOST_LINK_BYTES: usize = 4 * 1024;
/// Relations to other documents of the Source, and to hubs: they are shown in other ways.
const STRUCTURE: [&str; 4] = [relation::UP, relation::INDEX, relation::CONTENTS, relation::HUB];
/// Maximum bytes read of one of them, after decompression.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Level of a document for discovery, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// A list, a dump, a sitemap: any part of a set.
    List,
    /// A Capability List: a set.
    Set,
    /// A Source Description, or its index.
    Description,
}

impl Level {
    /// Its name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::List => "list of resources",
            Self::Set => "Capability List",
            Self::Description => "Source Description",
        }
    }
}

/// Result of parsing a document.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) header: Header,
    pub(crate) level: Level,
    /// Whether `level` is guessed from the entries.
    pub(crate) is_guess: bool,
    /// The entries; none of a list, of which only the header is read.
    pub(crate) named: Vec<Named>,
    /// Number of unusable entries.
    pub(crate) bad: u64,
    pub(crate) quirks: Quirks,
    /// Why reading stopped early. What was read before stays valid.
    pub(crate) broken: Option<DocumentError>,
    /// Whether it has more entries than were read.
    pub(crate) has_more: bool,
    /// Whether its first entry is a landing page with its links (Signmap).
    pub(crate) is_signmap: bool,
}

/// An entry.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) uri: String,
    pub(crate) capability: Option<Capability>,
    pub(crate) hubs: Vec<String>,
}

/// A document with its URL.
pub(crate) struct Small {
    pub(crate) url: Url,
    pub(crate) parsed: Parsed,
    /// Documents between it and the entry URL.
    pub(crate) depth: usize,
}

impl Small {
    /// Its kind, as text.
    pub(crate) fn kind(&self) -> String {
        let header = &self.parsed.header;
        match &header.capability {
            Some(capability) if header.is_index() => format!("a {capability} index"),
            Some(capability) => format!("a {capability}"),
            None => "a sitemap without capability".to_owned(),
        }
    }

    /// The target of a link of the document itself.
    pub(crate) fn link(&self, relation: &str) -> Option<Url> {
        self.url.join(&self.parsed.header.link(relation)?.href).ok()
    }
}

/// Reads a document: whole if it describes or lists capabilities, only its header if it lists resources.
pub(crate) fn parse(source: impl Read, mut options: Options) -> Result<Parsed, ReadError> {
    let limit = options.limits.max_document_bytes.unwrap_or(MOST_BYTES).min(MOST_BYTES);
    options.limits.max_document_bytes = Some(limit);
    let mut reader = Reader::new(source, options)?;
    let mut parsed = Parsed::new(reader.header()?.clone());
    if let Some(capability) = &parsed.header.capability {
        parsed.level = level(capability);
    } else {
        let first = parsed.take_entry(&mut reader)?;
        parsed.guess();
        if !first {
            parsed.quirks = reader.summary().quirks;
            return Ok(parsed);
        }
    }
    while parsed.level > Level::List {
        match parsed.take_entry(&mut reader) {
            Ok(true) if parsed.named.len() > MOST_ENTRIES => {
                parsed.named.truncate(MOST_ENTRIES);
                parsed.has_more = true;
                break;
            }
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if parsed.named.is_empty() => return Err(error),
            Err(error) => {
                parsed.broken = Some(error.into());
                break;
            }
        }
    }
    if parsed.level == Level::List {
        parsed.named = Vec::new();
    }
    parsed.quirks = reader.summary().quirks;
    // The document's own links may follow its entries.
    if let Ok(header) = reader.header() {
        parsed.header = header.clone();
    }
    Ok(parsed)
}

/// Whether an entry is a landing page with its links, and no resource that has links.
fn is_landing_page(entry: &Entry) -> bool {
    entry.metadata == Metadata::default()
        && links::landing::is_landing(entry.links.iter().map(|link| &*link.rel))
}

fn level(capability: &Capability) -> Level {
    match capability {
        Capability::Description => Level::Description,
        Capability::CapabilityList => Level::Set,
        _ => Level::List,
    }
}

impl Parsed {
    /// The document's own links about itself, such as its description, licence and contact.
    pub(crate) fn own_links(&self, url: &Url) -> Vec<Link> {
        let mut bytes = 0;
        let about = self.header.links.iter().filter(|link| !STRUCTURE.contains(&link.rel.as_str()));
        let absolute = about.map(|link| {
            let href = url.join(&link.href).map_or_else(|_| link.href.clone(), Into::into);
            Link { href, ..link.clone() }
        });
        absolute
            .take_while(|link| {
                bytes += link.size();
                bytes <= MOST_LINK_BYTES
            })
            .collect()
    }

    /// Restores the result of an earlier reading.
    pub(crate) fn from_known(known: &KnownDocument) -> Self {
        let quirk = |name: &str| Quirk::ALL.iter().copied().find(|quirk| quirk.as_str() == name);
        let mut quirks = Quirks::default();
        for (name, times) in &known.quirks {
            if let Some(quirk) = quirk(name) {
                quirks.add_many(quirk, *times);
            }
        }
        let named = |entry: &KnownEntry| Named {
            uri: entry.uri.clone(),
            capability: entry.capability.clone(),
            hubs: entry.hubs.clone(),
        };
        let mut parsed = Self {
            level: known.header.capability.as_ref().map_or(Level::List, level),
            is_signmap: known.signmap,
            named: known.entries.iter().map(named).collect(),
            quirks,
            ..Self::new(known.header.clone())
        };
        if parsed.header.capability.is_none() {
            parsed.guess();
        }
        parsed
    }

    /// What to cache of it.
    pub(crate) fn to_known(&self, url: &Url, answered_by: &Url, validators: &Validators) -> KnownDocument {
        let entry = |named: &Named| KnownEntry {
            uri: named.uri.clone(),
            capability: named.capability.clone(),
            hubs: named.hubs.clone(),
        };
        KnownDocument {
            url: url.to_string(),
            answered_by: answered_by.to_string(),
            validators: validators.clone(),
            header: self.header.clone(),
            entries: self.named.iter().map(entry).collect(),
            quirks: self.quirks.iter().map(|(quirk, times)| (quirk.as_str().to_owned(), times)).collect(),
            signmap: self.is_signmap,
        }
    }

    /// Whether it is free of doubt, so that reading the same version again gives the same result.
    pub(crate) fn is_certain(&self) -> bool {
        self.bad == 0 && self.broken.is_none() && !self.has_more && !self.quirks.casts_doubt()
    }

    fn new(header: Header) -> Self {
        Self {
            header,
            level: Level::List,
            is_guess: false,
            named: Vec::new(),
            bad: 0,
            quirks: Quirks::default(),
            broken: None,
            has_more: false,
            is_signmap: false,
        }
    }

    fn take_entry<R: Read>(&mut self, reader: &mut Reader<R>) -> Result<bool, ReadError> {
        match reader.next()? {
            None => return Ok(false),
            Some(Item::Bad(_)) => self.bad += 1,
            Some(Item::Entry(entry)) => {
                let is_hub = |link: &&Link| link.rel == relation::HUB;
                let hubs = entry.links.iter().filter(is_hub).take(MOST_HUBS).map(|link| link.href.clone());
                let hubs = hubs.collect();
                let is_first = self.named.is_empty() && self.header.root == Root::UrlSet;
                self.is_signmap |= is_first && self.header.capability.is_none() && is_landing_page(&entry);
                self.named.push(Named { uri: entry.loc, capability: entry.metadata.capability, hubs });
            }
        }
        Ok(true)
    }

    /// Guesses the kind of a document without one from the target of its first entry. A plain sitemap's entries lead
    /// to resources, which have no capability.
    fn guess(&mut self) {
        let first = self.named.first().and_then(|named| named.capability.as_ref());
        let guess = match first {
            Some(Capability::Description | Capability::CapabilityList) => Level::Description,
            Some(Capability::Other(_)) | None => return,
            // The parts of an index may state what they are.
            Some(_) if self.header.root == Root::SitemapIndex => return,
            Some(_) => Level::Set,
        };
        self.level = guess;
        self.is_guess = true;
    }
}
