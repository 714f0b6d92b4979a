//! Descends from a Source Description to its sets.

use std::collections::VecDeque;

use model::{CapabilityLink, SetId, SetRecord};
use resourcesync::{Capability, Quirk};
use url::Url;

use super::document::{Level, Named, Parsed, Small};
use super::found::Route;
use super::hint::HintKind;
use super::search::{MOST_LEVELS, Search, Step, Visit};

impl Search<'_> {
    /// Descends from a document to the sets below it. An unreadable document affects only its own sets.
    pub(crate) async fn follow(&mut self, first: Small) {
        let mut next = VecDeque::new();
        self.enter(first, &mut next);
        while let Some(step) = next.pop_front() {
            let parent = step.parent.clone().unwrap_or_else(|| step.url.clone());
            if let Some(small) = self.climbed.remove(&step.url) {
                self.enter_listed(small, step.is_announced.then_some(&parent), &mut next);
                continue;
            }
            if self.has_seen(&step.url) {
                self.seen_again(&parent, &step.url);
                continue;
            }
            if step.depth >= MOST_LEVELS {
                self.found.fail(
                    step.url,
                    format!("it was not read: {MOST_LEVELS} documents lead to it, one from the other, which looks like a chain without end"),
                );
                continue;
            }
            if !self.has_room(&step.url) {
                return;
            }
            match self.visit(&step).await {
                Ok(Visit::Document(small)) => {
                    self.enter_listed(*small, step.is_announced.then_some(&parent), &mut next)
                }
                Ok(Visit::Again(url)) => self.seen_again(&parent, &url),
                Ok(Visit::Page(page)) => self.found.fail(step.url, page.why),
                Err(error) => self.found.fail(step.url, error),
            }
        }
    }

    /// Enters a document that a Source Description lists. That should be a Capability List. A document of another
    /// kind is used as what it is, with a hint; an unusable one is skipped. `announced_by` is the document that says
    /// that it is a Capability List.
    fn enter_listed(&mut self, small: Small, announced_by: Option<&Url>, next: &mut VecDeque<Step>) {
        if small.parsed.level == Level::List {
            if let Some(capability) = small.parsed.header.capability.clone().filter(|kind| !is_of_use(kind)) {
                return self.leave_alone(&small.url, &capability, small.url.as_str());
            }
            let found = small.kind();
            match announced_by {
                Some(parent) => self.found.fail(
                    small.url.as_str(),
                    format!("{parent} lists it where a Capability List should be, but it is {found}"),
                ),
                None => {
                    self.hint(&small.url, HintKind::OtherKind { expected: Level::Set.as_str(), found });
                }
            }
        }
        self.enter(small, next);
    }

    /// Skips a capability that is not harvested. Offering it is no fault of the Source.
    fn leave_alone(&mut self, document: &Url, capability: &Capability, uri: &str) {
        let capability = capability.to_string();
        let uri = uri.to_owned();
        self.hint(document, HintKind::LeftAlone { capability, uri });
    }

    /// Handles a document according to its kind.
    pub(crate) fn enter(&mut self, small: Small, next: &mut VecDeque<Step>) {
        match small.parsed.level {
            Level::Description => self.queue_children(&small, next),
            Level::Set => self.take_set(small, next),
            // A sitemap without rs:md lists resources like a Resource List does.
            Level::List => {
                let lists_pages = small.parsed.is_signmap || self.lists_pages;
                let is_plain = small.parsed.header.capability.is_none();
                let capability = small.parsed.header.capability.unwrap_or(Capability::ResourceList);
                let link = CapabilityLink::new(capability, small.url.as_str());
                self.put_set(&small.url, vec![link], false);
                if is_plain && lists_pages {
                    self.mark_pages(&small.url);
                }
            }
        }
    }

    fn queue_children(&mut self, small: &Small, next: &mut VecDeque<Step>) {
        for named in &small.parsed.named {
            match named.capability.as_ref().filter(|kind| !is_of_use(kind)) {
                Some(capability) => self.leave_alone(&small.url, capability, &named.uri),
                None => self.queue(small, named, next),
            }
        }
    }

    fn queue(&mut self, small: &Small, named: &Named, next: &mut VecDeque<Step>) {
        let uri = named.uri.as_str();
        let url = match small.url.join(uri) {
            Ok(url) => url,
            Err(error) => {
                return self.found.fail(uri, format!("{} lists it, but it is no URL: {error}", small.url));
            }
        };
        if self.has_room_behind(next.len(), &url) {
            let parent = Some(small.url.clone());
            let is_announced = named.capability == Some(Capability::CapabilityList);
            let step =
                Step { parent, depth: small.depth + 1, is_announced, ..Step::first(url, Route::Listed) };
            next.push_back(step);
        }
    }

    fn take_set(&mut self, small: Small, next: &mut VecDeque<Step>) {
        let mut capabilities = Vec::new();
        let mut without = 0;
        for named in &small.parsed.named {
            match &named.capability {
                // An index of Capability Lists, although the specification has none.
                Some(Capability::CapabilityList) => self.queue(&small, named, next),
                Some(Capability::Description) => {}
                Some(capability) => {
                    if matches!(capability, Capability::Other(_)) {
                        self.leave_alone(&small.url, capability, &named.uri);
                    }
                    capabilities.push(capability_link(&small, named, capability.clone()));
                }
                None => without += 1,
            }
        }
        if without > 0 {
            self.hint(&small.url, HintKind::EntriesWithoutCapability(without));
        }
        if !capabilities.is_empty() {
            let offers =
                |wanted: [Capability; 2]| capabilities.iter().any(|link| wanted.contains(&link.capability));
            let has_list = offers([Capability::ResourceList, Capability::ResourceDump]);
            let has_changes = offers([Capability::ChangeList, Capability::ChangeDump]);
            if !has_list {
                self.hint(&small.url, HintKind::NoResourceList);
            }
            if !has_changes {
                self.hint(&small.url, HintKind::NoChangeList);
            }
        }
        // A document that only leads to others is not a set of its own.
        let is_index = capabilities.is_empty()
            && small.parsed.named.iter().any(|named| named.capability == Some(Capability::CapabilityList));
        if !is_index {
            let Parsed { bad, has_more, broken, quirks, .. } = &small.parsed;
            let doubtful =
                without + bad > 0 || *has_more || broken.is_some() || quirks.count(Quirk::InvalidUtf8) > 0;
            self.put_set(&small.url, capabilities, doubtful);
        }
    }

    pub(crate) fn put_set(&mut self, url: &Url, capabilities: Vec<CapabilityLink>, doubtful: bool) {
        let id = SetId::new(url.as_str());
        if self.found.sets.iter().all(|(known, _)| *known != id) {
            self.found.sets.push((id, SetRecord { capabilities, doubtful, ..SetRecord::default() }));
        }
    }

    /// A document that leads back to one above it is a fault. One that is listed twice is only odd.
    fn seen_again(&mut self, parent: &Url, url: &Url) {
        if self.is_below(parent.as_str(), url.as_str()) {
            self.found.fail(
                url.as_str(),
                format!("{parent} leads back to it: a circle, which was followed once and no further"),
            );
        } else {
            self.hint(parent, HintKind::Again(url.to_string()));
        }
    }
}

/// The document that an entry of a Capability List names. Hubs are relative to the URL of that list.
pub(crate) fn capability_link(list: &Small, named: &Named, capability: Capability) -> CapabilityLink {
    let resolved = |hub: &String| list.url.join(hub).ok().map(String::from);
    let hubs = named.hubs.iter().filter_map(resolved).collect();
    CapabilityLink { capability, uri: named.uri.clone(), hubs }
}

/// Whether a document of this kind, or its target, is harvested.
fn is_of_use(kind: &Capability) -> bool {
    matches!(
        kind,
        Capability::Description
            | Capability::CapabilityList
            | Capability::ResourceList
            | Capability::ResourceDump
            | Capability::ChangeList
            | Capability::ChangeDump
    )
}
