//! Which links of entries lead to resources that are fetched too, though no list names them. Pure.
//!
//! Each link that the operator's rules select becomes an entry of the same document, with the mark
//! [`Linked`]. From there on it is planned, fetched, found absent and deleted like any entry. A resource
//! that a list names is only listed. Links of linked resources are not known, so this is one step deep.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU16;

use model::{
    Action, Declaration, FollowedRelation, LinkVersion, Linked, Links, Listing, MediaRange, PendingRecord,
    ResourceRecord, ResourceUri, UriError,
};
use resourcesync::{Change, Datetime, Link};

use crate::decide::{CurrentState, Decision};
use crate::entry::ListedEntry;
use crate::filter::Filter;

/// Which links are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowRules {
    /// Relations of links to follow; none: no link is followed.
    pub relations: Vec<FollowedRelation>,
    /// Media types that such a link must declare; none: any, declared or not.
    pub types: Vec<MediaRange>,
    /// The most links of one entry that are followed.
    pub most: NonZeroU16,
}

/// What the links of an entry lead to.
#[derive(Debug, Default)]
pub struct Followed {
    /// One entry per target, in the order of the links.
    pub entries: Vec<ListedEntry>,
    /// Targets beyond the limit.
    pub beyond: Vec<ResourceUri>,
    /// Targets that the operator's filter leaves out.
    pub left_out: Vec<ResourceUri>,
    /// The first link that cannot be followed, and why.
    pub unfit: Option<(Link, UriError)>,
}

/// An entry of a link, beside what is known of its target.
#[derive(Debug)]
pub enum BesideTarget {
    /// A list names the target: the link asks for nothing.
    Listed,
    /// An entry of another link has planned it. The plan gets this mark.
    Planned(Box<Linked>),
    /// To be decided.
    Open(Box<ListedEntry>),
}

/// What a change of a resource means for the targets of its links.
#[derive(Debug, Default)]
pub struct AfterChange {
    /// Targets to look at again: the change did not repeat the links.
    pub again: Vec<ListedEntry>,
    /// Targets that it does not link to any more.
    pub ended: Vec<EndedLink>,
}

/// A target that a resource does not link to any more.
#[derive(Debug)]
pub struct EndedLink {
    /// The target.
    pub uri: ResourceUri,
    /// The entry of the resource that linked to it, with its former link.
    pub listing: Listing,
    /// Whether that resource was deleted.
    pub is_deleted: bool,
}

impl Default for FollowRules {
    fn default() -> Self {
        Self { relations: Vec::new(), types: Vec::new(), most: NonZeroU16::new(20).expect("20 is not 0") }
    }
}

impl FollowRules {
    /// Whether no link is followed.
    pub fn is_empty(&self) -> bool {
        self.relations.is_empty()
    }

    /// Whether the landing pages of records that name no file are asked for.
    pub fn asks_landing_pages(&self) -> bool {
        self.relations.iter().any(FollowedRelation::asks_landing_pages)
    }

    /// A text that changes with the rules; empty if no link is followed.
    pub(crate) fn fingerprint(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut relations = self.relations.clone();
        relations.sort_unstable();
        relations.dedup();
        let mut types = self.types.clone();
        types.sort_unstable();
        types.dedup();
        let relations: String = relations.iter().map(|relation| format!(" follow {relation}")).collect();
        let types: String = types.iter().map(|range| format!(" of {range}")).collect();
        format!("{relations}{types} most {}", self.most)
    }

    /// Whether links of this relation and declared media type are followed.
    pub fn selects(&self, rel: &str, media_type: Option<&str>) -> bool {
        let is_type = |media_type: &str| self.types.iter().any(|range| range.includes(media_type));
        self.relations.iter().any(|relation| relation.is_of(rel))
            && (self.types.is_empty() || media_type.is_some_and(is_type))
    }

    /// Whether these rules do not select the link that led to a stored resource. Other rules did, and what they
    /// selected is neither absent nor deleted.
    pub fn leaves_out(&self, record: &ResourceRecord) -> bool {
        let media_type = record.declaration.media_type.as_deref();
        record.listing.linked.as_ref().is_some_and(|linked| !self.selects(&linked.rel, media_type))
    }

    /// What the links lead to that these rules select, within or beyond limits and filters. Nothing that they name is
    /// absent.
    pub fn targets(&self, links: &[Link]) -> impl Iterator<Item = ResourceUri> {
        let selected = links.iter().filter(|link| self.selects(&link.rel, link.media_type.as_deref()));
        selected.filter_map(|link| target(link).ok())
    }

