//! Which links of entries lead to resources that are fetched too, though no list names them. Pure.
//!
//! Each link that the operator's rules select becomes an entry of the same document, with the mark
//! [`Linked`]. From there on it is planned, fetched, found absent and deleted like any entry. A resource
//! that a list names is only listed. Links of linked resources are not known, so this is one step deep.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU16;

use model::{
    Action, Declaration, FollowRule, FollowedRelation, LinkVersion, Linked, Links, Listing, MediaRange,
    PendingRecord, ResourceRecord, ResourceUri, UriError,
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
    /// Rules with conditions and limits of their own. They come before the relations above.
    pub rules: Vec<FollowRule>,
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
    /// Whether one of the entries is fetched in place of the resource that has the link.
    pub instead: bool,
}

/// An entry of a link, beside what is known of its target.
#[derive(Debug)]
pub enum BesideTarget {
    /// A list names the target: the link asks for nothing.
    Listed {
        /// Whether the link declares another digest or length than the target's own entry.
        contradicts: bool,
    },
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
        let most = NonZeroU16::new(20).expect("20 is not 0");
        Self { relations: Vec::new(), types: Vec::new(), most, rules: Vec::new() }
    }
}

impl FollowRules {
    /// Whether no link is followed.
    pub fn is_empty(&self) -> bool {
        self.relations.is_empty() && self.rules.is_empty()
    }

    /// Whether links may lead to what is fetched in place of the resource that has them.
    pub fn has_instead(&self) -> bool {
        self.rules.iter().any(|rule| rule.instead)
    }

    /// Whether links of this relation are followed, perhaps under conditions.
    pub fn names(&self, rel: &str) -> bool {
        let of_rules = self.rules.iter().map(|rule| &rule.relation);
        self.relations.iter().chain(of_rules).any(|relation| relation.is_of(rel))
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
        // In their order: the first one that selects a link counts.
        let rules: String = self.rules.iter().map(|rule| format!(" rule {rule}")).collect();
        format!("{relations}{types} most {}{rules}", self.most)
    }

    /// Whether these rules select a link to `uri`.
    pub fn selects(&self, link: &Link, uri: &ResourceUri) -> bool {
        self.selects_plainly(&link.rel, link.media_type.as_deref())
            || self.rules.iter().any(|rule| is_selected_by(rule, link, uri))
    }

    /// Whether the relations and types that are given for all links select one.
    fn selects_plainly(&self, rel: &str, media_type: Option<&str>) -> bool {
        let is_type = |media_type: &str| self.types.iter().any(|range| range.includes(media_type));
        self.relations.iter().any(|relation| relation.is_of(rel))
            && (self.types.is_empty() || media_type.is_some_and(is_type))
    }

    /// Whether these rules may select a link, whatever profile it declares. A record does not keep the profile of the
    /// link that led to it, so what such a link leads to is named by its list all the same.
    pub fn may_select(&self, rel: &str, media_type: Option<&str>, uri: &ResourceUri) -> bool {
        self.selects_plainly(rel, media_type)
            || self.rules.iter().any(|rule| may_be_selected_by(rule, rel, media_type, uri))
    }

    /// Whether these rules do not select the link that led to a stored resource. Other rules did, and what they
    /// selected is neither absent nor deleted.
    pub fn leaves_out(&self, uri: &ResourceUri, record: &ResourceRecord) -> bool {
        let media_type = record.declaration.media_type.as_deref();
        let linked = record.listing.linked.as_ref();
        linked.is_some_and(|linked| !self.may_select(&linked.rel, media_type, uri))
    }

    /// What the links lead to that these rules select, within or beyond limits and filters. Nothing that they name is
    /// absent.
    pub fn targets(&self, links: &[Link]) -> impl Iterator<Item = ResourceUri> {
        let targets = links.iter().filter_map(|link| Some((link, target(link).ok()?)));
        let selected =
            targets.filter(|(link, uri)| self.may_select(&link.rel, link.media_type.as_deref(), uri));
        selected.map(|(_, uri)| uri)
    }

    /// What the links of an entry lead to. Links of a deletion are not followed.
    pub fn follow(&self, filter: &Filter, entry: &ListedEntry) -> Followed {
        if self.is_empty() || entry.listing.change == Some(Change::Deleted) {
            return Followed::default();
        }
        let links = entry.listing.links.as_ref().map(Links::to_vec).unwrap_or_default();
        self.follow_links(filter, entry, links)
    }

    /// Whether the resource of an entry is left to what its links lead to.
    pub fn leaves_to_links(&self, filter: &Filter, entry: &ListedEntry) -> bool {
        self.has_instead() && self.follow(filter, entry).instead
    }

