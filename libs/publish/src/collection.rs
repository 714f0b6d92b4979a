//! Several publications as the sets of one Source (§8): a Source Description that leads to each Capability List.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fixity::Sha256;
use maud::html;
use model::SourceId;
use resourcesync::{Capability, Entry, Header, Link, Metadata, Root, relation};
use serde::{Deserialize, Serialize};

use crate::documents::{document, put_fixed};
use crate::page::html_page;
use crate::part_set::PartSet;
use crate::paths::{CAPABILITIES, DESCRIPTION, PAGE, RESOURCES, ROBOTS};
use crate::place::{About, OWN, Place, lasting};
use crate::{Base, PublishError};

/// The most sets: the entries of one document (§7).
pub const MOST_SETS: usize = 50_000;
/// Up to so many Sources, what is above the sets leads to each Capability List. A reader that follows these links takes
/// all of them.
const MOST_LINKED: usize = 16;
/// What is remembered of a collection at its place.
const STATE: &str = ".thresher/collection.json";
/// The version that is written. A later one is refused.
const VERSION: u16 = 1;

/// A set: what is stored of one Source.
#[derive(Debug, Clone)]
pub struct CollectionSet {
    /// The Source. Its ID is the folder of the set below the base.
    pub source: SourceId,
    /// The Source's URL, shown to readers.
    pub url: String,
    /// Sets by rule: parts of it.
    pub sets: Vec<PartSet>,
}

/// Several publications as the sets of one Source.
#[derive(Debug, Clone)]
pub struct Collection {
    base: Base,
    sets: Vec<CollectionSet>,
}

/// A document of a collection, beside those of its sets.
#[derive(Debug, Clone)]
pub struct CollectionDocument {
    /// Its path below the base.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// The document.
    pub body: Bytes,
}

/// The state at the place.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    version: u16,
    /// The base. It cannot change, since all documents name it.
    base: String,
    /// Digests of the documents that are there.
    #[serde(default)]
    fixed: BTreeMap<String, Sha256>,
}

impl Collection {
    /// The sets of these Sources, each once, in this order.
    ///
    /// # Errors
    /// [`PublishError::Refused`] for no Source, one that is named twice, or too many.
    pub fn new(base: Base, sets: Vec<CollectionSet>) -> Result<Self, PublishError> {
        let names: BTreeSet<_> = sets.iter().map(|set| &set.source).collect();
        if names.len() != sets.len() {
            return Err(PublishError::Refused("a Source is named twice; name each once".to_owned()));
        }
        let all: usize = sets.iter().map(|set| 1 + set.sets.len()).sum();
        if sets.is_empty() || all > MOST_SETS {
            let why = format!("a publication has 1 to {MOST_SETS} Sources and sets by rule, not {all}");
            return Err(PublishError::Refused(why));
        }
        Ok(Self { base, sets })
    }

    /// Its base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The URL of the Source Description, to which the Capability List of each set leads up.
    pub fn description(&self) -> String {
        self.base.url(DESCRIPTION)
    }

    /// Links of what is above the sets, each with its relation: to the Capability List of each Source (§6.3.2). Of many
    /// Sources, to the Source Description, which leads to these.
    pub fn ways_in(&self) -> Vec<(&'static str, String)> {
        if self.sets.len() > MOST_LINKED {
            return vec![(relation::DESCRIBED_BY, self.description())];
        }
        let capabilities = |set: &CollectionSet| self.base.url(&format!("{}/{CAPABILITIES}", set.source));
        self.sets.iter().map(|set| ("resourcesync", capabilities(set))).collect()
    }

