//! The rules that select links, and what the links of an entry lead to by them.

use std::collections::HashSet;
use std::num::NonZeroU16;

use model::{FollowRule, FollowedRelation, Links, MediaRange, ResourceRecord, ResourceUri};
use resourcesync::{Change, Link};

use super::target::{linked_entry, target};
use super::{AfterChange, EndedLink, Followed};
use crate::decide::Decision;
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
