//! Entries of landing pages (Signposting): the files and metadata that a page links to. Pure.
//!
//! A page is a group of resources, and no resource. Each of its links that the rules select becomes an entry with the
//! mark [`Linked`], which names the page. From there on it is planned like any entry.

mod of_records;

use std::collections::HashSet;

use jiff::Timestamp;
use model::{LinkVersion, Linked, Links, ResourceRecord, ResourceUri, UriError, Validators};
use resourcesync::{Entry, Link, relation};

use crate::entry::{EntryContext, ListedEntry};
use crate::filter::Filter;
use crate::follow::FollowRules;

pub use of_records::{RecordLinks, landing_page, of_page, without_page};

/// Relations of a page to its resources, if the operator names none.
const RELATIONS: [&str; 2] = [relation::ITEM, relation::DESCRIBED_BY];
/// Other relations that are kept of a page, to show its group.
const SHOWN: [&str; 6] =
    [relation::CITE_AS, relation::LICENSE, relation::AUTHOR, relation::COLLECTION, "type", LINK_SET];
/// The relation to a link set.
pub const LINK_SET: &str = "linkset";
/// Maximum bytes of a page's links that are kept. A page with more is read anew in each run.
const MOST_KEPT: usize = 1024 * 1024;

/// Which links of pages lead to resources: those to the page's own host, and those of relations that the operator
/// follows.
#[derive(Debug, Clone, Copy)]
pub struct PageRules<'a> {
    /// The operator's rules for links.
    pub follow: &'a FollowRules,
    /// The operator's conditions on resources.
    pub filter: &'a Filter,
}

/// What a page leads to.
#[derive(Debug, Default)]
pub struct PageEntries {
    /// One entry per target, in the order of the links.
    pub entries: Vec<ListedEntry>,
    /// Targets that the operator's filter leaves out.
    pub left_out: Vec<ResourceUri>,
    /// How many of them are left out for what the link says.
    pub out_of_scope: u64,
    /// How many of them are left out as of another site.
    pub foreign: u64,
    /// Targets on other hosts, which no rule names.
    pub elsewhere: Vec<ResourceUri>,
    /// The first link that cannot be used, and why.
    pub unfit: Option<(Link, UriError)>,
}

impl PageRules<'_> {
    /// The resources of a page. `version` identifies the version of the page: without it, each resource is asked for
    /// on condition.
    pub fn entries(
        &self,
        page: &ResourceUri,
        links: &[Link],
        version: Option<&str>,
        context: &EntryContext,
    ) -> PageEntries {
        let mut found = PageEntries::default();
        let host = host(page);
        let mut seen: HashSet<ResourceUri> = HashSet::new();
        for link in links.iter().filter(|link| self.is_of_work(&link.rel)) {
            let mut entry = match entry(link, context) {
                Ok(entry) => entry,
                Err(error) => {
                    found.unfit.get_or_insert((link.clone(), error));
                    continue;
                }
            };
            let uri = entry.uri.clone();
            if uri == *page || !seen.insert(uri.clone()) {
                continue;
            }
            if !self.is_named(&link.rel) && host != self::host(&uri) {
                found.elsewhere.push(uri);
            } else if !self.filter.takes(uri.as_str()) {
                found.foreign += u64::from(self.filter.leaves_out_as_foreign(uri.as_str()));
                found.left_out.push(uri);
            } else if !self.selects(link, &uri) || !self.filter.admits_item(&entry) {
                found.out_of_scope += 1;
                found.left_out.push(uri);
            } else {
                let version = version_of(link, version);
                let linked = Linked { from: page.clone(), rel: link.rel.clone(), shared: false, version };
                entry.listing.links = None;
                entry.listing.linked = Some(Box::new(linked));
                found.entries.push(entry);
            }
        }
        found
    }

    /// Whether the rules do not select the link that led to a stored resource. Other rules did, and what they selected
    /// is neither absent nor deleted.
    pub fn leaves_out(&self, uri: &ResourceUri, record: &ResourceRecord) -> bool {
        // No page led to it: the entries were taken for resources then.
        let Some(linked) = record.listing.linked.as_deref() else { return true };
        let media_type = record.declaration.media_type.as_deref();
        let may_select = || self.follow.may_select(&linked.rel, media_type, uri);
        !self.is_of_work(&linked.rel) || !(self.follow.is_empty() || may_select())
    }

    /// Whether links of this relation lead to resources.
    fn is_of_work(&self, rel: &str) -> bool {
        if self.follow.is_empty() { RELATIONS.contains(&rel) } else { self.is_named(rel) }
    }

    /// Whether the operator names the relation, so that other hosts count too.
    fn is_named(&self, rel: &str) -> bool {
        self.follow.names(rel)
    }

    fn selects(&self, link: &Link, uri: &ResourceUri) -> bool {
        self.follow.is_empty() || self.follow.selects(link, uri)
    }
}

