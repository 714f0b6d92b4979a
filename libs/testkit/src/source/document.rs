//! The documents of a Source, written entry by entry while they are being sent.
//!
//! The XML is written by hand here, on purpose without the project's own writer: what reads it
//! is then tested against somebody else's idea of the specification.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::change::ChangeKind;
use super::clock::SimTime;
use super::inner::Inner;
use super::spec::Algorithm;

/// Documents are sent in pieces of about this many bytes.
const PIECE: usize = 32 * 1024;

const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// A document that a Source has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Description,
    CapabilityList,
    ResourceList,
    ResourceListPart(usize),
    ChangeList,
    ChangeListPart(usize),
}

/// A document, ready to be sent.
pub(crate) struct Document {
    pub(crate) modified: SimTime,
    pub(crate) etag: String,
    head: String,
    entries: Box<dyn Iterator<Item = String> + Send>,
    tail: &'static str,
}

/// How a document is spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    Truncated,
    Malformed,
}

/// The bytes of a document, piece by piece.
pub(crate) struct DocumentPieces {
    parts: Box<dyn Iterator<Item = String> + Send>,
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl Page {
    /// Which document lies at `path`, if any does.
    pub(crate) fn at(path: &str, set: &str) -> Option<Page> {
        if path == "/.well-known/resourcesync" {
            return Some(Page::Description);
        }
        let name = path.strip_prefix('/')?.strip_prefix(set)?.strip_prefix('/')?.strip_suffix(".xml")?;
        let part = |prefix| name.strip_prefix(prefix).and_then(|number: &str| number.parse::<usize>().ok());
        match name {
            "capabilitylist" => Some(Page::CapabilityList),
            "resourcelist" => Some(Page::ResourceList),
            "changelist" => Some(Page::ChangeList),
            _ => None,
        }
        .or_else(|| part("resourcelist-").map(Page::ResourceListPart))
        .or_else(|| part("changelist-").map(Page::ChangeListPart))
    }
}

impl Inner {
    /// The document for a page; `None` when there is no such part or no Change List.
    pub(crate) fn document(self: &Arc<Self>, page: Page) -> Option<Document> {
        match page {
            Page::Description => Some(self.description()),
            Page::CapabilityList => Some(self.capability_list()),
            Page::ResourceList => self.resource_list(None),
            Page::ResourceListPart(number) => self.resource_list(Some(number)),
            Page::ChangeList | Page::ChangeListPart(_) if !self.spec.change_list => None,
            Page::ChangeList => self.change_list(None),
            Page::ChangeListPart(number) => self.change_list(Some(number)),
        }
    }

    fn description(&self) -> Document {
        let capability_list = self.uri("capabilitylist.xml");
        let entry = url(&capability_list, None, "<rs:md capability=\"capabilitylist\"/>");
        let head = head("urlset", "<rs:md capability=\"description\"/>", &[]);
        Document::of(SimTime::START, "\"description\"".to_owned(), head, std::iter::once(entry), "urlset")
    }

    fn capability_list(&self) -> Document {
        let mut entries = vec![self.capability("resourcelist")];
        if self.spec.change_list {
            entries.push(self.capability("changelist"));
        }
        let up = format!("{}/.well-known/resourcesync", self.base());
        let head = head("urlset", "<rs:md capability=\"capabilitylist\"/>", &[("up", up)]);
        Document::of(SimTime::START, "\"capabilities\"".to_owned(), head, entries.into_iter(), "urlset")
    }

    fn capability(&self, kind: &str) -> String {
        url(&self.uri(&format!("{kind}.xml")), None, &format!("<rs:md capability=\"{kind}\"/>"))
    }

