//! Several publications as the sets of one Source: its documents, and the sets by their folder. Sets may come and go.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use axum::body::Body;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use fixity::Sha256;
use jiff::Timestamp;
use lru::LruCache;
use model::{Clock as _, SystemClock};
use publish::{Base, Collection, CollectionDocument, CollectionSet, PublishError, paths};
use store::SourceMarker;
use tokio::sync::Semaphore;

use crate::access::Tokens;
use crate::answers::{finish, not_found, unavailable};
use crate::documents::{described, unmet};
use crate::harvest::OAI_AT_A_TIME;
use crate::metrics::PublisherMetrics;
use crate::readers::{Reader, Readers};
use crate::set::Set;
use crate::settings::Settings;

/// How many views of the sets have their documents in memory: each may have some megabytes.
const MOST_VIEWS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// The sets, and the documents above them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Several(Arc<Parts>);

struct Parts {
    base: Base,
    /// The base of the sets' own hubs, where they have one of their own.
    hubs: Option<Base>,
    oai: OfAll,
    sets: RwLock<Sets>,
}

/// The OAI-PMH repository of all sets.
pub(crate) struct OfAll {
    pub(crate) url: String,
    pub(crate) contact: String,
    /// The most sets that a reader finds in it: each request reads the catalogs of all.
    pub(crate) most: usize,
    pub(crate) turns: Semaphore,
    pub(crate) server_turns: Arc<Semaphore>,
    pub(crate) metrics: PublisherMetrics,
}

struct Sets {
    /// By the folder, which is the Source's ID.
    members: BTreeMap<String, Member>,
    /// When the last set came or went, or got other readers. Tokens have a time of their own.
    since: Timestamp,
    /// The documents that were asked for last, by which of the sets they name.
    documents: Mutex<LruCache<View, Arc<Documents>>>,
}

/// Which of the sets a reader may read, in their order.
type View = Box<[bool]>;

/// A set.
#[derive(Clone)]
pub(crate) struct Member {
    /// The Source.
    pub(crate) marker: SourceMarker,
    pub(crate) readers: Readers,
    /// None for a set that cannot be opened yet.
    pub(crate) set: Option<Set>,
}

/// What is at a path below the base: a set, and a path below its own base.
pub(crate) struct Found {
    pub(crate) member: Member,
    pub(crate) path: String,
}

/// The sets that a reader may read.
pub(crate) struct Visible<'a> {
    /// In the order of their IDs.
    pub(crate) members: Vec<&'a Member>,
    /// Which of all sets these are.
    view: View,
    /// Since when it is these sets, at the latest.
    since: Timestamp,
    /// Whether others may read other ones.
    pub(crate) are_private: bool,
}

/// Which rules of a set its reader is to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Those for what is above the set: a token may be one for other sets.
    Name,
    /// Those for its content.
    Content,
}

/// What is above the sets.
struct Documents {
    /// Each with its entity tag.
    all: Vec<(String, CollectionDocument)>,
    /// The `Link` header, which leads to the sets.
    link: Option<HeaderValue>,
}

impl Several {
    /// Without any set. A repository of all has at most `most`.
    pub(crate) fn new(base: Base, most: usize, hubs: Option<Base>, settings: &Settings) -> Self {
        let oai = OfAll {
            url: base.url(paths::OAI),
            contact: settings.contact_at(&base),
            most,
            turns: Semaphore::new(OAI_AT_A_TIME),
            server_turns: Arc::clone(&settings.oai_turns),
            metrics: settings.metrics.clone(),
        };
        let documents = Mutex::new(LruCache::new(MOST_VIEWS));
        let sets = Sets { members: BTreeMap::new(), since: SystemClock.now(), documents };
        let hubs = hubs.filter(|hubs| hubs.path() != base.path());
        Self(Arc::new(Parts { base, hubs, oai, sets: RwLock::new(sets) }))
    }

    /// The base of all sets.
    pub(crate) fn base(&self) -> &Base {
        &self.0.base
    }

    /// The base of the sets' hubs, where it has another path.
    pub(crate) fn hubs(&self) -> Option<&Base> {
        self.0.hubs.as_ref()
    }

    /// The OAI-PMH repository of all sets.
    pub(crate) fn oai(&self) -> &OfAll {
        &self.0.oai
    }

    /// Takes a set, in place of the one of the same Source.
    pub(crate) fn put(&self, member: Member) {
        let name = member.marker.source.to_string();
        let mut sets = self.write();
        let has_parts = |member: &Member| {
            member.set.as_ref().is_some_and(|set| !set.shared.publication().sets.is_empty())
        };
        let with_parts = has_parts(&member);
        let before = sets.members.insert(name, member);
        if before.is_none_or(|before| with_parts || has_parts(&before)) {
            sets.note_change();
        }
    }

    /// Gives a set other readers.
    pub(crate) fn set_readers(&self, source: &str, readers: Readers) {
        let mut sets = self.write();
        let Some(member) = sets.members.get_mut(source) else { return };
        let are_others = !member.readers.are(&readers);
        member.readers = readers;
        if are_others {
            sets.note_change();
        }
    }

    /// Serves a set no longer.
    pub(crate) fn remove(&self, source: &str) {
        let mut sets = self.write();
        if sets.members.remove(source).is_some() {
            sets.note_change();
        }
    }