impl PageEntries {
    /// All targets that are not entries: other rules may have stored them.
    pub fn others(&self) -> impl Iterator<Item = &ResourceUri> {
        self.left_out.iter().chain(&self.elsewhere)
    }
}

/// The links of an entry of a sitemap that count for a page.
pub fn of_sitemap(links: &[Link]) -> Vec<Link> {
    links.iter().filter(|link| is_kept(&link.rel)).cloned().collect()
}

/// Whether a sitemap names the resources of a page, so that the page need not be read.
pub fn is_described(links: &[Link]) -> bool {
    links.iter().any(|link| RELATIONS.contains(&link.rel.as_str()))
}

/// Whether links of this relation are kept.
pub fn is_kept(rel: &str) -> bool {
    RELATIONS.contains(&rel) || SHOWN.contains(&rel)
}

/// The links of a page as they are kept; none if there are too many.
///
/// # Errors
/// When there are too many.
pub fn kept(links: &[Link]) -> Result<Option<Links>, TooMany> {
    if links.iter().map(Link::size).sum::<usize>() > MOST_KEPT { Err(TooMany) } else { Ok(Links::of(links)) }
}

/// More links than are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// A text that identifies the version of a page: its last modification by its sitemap, or what its server says.
pub fn version(lastmod: Option<Timestamp>, validators: &Validators) -> Option<String> {
    let Validators { etag, last_modified } = validators;
    match (lastmod, etag, last_modified) {
        (Some(lastmod), _, _) => Some(format!("of the page {lastmod}")),
        (None, None, None) => None,
        (None, etag, last_modified) => Some(format!("of the page {etag:?} {last_modified:?}")),
    }
}

fn version_of(link: &Link, page: Option<&str>) -> Option<LinkVersion> {
    if link.hash.is_some() || link.modified.is_some() {
        let text = format!("of the target {:?} {:?} {:?}", link.hash, link.modified, link.length);
        return Some(LinkVersion::of(&text));
    }
    page.map(LinkVersion::of)
}

/// The entry of a link: what the link declares of its target.
fn entry(link: &Link, context: &EntryContext) -> Result<ListedEntry, UriError> {
    let mut entry = Entry::new(link.href.split('#').next().unwrap_or_default());
    entry.lastmod.clone_from(&link.modified);
    entry.metadata.hash.clone_from(&link.hash);
    entry.metadata.length = link.length;
    entry.metadata.media_type.clone_from(&link.media_type);
    entry.metadata.encoding.clone_from(&link.encoding);
    entry.links = profile(link).into_iter().collect();
    context.read(entry)
}

/// The profile of what a link leads to, as a link of its target: conditions ask for it.
fn profile(link: &Link) -> Option<Link> {
    link.other.get("profile").map(|profile| Link::new(relation::PROFILE, profile))
}

fn host(uri: &ResourceUri) -> Option<String> {
    uri.to_url().host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
