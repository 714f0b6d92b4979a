//! Ascends from a list to its set and Source, and sideways (RS-22, RS-23).

use resourcesync::relation;
use url::Url;

use super::document::{Level, Small};
use super::found::Route;
use super::hint::HintKind;
use super::search::{MOST_LEVELS, Search, Step, Visit};

impl Search<'_> {
    /// Ascends from a document as far as its links lead, then descends again.
    pub(crate) async fn climb(&mut self, first: Small) {
        let mut trail = vec![first];
        while let Some((route, url)) = trail.last().and_then(above) {
            if trail.iter().any(|small| small.url == url) {
                let from = trail.last().map(|small| small.url.to_string()).unwrap_or_default();
                self.found.fail(
                    url,
                    format!("the `{route}` of {from} leads back to it: a circle, which was not followed"),
                );
                break;
            }
            if self.found.document(url.as_str()).is_some() {
                return self.join(trail, &url).await;
            }
            if self.has_seen(&url) || !self.has_room(&url) {
                break;
            }
            if trail.len() >= MOST_LEVELS {
                self.found.fail(
                    url,
                    format!("it was not read: {MOST_LEVELS} documents lead up to it, one from the other, which looks like a chain without end"),
                );
                break;
            }
            let step = Step::first(url.clone(), route);
            match self.visit(&step).await {
                Ok(Visit::Document(small)) if self.is_above(&trail, route, &small) => trail.push(*small),
                Ok(Visit::Document(_)) => break,
                Ok(Visit::Again(url)) => return self.join(trail, &url).await,
                Ok(Visit::Page(page)) => {
                    self.found.fail(url, page.why);
                    break;
                }
                Err(error) => {
                    self.found.fail(url, error);
                    break;
                }
            }
        }
        self.descend(trail).await;
    }

    /// Whether a link upwards leads to the expected kind of document. If so, the tree records it as the one above.
    fn is_above(&mut self, trail: &[Small], route: Route, small: &Small) -> bool {
        let Some(below) = trail.last() else { return false };
        let from = &below.parsed;
        let to = &small.parsed;
        let is_right = match route {
            Route::Index => {
                from.level == to.level
                    && from.header.capability == to.header.capability
                    && to.header.is_index()
            }
            _ => to.level > from.level,
        };
        if is_right {
            self.put_below(&below.url, &small.url);
        } else {
            let why = format!("the `{route}` of {} leads to it, but it is {}", below.url, small.kind());
            self.found.fail(small.url.as_str(), why);
        }
        is_right
    }

    pub(crate) fn put_below(&mut self, below: &Url, above: &Url) {
        if let Some(document) =
            self.found.documents.iter_mut().find(|document| document.url == below.as_str())
        {
            document.parent = Some(above.to_string());
        }
    }

    /// Joins a document that was read before, usually while ascending from another list.
    async fn join(&mut self, trail: Vec<Small>, above: &Url) {
        for (at, small) in trail.iter().enumerate() {
            let parent = trail.get(at + 1).map_or(above, |next| &next.url);
            self.put_below(&small.url, parent);
        }
        let is_above = |document: &str| self.is_below(document, above.as_str());
        let gave_sets =
            self.found.sets.iter().any(|(id, set)| !set.capabilities.is_empty() && is_above(id.as_str()));
        if !gave_sets {
            return self.descend(trail).await;
        }
        for small in trail.into_iter().filter(|small| small.parsed.level == Level::Set) {
            self.hint(&small.url, HintKind::NotListedAbove(above.to_string()));
            self.follow(small).await;
        }
    }

    /// Takes the sets below the highest document reached, and those on the trail that it does not list.
    async fn descend(&mut self, mut trail: Vec<Small>) {
        let Some(top) = trail.pop() else { return };
        let top_url = top.url.clone();
        let before = self.found.sets.len();
        let mut lists = Vec::new();
        let mut passed = Vec::new();
        for small in trail {
            if small.parsed.level == Level::List {
                lists.push(small);
            } else {
                passed.push(small.url.clone());
                self.climbed.insert(small.url.clone(), small);
            }
        }
        self.follow(top).await;
        for url in passed {
            if let Some(small) = self.climbed.remove(&url) {
                self.hint(&url, HintKind::NotListedAbove(top_url.to_string()));
                self.follow(small).await;
            }
        }
        // If no document above leads to resources, at least the list itself is usable.
        let gave_sets = self.found.sets[before..].iter().any(|(_, set)| !set.capabilities.is_empty());
        if !gave_sets && let Some(list) = lists.pop() {
            self.follow(list).await;
        }
    }
}

/// The next document upwards, by the document's own links.
fn above(small: &Small) -> Option<(Route, Url)> {
    let up = small.link(relation::UP).map(|url| (Route::Up, url));
    let index = small.link(relation::INDEX).filter(|url| *url != small.url).map(|url| (Route::Index, url));
    match small.parsed.level {
        Level::Description => index.or(up),
        // `up` makes the index unnecessary: the Capability List lists that too.
        _ => up.or(index),
    }
}
