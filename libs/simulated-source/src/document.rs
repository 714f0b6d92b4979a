//! The documents of a Source, and their contents.

use std::fmt::Write as _;
use std::sync::Arc;

use super::change::{Change, ChangeKind};
use super::clock::SimTime;
use super::inner::Inner;
use super::spec::Algorithm;
use super::xml::{Document, head, sitemap, url};

/// A document of a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Description,
    CapabilityList,
    ResourceList,
    ResourceListPart(usize),
    ChangeList,
    ChangeListPart(usize),
}

impl Page {
    /// The document at `path`, if there is one.
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
        if !self.spec.hub.is_empty() {
            let hub = format!("<rs:ln rel=\"hub\" href=\"{}\"/>", self.spec.hub);
            let md = format!("{hub}<rs:md capability=\"change-notification\"/>");
            entries.push(url(&self.uri("change"), None, &md));
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
        // A closed list no longer changes, and neither do the inputs of its entity tag.
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
            Some(inner.told(change))
        });
        Some(Document::of(modified, etag, head("urlset", &md, &links), entries, "urlset"))
    }

    /// The entry of a change.
    fn told(&self, change: Change) -> String {
        let fixity = match change.kind {
            ChangeKind::Deleted => String::new(),
            _ => self.fixity(change.index, change.version),
        };
        let md = format!("<rs:md change=\"{}\" datetime=\"{}\"{fixity}/>", change.kind.name(), change.time);
        let dated = self.spec.declare_lastmod && change.kind != ChangeKind::Deleted;
        url(&self.resource_uri(change.index), dated.then_some(change.time), &md)
    }

    /// A Change Notification of these changes.
    pub(crate) fn notification(&self, from: SimTime, until: SimTime, changes: &[Change]) -> String {
        let md = format!("<rs:md capability=\"change-notification\" {}/>", period(from, Some(until)));
        let mut text = head("urlset", &md, &[("up", self.uri("capabilitylist.xml"))]);
        text.extend(changes.iter().map(|change| self.told(*change)));
        text + "</urlset>\n"
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

fn period(from: SimTime, until: Option<SimTime>) -> String {
    match until {
        Some(until) => format!("from=\"{from}\" until=\"{until}\""),
        None => format!("from=\"{from}\""),
    }
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
}