    /// What the links of an entry lead to. Links of a deletion are not followed.
    pub fn follow(&self, filter: &Filter, entry: &ListedEntry) -> Followed {
        if self.is_empty() || entry.listing.change == Some(Change::Deleted) {
            return Followed::default();
        }
        let links = entry.listing.links.as_ref().map(Links::to_vec).unwrap_or_default();
        self.follow_links(filter, entry, links)
    }

    fn follow_links(&self, filter: &Filter, entry: &ListedEntry, links: Vec<Link>) -> Followed {
        let mut followed = Followed::default();
        let mut seen: Vec<ResourceUri> = Vec::new();
        for link in links.into_iter().filter(|link| self.selects(&link.rel, link.media_type.as_deref())) {
            let uri = match target(&link) {
                Ok(uri) => uri,
                Err(error) => {
                    followed.unfit.get_or_insert((link, error));
                    continue;
                }
            };
            if uri == entry.uri || seen.contains(&uri) {
                continue;
            }
            seen.push(uri.clone());
            if !filter.takes(uri.as_str()) {
                followed.left_out.push(uri);
            } else if followed.entries.len() < usize::from(self.most.get()) {
                followed.entries.push(linked_entry(entry, uri, link));
            } else {
                followed.beyond.push(uri);
            }
        }
        followed
    }

    /// What a change of a stored resource means for the targets of its links. `record` is the state before it.
    pub fn after_change(
        &self,
        filter: &Filter,
        entry: &ListedEntry,
        decision: Decision,
        record: Option<&ResourceRecord>,
    ) -> AfterChange {
        let mut after = AfterChange::default();
        let Some(change) = entry.listing.change.filter(|_| !self.is_empty()) else { return after };
        if decision == Decision::Stale || entry.listing.linked.is_some() {
            return after;
        }
        if filter.leaves_open(entry) {
            // It was not known yet whether its resource is wanted.
            after.again = self.follow(filter, entry).entries;
        }
        let held = record.filter(|record| record.is_present());
        let Some(links) = held.and_then(|record| record.listing.links.as_ref()).map(Links::to_vec) else {
            return after;
        };
        let is_deleted = change == Change::Deleted;
        if is_deleted && decision != Decision::Delete {
            return after;
        }
        if !is_deleted && entry.listing.links.is_none() {
            // Silence removes nothing, but the targets may have changed with their resource.
            if decision == Decision::Fetch {
                after.again.extend(self.follow_links(filter, entry, links).entries);
            }
            return after;
        }
        let now: HashSet<ResourceUri> = self.follow(filter, entry).targets().collect();
        let before = self.follow_links(filter, entry, links);
        let gone = before.entries.into_iter().filter(|linked| !now.contains(&linked.uri));
        after.ended =
            gone.map(|linked| EndedLink { uri: linked.uri, listing: linked.listing, is_deleted }).collect();
        after
    }
}

impl AfterChange {
    /// Whether it means nothing.
    pub fn is_empty(&self) -> bool {
        self.again.is_empty() && self.ended.is_empty()
    }

    /// Adds what another change means.
    pub fn extend(&mut self, other: Self) {
        self.again.extend(other.again);
        self.ended.extend(other.ended);
    }

    /// Leaves out some targets.
    pub fn retain(&mut self, is_kept: impl Fn(&ResourceUri) -> bool) {
        self.again.retain(|entry| is_kept(&entry.uri));
        self.ended.retain(|ended| is_kept(&ended.uri));
    }
}

impl Followed {
    /// All targets.
    pub fn targets(self) -> impl Iterator<Item = ResourceUri> {
        self.entries.into_iter().map(|entry| entry.uri).chain(self.beyond).chain(self.left_out)
    }
}

/// The resource that a link leads to. A fragment is a part of it.
fn target(link: &Link) -> Result<ResourceUri, UriError> {
    link.href.split('#').next().unwrap_or_default().parse()
}

/// The entry of a link: what the link declares of its target, in the document and at the time of its resource's entry.
fn linked_entry(entry: &ListedEntry, uri: ResourceUri, link: Link) -> ListedEntry {
    let version = version(entry, &link);
    let hashes = link.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
    let declaration = Declaration {
        digests: hashes.known,
        unjudged: hashes.unjudged,
        length: link.length,
        media_type: link.media_type,
        encoding: link.encoding,
        lastmod: link.modified.as_ref().map(Datetime::instant),
    };
    let linked = Linked { from: entry.uri.clone(), rel: link.rel, shared: false, version };
    let listing = Listing { links: None, linked: Some(Box::new(linked)), ..entry.listing.clone() };
    ListedEntry { uri, declaration, listing, moment: entry.moment }
}

