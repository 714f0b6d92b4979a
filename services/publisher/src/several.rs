//! Several publications as the sets of one Source: its documents, and the sets by their folder.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse as _, Response};
use fixity::Sha256;
use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use publish::{Collection, CollectionDocument, Publication, PublishError, Published, paths};
use store::Store;
use tokio::sync::{Semaphore, mpsc};

use crate::access::Tokens;
use crate::documents::{described, unmet};
use crate::harvest::OAI_AT_A_TIME;
use crate::metrics::PublisherMetrics;
use crate::set::{self, Server, Set};
use crate::shared::{Held, Shared};

/// The pause after a set could not be opened.
const PAUSE: Duration = Duration::from_secs(60);
/// Sets that are opened at the same time.
const AT_A_TIME: usize = 16;

/// The sets and the documents above them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Several(Arc<Parts>);

struct Parts {
    path: String,
    /// Each with its entity tag.
    documents: Vec<(String, CollectionDocument)>,
    since: Timestamp,
    tokens: Option<Tokens>,
    oai: OfAll,
    /// None for a set that cannot be opened yet.
    sets: RwLock<BTreeMap<String, Option<Set>>>,
}

/// The OAI-PMH repository of all sets.
pub(crate) struct OfAll {
    pub(crate) url: String,
    pub(crate) contact: String,
    pub(crate) turns: Semaphore,
    pub(crate) metrics: PublisherMetrics,
}

/// What is at a path below the base.
pub(crate) enum Found {
    /// A document above the sets, with its entity tag.
    Document(String, CollectionDocument),
    /// A path below the base of a set.
    InSet(Set, String),
    /// The OAI-PMH repository of all sets.
    Repository,
    /// A set that cannot be read now.
    Unready,
    /// Nothing.
    Nothing,
}

impl Several {
    /// Starts all sets, some at a time, and waits for them; but for one that takes longer than the start time of the
    /// settings, no other waits. One that cannot be opened is tried again later. Returns what was published meanwhile.
    ///
    /// # Errors
    /// When a document above the sets cannot be made.
    pub(crate) async fn start(
        collection: &Collection,
        sets: Vec<(Publication, Store)>,
        server: &Server,
    ) -> Result<(Self, Published), PublishError> {
        let names = sets.iter().map(|(publication, _)| publication.source.source.to_string());
        let documents = collection.documents()?.into_iter();
        let all = Self(Arc::new(Parts {
            path: collection.base().path().to_owned(),
            documents: documents.map(|document| (etag(&document), document)).collect(),
            since: SystemClock.now(),
            tokens: server.settings.tokens.clone(),
            oai: OfAll {
                url: collection.base().url(paths::OAI),
                contact: server.settings.contact_at(collection.base()),
                turns: Semaphore::new(OAI_AT_A_TIME),
                metrics: server.settings.metrics.clone(),
            },
            sets: RwLock::new(names.map(|name| (name, None)).collect()),
        }));
        let turns = Arc::new(Semaphore::new(AT_A_TIME));
        // One message for each set.
        let (tried, mut results) = mpsc::unbounded_channel();
        for (publication, store) in sets {
            let (all, server, turns) = (all.clone(), server.clone(), Arc::clone(&turns));
            let tasks = server.tasks.clone();
            tasks.spawn(all.keep_opening(publication, store, server, turns, tried.clone()));
        }
        drop(tried);
        let mut done = Published::default();
        let over = tokio::time::sleep(server.settings.start_time);
        tokio::pin!(over);
        loop {
            tokio::select! {
                result = results.recv() => match result {
                    Some(published) => done += published,
                    None => break,
                },
                () = &mut over => {
                    tracing::warn!("some Sources are not published yet: they are answered by 503 until then");
                    break;
                }
            }
        }
        Ok((all, done))
    }

    async fn open(
        &self,
        publication: &Publication,
        store: &Store,
        server: &Server,
    ) -> Result<Published, PublishError> {
        let (set, done) = set::start(publication.clone(), Held::Harvest(store.clone()), server).await?;
        let name = publication.source.source.to_string();
        self.0.sets.write().unwrap_or_else(PoisonError::into_inner).insert(name, Some(set));
        Ok(done)
    }

    /// Opens a set; one that cannot be opened is tried again, after a pause. The first result goes to `tried`.
    async fn keep_opening(
        self,
        publication: Publication,
        store: Store,
        server: Server,
        turns: Arc<Semaphore>,
        tried: mpsc::UnboundedSender<Published>,
    ) {
        let source = publication.source.source.as_str();
        let mut tried = Some(tried);
        loop {
            let opened = async {
                let _turn = turns.acquire().await;
                self.open(&publication, &store, &server).await
            };
            let opened = tokio::select! {
                opened = opened => opened,
                () = server.stop.cancelled() => return,
            };
            let is_first = tried.is_some();
            match (opened, tried.take()) {
                (Ok(published), tried) => {
                    tracing::info!(source, "a Source is published now");
                    // Without a receiver, the server did not wait for it.
                    let _ = tried.map(|tried| tried.send(published));
                    return;
                }
                (Err(error), _) if is_first => {
                    tracing::error!(%error, source, "a Source cannot be published now: it is tried again");
                }
                (Err(error), _) => tracing::warn!(%error, source, "a Source cannot be published yet"),
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = server.stop.cancelled() => return,
            }
        }
    }

    /// The path of the base at the server.
    pub(crate) fn path(&self) -> &str {
        &self.0.path
    }

    /// The tokens of readers; none if everybody may read.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        self.0.tokens.as_ref()
    }

    /// The OAI-PMH repository of all sets.
    pub(crate) fn oai(&self) -> &OfAll {
        &self.0.oai
    }

    /// All sets, in the order of their IDs. None while one cannot be read.
    pub(crate) fn ready(&self) -> Option<Vec<Shared>> {
        let sets = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        sets.values().map(|set| set.as_ref().map(|set| set.shared.clone())).collect()
    }

    /// What is at a path below the base.
    pub(crate) fn find(&self, path: &str) -> Found {
        if let Some((etag, document)) = self.0.documents.iter().find(|(_, document)| document.path == path) {
            return Found::Document(etag.clone(), document.clone());
        }
        if path == paths::OAI {
            return Found::Repository;
        }
        let Some((name, rest)) = path.split_once('/') else { return Found::Nothing };
        let sets = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        let rest = if rest.is_empty() { paths::PAGE } else { rest };
        match sets.get(name) {
            Some(Some(set)) => Found::InSet(set.clone(), rest.to_owned()),
            Some(None) => Found::Unready,
            None => Found::Nothing,
        }
    }

    /// Answers with a document above the sets.
    pub(crate) fn answer(
        &self,
        etag: &str,
        document: &CollectionDocument,
        method: &Method,
        asked: &HeaderMap,
    ) -> Response {
        let CollectionDocument { path, body, .. } = document;
        let mut headers = described(path, etag, self.0.since);
        if let Some(answer) = unmet(asked, etag, self.0.since, &headers) {
            return answer;
        }
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        let body = if *method == Method::HEAD { Body::empty() } else { Body::from(body.clone()) };
        (headers, body).into_response()
    }
}

fn etag(document: &CollectionDocument) -> String {
    format!("\"{}\"", Sha256::of(&document.body))
}
