//! From a closed change document to the documents of later changes (section 12.1).
//!
//! An operator may give a Change List that has ended, or one that ends some day. Its Source says where the next one is:
//! `index` leads to the index of Change Lists, `up` to the Capability List.

use model::CapabilityLink;
use resourcesync::{Capability, relation};
use url::Url;

use super::document::{Level, Small};
use super::down::capability_link;
use super::found::Route;
use super::hint::HintKind;
use super::search::{Search, Step, Visit};

/// The most documents that are read on the way to later changes.
const MOST_STEPS: usize = 3;

impl Search<'_> {
    /// Uses a closed change document, and those of its kind that it leads to. They are one set, named by the given
    /// document. So a set goes on when its open document is closed.
    pub(crate) async fn go_on(&mut self, given: Small) {
        let Some(kind) = given.parsed.header.capability.clone() else { return self.follow(given).await };
        let id = given.url.clone();
        let mut links = vec![CapabilityLink::new(kind.clone(), id.as_str())];
        let mut is_doubtful = false;
        let mut at = given;
        let mut steps = 0;
        while is_closed_change_document(&at) {
            let Some((route, url)) = onward(&at) else {
                self.hint(&at.url, HintKind::ClosedWithoutNext);
                break;
            };
            if steps == MOST_STEPS {
                let why = format!(
                    "it was not read: {MOST_STEPS} documents lead to it, one from the other. Give the Capability List \
                     instead"
                );
                self.found.fail(url, why);
                break;
            }
            let is_foreign = url.host_str() != at.url.host_str();
            let Some(next) = self.step_on(&at, route, url, &kind).await else { break };
            steps += 1;
            if next.parsed.level == Level::Set {
                is_doubtful |= !next.parsed.is_certain();
                self.add_later(&at, &next, &kind, &mut links);
            } else {
                add(&mut links, CapabilityLink::new(kind.clone(), next.url.as_str()));
            }
            let from = std::mem::replace(&mut at, next);
            if is_foreign {
                self.hint(&from.url, HintKind::OtherHost(at.url.to_string()));
                break;
            }
        }
        self.put_set(&id, links, is_doubtful);
    }

    /// Reads what a closed document leads to. Anything but what it should be is a failure: later changes are not found.
    async fn step_on(&mut self, from: &Small, route: Route, url: Url, kind: &Capability) -> Option<Small> {
        if self.has_seen(&url) {
            let why =
                format!("the `{route}` of {} leads back to it: a circle, which was not followed", from.url);
            self.found.fail(url, why);
            return None;
        }
        if !self.has_room(&url) {
            return None;
        }
        match self.visit(&Step::first(url.clone(), route)).await {
            Ok(Visit::Document(next)) if is_right(&next, route, kind) => {
                self.put_below(&from.url, &next.url);
                Some(*next)
            }
            Ok(Visit::Document(next)) => {
                let why = format!("the `{route}` of {} leads to it, but it is {}", from.url, next.kind());
                self.found.fail(next.url.as_str(), why);
                None
            }
            Ok(Visit::Again(again)) => {
                let why = format!("the `{route}` of {} leads back to {again}: a circle", from.url);
                self.found.fail(url, why);
                None
            }
            Ok(Visit::Page(page)) => {
                self.found.fail(url, page.why);
                None
            }
            Err(error) => {
                self.found.fail(url, error);
                None
            }
        }
    }

    /// Adds the documents of this kind that a Capability List names.
    fn add_later(&mut self, from: &Small, set: &Small, kind: &Capability, links: &mut Vec<CapabilityLink>) {
        let of_kind = set.parsed.named.iter().filter(|named| named.capability.as_ref() == Some(kind));
        let later: Vec<CapabilityLink> =
            of_kind.map(|named| capability_link(set, named, kind.clone())).collect();
        if !later.iter().any(|link| link.uri == from.url.as_str()) {
            self.hint(&from.url, HintKind::NotNamedAbove(set.url.to_string()));
        }
        later.into_iter().for_each(|link| add(links, link));
    }
}

/// Whether a document tells changes until a time that is over for it (`until`): no change is added to it.
pub(crate) fn is_closed_change_document(small: &Small) -> bool {
    let header = &small.parsed.header;
    let tells_changes = matches!(header.capability, Some(Capability::ChangeList | Capability::ChangeDump));
    tells_changes && header.until.is_some()
}

/// Where a closed document sends on to: its `index`, else its `up`.
fn onward(small: &Small) -> Option<(Route, Url)> {
    let link = |route, rel| Some((route, small.link(rel).filter(|url| *url != small.url)?));
    link(Route::Index, relation::INDEX).or_else(|| link(Route::Up, relation::UP))
}

fn is_right(next: &Small, route: Route, kind: &Capability) -> bool {
    let header = &next.parsed.header;
    match route {
        Route::Index => header.is_index() && header.capability.as_ref() == Some(kind),
        _ => next.parsed.level == Level::Set,
    }
}

fn add(links: &mut Vec<CapabilityLink>, link: CapabilityLink) {
    match links.iter_mut().find(|known| known.uri == link.uri) {
        // A Capability List also names the hubs of a document.
        Some(known) => *known = link,
        None => links.push(link),
    }
}