/// The version that a link speaks of: its own digest or modification, or else those of the resource that has the link.
fn version(entry: &ListedEntry, link: &Link) -> Option<LinkVersion> {
    let Declaration { digests, unjudged, lastmod, length, .. } = &entry.declaration;
    let text = if link.hash.is_some() || link.modified.is_some() {
        format!("of the target {:?} {:?} {:?}", link.hash, link.modified, link.length)
    } else if !digests.is_empty() {
        let digests: Vec<String> = digests.iter().map(ToString::to_string).collect();
        format!("of the resource {digests:?} {:?}", link.length)
    } else if !unjudged.is_empty() {
        format!("of the resource {unjudged:?} {:?}", link.length)
    } else {
        format!("of the resource {} {length:?} {:?}", (*lastmod)?, link.length)
    };
    Some(LinkVersion::of(&text))
}

/// Merges the entries of links to one target, and drops those whose target a list names, or whose resource is deleted
/// later. Returns the number of entries that this leaves out.
pub fn merge_links(entries: Vec<ListedEntry>) -> (Vec<ListedEntry>, u64) {
    if entries.iter().all(|entry| entry.listing.linked.is_none()) {
        return (entries, 0);
    }
    let mut named = HashSet::new();
    let mut deleted = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.listing.linked.is_none()) {
        if entry.listing.change == Some(Change::Deleted) {
            deleted.insert(entry.uri.clone(), entry.listing.as_of);
        } else {
            named.insert(entry.uri.clone());
        }
    }
    let mut left_out = 0;
    let mut merged: Vec<Option<ListedEntry>> = Vec::with_capacity(entries.len());
    let mut places: HashMap<ResourceUri, usize> = HashMap::new();
    for mut entry in entries {
        let Some(linked) = entry.listing.linked.take() else {
            merged.push(Some(entry));
            continue;
        };
        let is_ended = entry.listing.change.is_some()
            && deleted.get(&linked.from).is_some_and(|as_of| entry.listing.as_of <= *as_of);
        if is_ended || named.contains(&entry.uri) {
            left_out += 1;
            continue;
        }
        let before = places.get(&entry.uri).copied();
        if let Some(earlier) = before.and_then(|place| merged.get_mut(place)).and_then(Option::as_mut) {
            left_out += 1;
            if entry.listing.change.is_none() {
                // Lists name no order, so the first link counts.
                let first = earlier.listing.linked.take();
                earlier.listing.linked = first.map(|first| Box::new(first.beside(Some(&linked))));
                continue;
            }
        }
        let earlier = before.and_then(|place| merged[place].take());
        let linked = linked.beside(earlier.as_ref().and_then(|earlier| earlier.listing.linked.as_deref()));
        entry.listing.linked = Some(Box::new(linked));
        places.insert(entry.uri.clone(), merged.len());
        merged.push(Some(entry));
    }
    (merged.into_iter().flatten().collect(), left_out)
}

/// Lays the entry of a link beside what is known of its target.
pub fn beside_target(mut entry: ListedEntry, known: CurrentState<'_>) -> BesideTarget {
    let Some(linked) = entry.listing.linked.take() else { return BesideTarget::Open(Box::new(entry)) };
    let held = known.record.filter(|record| record.is_present());
    let is_list = entry.listing.change.is_none();
    // A list that omits it was seen. Another list that links to it makes it linked.
    let is_listed =
        held.is_some_and(|held| held.listing.linked.is_none() && !(is_list && held.absent.is_some()));
    let fetch = known.pending.filter(|pending| matches!(pending.action, Action::Fetch { .. }));
    if is_listed || fetch.is_some_and(|pending| pending.listing.linked.is_none()) {
        return BesideTarget::Listed;
    }
    let first = fetch.and_then(|pending| pending.listing.linked.as_deref());
    let linked = linked.beside(held.and_then(|held| held.listing.linked.as_deref())).beside(first);
    if let Some((pending, first)) = fetch.zip(first)
        && is_list
        && is_of_edition(pending, &entry.listing)
    {
        return BesideTarget::Planned(Box::new(Linked { shared: linked.shared, ..first.clone() }));
    }
    entry.listing.linked = Some(Box::new(linked));
    BesideTarget::Open(Box::new(entry))
}

/// Whether a plan came from the same edition of a list.
fn is_of_edition(pending: &PendingRecord, listing: &Listing) -> bool {
    pending.listing.change.is_none()
        && pending.listing.as_of == listing.as_of
        && pending.listing.set == listing.set
        && pending.attempts == 0
}

#[cfg(test)]
mod tests;