    /// Its documents, the topmost last. `robots.txt` names the Resource List of each Source: sets by rule have no other
    /// resources.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn documents(&self) -> Result<Vec<CollectionDocument>, PublishError> {
        let robots = self.sets.iter().map(|set| self.base.url(&format!("{}/{RESOURCES}", set.source)));
        let robots = robots
            .fold("User-agent: *\nAllow: /\n".to_owned(), |text, list| format!("{text}Sitemap: {list}\n"));
        let described = || Link::new(relation::DESCRIBED_BY, self.base.url(PAGE));
        let header =
            Header { links: vec![described()], ..Header::new(Root::UrlSet, Some(Capability::Description)) };
        let sets = self.sets.iter().flat_map(|set| {
            let page = self.base.url(&format!("{}/{PAGE}", set.source));
            let parts = set.sets.iter().map(PartSet::capabilities);
            std::iter::once(CAPABILITIES.to_owned()).chain(parts).map(move |path| Entry {
                metadata: Metadata { capability: Some(Capability::CapabilityList), ..Metadata::default() },
                links: vec![Link::new(relation::DESCRIBED_BY, page.clone())],
                ..Entry::new(self.base.url(&format!("{}/{path}", set.source)))
            })
        });
        let description = document(&header, sets)?;
        let one = |path, media_type, body| CollectionDocument { path, media_type, body };
        Ok(vec![
            one(PAGE, "text/html; charset=utf-8", self.page().into()),
            one(ROBOTS, "text/plain; charset=utf-8", robots.into()),
            one(DESCRIPTION, "application/xml", description),
        ])
    }

    /// Takes a place, before its sets are laid down in their folders.
    ///
    /// # Errors
    /// [`PublishError::Refused`] when the place has something else; else the error of the place.
    pub async fn begin(&self, place: &Place) -> Result<(), PublishError> {
        if self.state(place).await?.is_some() {
            return Ok(());
        }
        if place.has_others().await? || place.read(crate::state::STATE).await?.is_some() {
            return Err(PublishError::Refused(format!(
                "{} is not empty, and is no publication of several Sources; pass an empty place",
                place.name()
            )));
        }
        let fixed = BTreeMap::new();
        self.save(place, &State { version: VERSION, base: self.base.as_str().to_owned(), fixed }).await
    }

    /// Writes the documents that differ from what is there, when the sets are there. Returns how many it wrote.
    ///
    /// # Errors
    /// As [`Collection::begin`].
    pub async fn finish(&self, place: &Place) -> Result<u64, PublishError> {
        let Some(mut state) = self.state(place).await? else {
            return Err(PublishError::changed(STATE, "it is not there"));
        };
        let mut written = 0;
        for CollectionDocument { path, media_type, body } in self.documents()? {
            let about = About { media_type: Some(media_type.to_owned()), ..About::default() };
            written += put_fixed(place, &mut state.fixed, path, body, &about).await?;
        }
        if written > 0 {
            self.save(place, &state).await?;
        }
        Ok(written)
    }

    async fn state(&self, place: &Place) -> Result<Option<State>, PublishError> {
        let Some(bytes) = place.read(STATE).await? else { return Ok(None) };
        let state: State =
            serde_json::from_slice(&bytes).map_err(|error| PublishError::changed(STATE, error))?;
        let refuse = |why: String| Err(PublishError::Refused(format!("{} {why}", place.name())));
        if state.version > VERSION {
            let version = state.version;
            return refuse(format!("is of a later version of Thresher (format {version}); use that one"));
        }
        if state.base != self.base.as_str() {
            return refuse(format!("has a publication at another base, {}; pass another place", state.base));
        }
        Ok(Some(state))
    }

    async fn save(&self, place: &Place, state: &State) -> Result<(), PublishError> {
        debug_assert!(STATE.starts_with(OWN));
        let json = serde_json::to_vec(state).map_err(|error| PublishError::place(STATE, error))?;
        let about = About { media_type: Some("application/json".to_owned()), ..lasting() };
        place.flush().await?;
        place.put(STATE, json.into(), &about).await
    }

    /// The page for people.
    fn page(&self) -> String {
        let title = "Copies of several Sources";
        let head = html! {
            @for (rel, href) in self.ways_in() {
                link rel=(rel) href=(href);
            }
        };
        let body = html! {
            p {
                "This server publishes verified copies by ResourceSync (ANSI/NISO Z39.99), a set for each Source. Give "
                "its address to a harvester, or that of one set: " code { (self.base) }
            }
            ul {
                @for set in &self.sets {
                    li { a href=(self.base.url(&format!("{}/{PAGE}", set.source))) { (set.url) } }
                }
                li { a href=(self.description()) { "Source Description" } }
            }
        };
        html_page(title, &head, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_leads_to_each_capability_list_or_to_the_source_description_of_many() {
        let base = Base::new("https://e.org/m/".parse().unwrap()).unwrap();
        let page = |sources: usize| {
            let set = |n: usize| CollectionSet {
                source: format!("source-{n}").parse().unwrap(),
                url: format!("http://source-{n}.test/"),
                sets: Vec::new(),
            };
            let collection = Collection::new(base.clone(), (0..sources).map(set).collect()).unwrap();
            let documents = collection.documents().unwrap();
            let page = documents.into_iter().find(|document| document.path == PAGE).unwrap();
            String::from_utf8(page.body.to_vec()).unwrap()
        };
        let (few, many) = (page(MOST_LINKED), page(MOST_LINKED + 1));
        for n in [0, MOST_LINKED - 1] {
            let link =
                format!("<link rel=\"resourcesync\" href=\"https://e.org/m/source-{n}/capabilitylist.xml\">");
            assert!(few.contains(&link) && !many.contains(&link), "{few}");
        }
        let description = "<link rel=\"describedby\" href=\"https://e.org/m/.well-known/resourcesync\">";
        assert!(many.contains(description) && !few.contains(description), "{many}");
    }
}