    fn resource_list(self: &Arc<Self>, part: Option<usize>) -> Option<Document> {
        let snapshot = self.world().snapshot().clone();
        let at = snapshot.at;
        let etag = format!("\"resources-{}-{}\"", at.seconds(), self.faults().declarations());
        let mut links = vec![("up", self.uri("capabilitylist.xml"))];
        let md = format!("<rs:md capability=\"resourcelist\" at=\"{at}\"/>");
        let indices = match part {
            None if snapshot.parts.len() > 1 => {
                let inner = Arc::clone(self);
                let entries = (1..=snapshot.parts.len()).map(move |number| {
                    let loc = inner.uri(&format!("resourcelist-{number}.xml"));
                    sitemap(&loc, &format!("<rs:md at=\"{at}\"/>"))
                });
                let head = head("sitemapindex", &md, &links);
                return Some(Document::of(at, etag, head, entries, "sitemapindex"));
            }
            None => snapshot.parts.first()?.clone(),
            Some(_) if snapshot.parts.len() == 1 => return None,
            Some(number) => snapshot.parts.get(number.checked_sub(1)?)?.clone(),
        };
        if part.is_some() {
            links.push(("index", self.uri("resourcelist.xml")));
        }
        let inner = Arc::clone(self);
        let entries = indices.filter_map(move |index| {
            let present = inner.world().at(index, at)?;
            let md = format!("<rs:md{}/>", inner.fixity(index, present.version));
            let lastmod = inner.spec.declare_lastmod.then_some(present.modified);
            Some(url(&inner.resource_uri(index), lastmod, if md == "<rs:md/>" { "" } else { &md }))
        });
        Some(Document::of(at, etag, head("urlset", &md, &links), entries, "urlset"))
    }

    fn change_list(self: &Arc<Self>, part: Option<usize>) -> Option<Document> {
        let intervals = self.world().intervals(self.spec.entries_per_change_list);
        let modified = self.world().last_change();
        let from = intervals.first()?.from;
        let etag = format!("\"changes-{}-{}\"", modified.seconds(), self.faults().declarations());
        let mut links = vec![("up", self.uri("capabilitylist.xml"))];
        let interval = match part {
            None if intervals.len() > 1 => {
                let inner = Arc::clone(self);
                let entries = intervals.into_iter().enumerate().map(move |(place, interval)| {
                    let loc = inner.uri(&format!("changelist-{}.xml", place + 1));
                    sitemap(&loc, &format!("<rs:md {}/>", period(interval.from, interval.until)))
                });
                let md = format!("<rs:md capability=\"changelist\" {}/>", period(from, None));
                let head = head("sitemapindex", &md, &links);
                return Some(Document::of(modified, etag, head, entries, "sitemapindex"));
            }
            None => intervals.first()?.clone(),
            Some(_) if intervals.len() == 1 => return None,
            Some(number) => intervals.get(number.checked_sub(1)?)?.clone(),
        };
        if part.is_some() {
            links.push(("index", self.uri("changelist.xml")));
        }
        // A closed list no longer changes: neither does what its entity tag is made of.
        let (modified, etag) = match interval.until {
            Some(until) => {
                (until, format!("\"closed-{}-{}\"", until.seconds(), self.faults().declarations()))
            }
            None => (modified, etag),
        };
        let md = format!("<rs:md capability=\"changelist\" {}/>", period(interval.from, interval.until));
        let inner = Arc::clone(self);
        let entries = interval.changes.filter_map(move |place| {
            let change = inner.world().logged(place)?;
            let fixity = match change.kind {
                ChangeKind::Deleted => String::new(),
                _ => inner.fixity(change.index, change.version),
            };
            let md =
                format!("<rs:md change=\"{}\" datetime=\"{}\"{fixity}/>", change.kind.name(), change.time);
            let dated = inner.spec.declare_lastmod && change.kind != ChangeKind::Deleted;
            Some(url(&inner.resource_uri(change.index), dated.then_some(change.time), &md))
        });
        Some(Document::of(modified, etag, head("urlset", &md, &links), entries, "urlset"))
    }

    /// The `hash` and `length` attributes that lists declare for a version.
    fn fixity(&self, index: u64, version: u32) -> String {
        let mut attributes = String::new();
        let hashes: Vec<String> = self.spec.digests.iter().map(|a| self.hash(index, version, *a)).collect();
        if !hashes.is_empty() {
            let _ = write!(attributes, " hash=\"{}\"", hashes.join(" "));
        }
        if self.spec.declare_length {
            let lie = u64::from(self.faults().lies_about_length(&self.resource_path(index)));
            let _ = write!(attributes, " length=\"{}\"", self.content.length(index, version) + lie);
        }
        attributes
    }