    /// The set at a path below the base; none for a path that no set has.
    pub(crate) fn find(&self, path: &str) -> Option<Found> {
        let (name, rest) = path.split_once('/')?;
        let member = self.read().members.get(name)?.clone();
        let path = if rest.is_empty() { paths::PAGE } else { rest }.to_owned();
        Some(Found { member, path })
    }

    /// Answers for what is above the sets. The documents name the sets that the reader may read.
    pub(crate) fn answer(&self, path: Option<&str>, method: &Method, reader: Reader<'_>) -> Response {
        let documents = match self.documents(reader) {
            Ok(documents) => documents,
            Err(answer) => return *answer,
        };
        let Above { documents, since, are_private } = documents;
        let found = documents.all.iter().find(|(_, document)| path == Some(document.path));
        let mut response = match found {
            Some((etag, document)) => send(etag, document, since, method, reader),
            None => not_found(),
        };
        response.headers_mut().extend(documents.link.clone().map(|link| (header::LINK, link)));
        finish(&mut response, are_private);
        response
    }

    /// Takes what is needed of the sets that a reader may read, or returns the answer to one who may read none.
    pub(crate) fn of_visible<T>(
        &self,
        reader: Reader<'_>,
        asked: Asked,
        take: impl FnOnce(Visible<'_>) -> Result<T, Box<Response>>,
    ) -> Result<T, Box<Response>> {
        take(self.read().visible(reader, asked)?)
    }

    /// The documents for a reader, or the answer to one who may read no set.
    fn documents(&self, reader: Reader<'_>) -> Result<Above, Box<Response>> {
        let (members, view, are_private, since, sets_since) = {
            let sets = self.read();
            let Visible { members, view, since, are_private } = sets.visible(reader, Asked::Name)?;
            if let Some(documents) = sets.documents().get(&view).cloned() {
                return Ok(Above { documents, since, are_private });
            }
            // The documents are written without the lock.
            let members: Vec<CollectionSet> = members.into_iter().map(Member::described).collect();
            (members, view, are_private, since, sets.since)
        };
        let documents = write(&self.0.base, members).map_err(|error| {
            tracing::error!(%error, "the documents above the sets cannot be written");
            Box::new(unavailable())
        })?;
        let sets = self.read();
        if sets.since == sets_since {
            sets.documents().put(view, Arc::clone(&documents));
        }
        Ok(Above { documents, since, are_private })
    }

    fn read(&self) -> RwLockReadGuard<'_, Sets> {
        self.0.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Sets> {
        self.0.sets.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The documents above the sets, for one reader.
struct Above {
    documents: Arc<Documents>,
    since: Timestamp,
    are_private: bool,
}

impl Sets {
    fn visible(&self, reader: Reader<'_>, asked: Asked) -> Result<Visible<'_>, Box<Response>> {
        // First: of tokens that change meanwhile, the time is the earlier one. Those of sets that this reader may not
        // read any more count too.
        let tokens = self.members.values().filter_map(|member| member.readers.tokens.as_ref());
        let since = tokens.map(Tokens::since).fold(self.since, Timestamp::max);
        let mut refused = None;
        let mut members = Vec::new();
        let mut view = Vec::with_capacity(self.members.len());
        for member in self.members.values() {
            let refusal = member.readers.refusal(reader, (asked == Asked::Content).then_some(&member.marker));
            view.push(refusal.is_none());
            match refusal {
                None => members.push(member),
                // Whom a token helps is told so.
                Some(answer) if answer.status() == 401 || refused.is_none() => refused = Some(answer),
                Some(_) => {}
            }
        }
        if members.is_empty() {
            return Err(Box::new(refused.unwrap_or_else(not_found)));
        }
        let are_private = self.members.values().any(|member| member.readers.are_some());
        Ok(Visible { members, view: view.into(), since, are_private })
    }

    fn note_change(&mut self) {
        // Strictly rising: it identifies what the documents name.
        let next = self.since.checked_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(self.since);
        self.since = SystemClock.now().max(next);
        self.documents().clear();
    }

    fn documents(&self) -> MutexGuard<'_, LruCache<View, Arc<Documents>>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// How the documents above the sets name it.
    fn described(&self) -> CollectionSet {
        let parts = self.set.as_ref().map(|set| set.shared.publication().sets.clone());
        CollectionSet {
            source: self.marker.source.clone(),
            url: self.marker.url.clone(),
            sets: parts.unwrap_or_default(),
        }
    }
}

fn write(base: &Base, sets: Vec<CollectionSet>) -> Result<Arc<Documents>, PublishError> {
    let collection = Collection::new(base.clone(), sets)?;
    let links = collection.ways_in().into_iter().map(|(rel, url)| format!("<{url}>; rel=\"{rel}\""));
    let link = links.collect::<Vec<_>>().join(", ").parse().ok();
    let all = collection.documents()?.into_iter().map(|document| (etag(&document), document)).collect();
    Ok(Arc::new(Documents { all, link }))
}

fn send(
    etag: &str,
    CollectionDocument { path, body, .. }: &CollectionDocument,
    since: Timestamp,
    method: &Method,
    reader: Reader<'_>,
) -> Response {
    let mut headers = described(path, etag, since);
    if let Some(answer) = unmet(reader.headers, etag, since, &headers) {
        return answer;
    }
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(body.clone()) };
    (headers, body).into_response()
}

fn etag(document: &CollectionDocument) -> String {
    format!("\"{}\"", Sha256::of(&document.body))
}

#[cfg(test)]
mod tests;