    fn follow_links(&self, filter: &Filter, entry: &ListedEntry, links: Vec<Link>) -> Followed {
        let mut followed = Followed::default();
        let mut seen: Vec<ResourceUri> = Vec::new();
        let mut room = Room::of(self);
        for link in links.into_iter().filter(|link| self.names(&link.rel)) {
            let uri = match target(&link) {
                Ok(uri) => uri,
                Err(error) => {
                    followed.unfit.get_or_insert((link, error));
                    continue;
                }
            };
            let is_selected = self.selects(&link, &uri);
            let is_named = || self.may_select(&link.rel, link.media_type.as_deref(), &uri);
            if uri == entry.uri || seen.contains(&uri) || !(is_selected || is_named()) {
                continue;
            }
            if !is_selected {
                followed.left_out.push(uri);
                continue;
            }
            seen.push(uri.clone());
            if !filter.takes(uri.as_str()) {
                followed.left_out.push(uri);
                continue;
            }
            match room.take(self, &link, &uri) {
                Some(instead) => {
                    followed.instead |= instead;
                    followed.entries.push(linked_entry(entry, uri, link));
                }
                None => followed.beyond.push(uri),
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

/// How many links of an entry each rule may still follow.
struct Room {
    of_rules: Vec<u16>,
    of_relations: u16,
}

impl Room {
    fn of(rules: &FollowRules) -> Self {
        let of_rules = rules.rules.iter().map(|rule| rule.most().get()).collect();
        Self { of_rules, of_relations: rules.most.get() }
    }

    /// Takes a place for a link, by the first rule that selects it and has one. Returns whether what it leads to is
    /// fetched in place of its resource.
    fn take(&mut self, rules: &FollowRules, link: &Link, uri: &ResourceUri) -> Option<bool> {
        for (rule, room) in rules.rules.iter().zip(&mut self.of_rules) {
            if *room > 0 && is_selected_by(rule, link, uri) {
                *room -= 1;
                return Some(rule.instead);
            }
        }
        if self.of_relations > 0 && rules.selects_plainly(&link.rel, link.media_type.as_deref()) {
            self.of_relations -= 1;
            return Some(false);
        }
        None
    }
}

fn is_selected_by(rule: &FollowRule, link: &Link, uri: &ResourceUri) -> bool {
    let is_profile = |profile: &String| link.other.get("profile") == Some(profile);
    may_be_selected_by(rule, &link.rel, link.media_type.as_deref(), uri)
        && rule.profile.as_ref().is_none_or(is_profile)
}

fn may_be_selected_by(rule: &FollowRule, rel: &str, media_type: Option<&str>, uri: &ResourceUri) -> bool {
    let is_type = |range: &MediaRange| media_type.is_some_and(|media_type| range.includes(media_type));
    rule.relation.as_str() == rel
        && rule.media_type.as_ref().is_none_or(is_type)
        && rule.host.as_deref().is_none_or(|host| uri.to_url().host_str() == Some(host))
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

/// Entries after the merge of links.
#[derive(Debug)]
pub struct Merged {
    /// The entries, in their order.
    pub entries: Vec<ListedEntry>,
    /// How many are left out.
    pub left_out: u64,
    /// How many of these declare another digest or length of their target than the target's own entry.
    pub contradicting: u64,
}

/// Merges the entries of links to one target, and drops those whose target a list names, or whose resource is deleted
/// later.
pub fn merge_links(entries: Vec<ListedEntry>) -> Merged {
    if entries.iter().all(|entry| entry.listing.linked.is_none()) {
        return Merged { entries, left_out: 0, contradicting: 0 };
    }
    let contradicting = contradicting(&entries);
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
    Merged { entries: merged.into_iter().flatten().collect(), left_out, contradicting }
}

/// How many of the links contradict an entry of their target in a list. The entry counts.
fn contradicting(entries: &[ListedEntry]) -> u64 {
    let (links, own): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.listing.linked.is_some());
    let mut of_targets: HashMap<&ResourceUri, Vec<&Declaration>> = HashMap::new();
    for link in links {
        of_targets.entry(&link.uri).or_default().push(&link.declaration);
    }
    let own = own.into_iter().filter(|entry| entry.listing.change != Some(Change::Deleted));
    let targets = own.filter_map(|entry| Some((of_targets.remove(&entry.uri)?, &entry.declaration)));
    targets.map(|(links, own)| links.into_iter().filter(|link| contradicts(link, own)).count() as u64).sum()
}

/// Whether a link declares another length, or another digest of the same algorithm, than the target's own entry.
fn contradicts(link: &Declaration, own: &Declaration) -> bool {
    let is_other_digest = link.digests.iter().any(|linked| {
        let mut of_same = own.digests.iter().filter(|own| own.algorithm() == linked.algorithm()).peekable();
        of_same.peek().is_some() && !of_same.any(|own| own == linked)
    });
    is_other_digest || link.length.zip(own.length).is_some_and(|(linked, own)| linked != own)
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
        let own = fetch.map(|pending| &pending.declaration).or(held.map(|held| &held.declaration));
        let contradicts = own.is_some_and(|own| contradicts(&entry.declaration, own));
        return BesideTarget::Listed { contradicts };
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