    fn hash(&self, index: u64, version: u32, algorithm: Algorithm) -> String {
        format!("{}:{}", algorithm.name(), self.content.digest(index, version, algorithm))
    }
}

impl Document {
    fn of(
        modified: SimTime,
        etag: String,
        head: String,
        entries: impl Iterator<Item = String> + Send + 'static,
        root: &str,
    ) -> Document {
        let tail = if root == "urlset" { "</urlset>\n" } else { "</sitemapindex>\n" };
        Document { modified, etag, head, entries: Box::new(entries), tail }
    }

    /// How many entries it has; writes them all to find out.
    pub(crate) fn count(self) -> usize {
        self.entries.count()
    }

    /// The bytes, plain or as a gzip file; damaged in the entry number `damage.1`.
    pub(crate) fn pieces(self, gzip: bool, damage: Option<(Damage, usize)>) -> DocumentPieces {
        let (head, tail) = (std::iter::once(self.head), std::iter::once(self.tail.to_owned()));
        let parts: Box<dyn Iterator<Item = String> + Send> = match damage {
            None => Box::new(head.chain(self.entries).chain(tail)),
            Some((Damage::Truncated, place)) => {
                let entries = self.entries.take(place + 1).enumerate().map(move |(nth, mut entry)| {
                    if nth == place {
                        entry.truncate(entry.len() / 2);
                    }
                    entry
                });
                Box::new(head.chain(entries))
            }
            Some((Damage::Malformed, place)) => {
                let entries = self.entries.enumerate().map(move |(nth, entry)| {
                    if nth == place { entry.replace("</loc>", "</lco>") } else { entry }
                });
                Box::new(head.chain(entries).chain(tail))
            }
        };
        DocumentPieces { parts, gzip: gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())) }
    }
}

impl Iterator for DocumentPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut plain = String::new();
        for part in self.parts.by_ref() {
            plain.push_str(&part);
            if plain.len() >= PIECE {
                break;
            }
        }
        let Some(mut encoder) = self.gzip.take() else {
            return (!plain.is_empty()).then(|| Bytes::from(plain));
        };
        // Writing into memory cannot fail.
        if plain.is_empty() {
            return Some(Bytes::from(encoder.finish().unwrap_or_default()));
        }
        let _ = encoder.write_all(plain.as_bytes()).and_then(|()| encoder.flush());
        let packed = std::mem::take(encoder.get_mut());
        self.gzip = Some(encoder);
        Some(Bytes::from(packed))
    }
}

fn head(root: &str, md: &str, links: &[(&str, String)]) -> String {
    let mut head = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} {NAMESPACES}>\n");
    for (rel, href) in links {
        let _ = writeln!(head, "  <rs:ln rel=\"{rel}\" href=\"{}\"/>", escaped(href));
    }
    let _ = writeln!(head, "  {md}");
    head
}

fn url(loc: &str, lastmod: Option<SimTime>, md: &str) -> String {
    let lastmod = lastmod.map(|time| format!("<lastmod>{time}</lastmod>")).unwrap_or_default();
    format!("  <url><loc>{}</loc>{lastmod}{md}</url>\n", escaped(loc))
}

fn sitemap(loc: &str, md: &str) -> String {
    format!("  <sitemap><loc>{}</loc>{md}</sitemap>\n", escaped(loc))
}

fn period(from: SimTime, until: Option<SimTime>) -> String {
    match until {
        Some(until) => format!("from=\"{from}\" until=\"{until}\""),
        None => format!("from=\"{from}\""),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_their_page_and_others_name_none() {
        let cases = [
            ("/.well-known/resourcesync", Some(Page::Description)),
            ("/s/capabilitylist.xml", Some(Page::CapabilityList)),
            ("/s/resourcelist.xml", Some(Page::ResourceList)),
            ("/s/resourcelist-12.xml", Some(Page::ResourceListPart(12))),
            ("/s/changelist-1.xml", Some(Page::ChangeListPart(1))),
            ("/s/resourcelist-x.xml", None),
            ("/t/resourcelist.xml", None),
            ("/s/resourcelist", None),
        ];
        for (path, page) in cases {
            assert_eq!(Page::at(path, "s"), page, "{path}");
        }
    }

    #[test]
    fn markup_in_a_uri_is_escaped() {
        assert_eq!(escaped("a?b=1&c=<\">"), "a?b=1&amp;c=&lt;&quot;>");
    }
}
